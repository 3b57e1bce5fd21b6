"""The screen of `up` on a terminal: the console's address, the status, and the file that gets the log meanwhile."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from msgspec.structs import replace

from farmwatch.commands.start.status import WIDTH, screen
from farmwatch.config.config import Config
from farmwatch.config.member_names import names_folder
from farmwatch.config.opening import opened
from farmwatch.console.access import browsed_host, kept_token
from farmwatch.doctor.status import ROLES, StatusReader
from farmwatch.terminal.messages import start_logging
from stream.log.private_folders import make_private
from stream.schema.roles import Role
from stream.text.user_errors import FarmwatchError
from stream.text.wording import one_line

_EVERY_S = 2.0
_BROKER_SLOWER = 5  # there each look is a hundred requests
_START_S = 30.0  # until a role without a process is wrong
_FILE = "up.log"
_MOST_BYTES = 10_000_000  # of the file when `up` starts; above it, the file is kept as up.log.1 until the next time
_TAIL_BYTES, _TAIL_LINES = 4096, 8


@contextmanager
def up_screen(config: Config, roles: Sequence[Role], stop: threading.Event) -> Iterator[Callable[[], list[str]]]:
    """Inside, standard output and error go to a file beside the log, and the terminal shows the state of farmwatch.

    Yields what gives the last lines of the file, to be printed behind the block after a failure.
    """
    file = names_folder(config) / _FILE
    make_private(file.parent)
    head = [address(config)] if Role.CONSOLE in roles else []  # alone, for it takes the line
    foot = [f"log    {file}"]
    over = threading.Event()
    kept = [os.dup(number) for number in (1, 2)]
    terminal = os.fdopen(os.dup(2), "w")
    drawing = threading.Thread(target=_draw, args=(config, terminal, head, foot, stop, over), name="screen")
    try:
        begun = _redirect(file)
        start_logging(role="supervisor")  # as in a file, from here on
        drawing.start()
        yield lambda: _tail(file, begun)
    finally:
        over.set()
        if drawing.is_alive():
            drawing.join()
        for number, original in zip((1, 2), kept, strict=True):
            os.dup2(original, number)
            os.close(original)
        with suppress(OSError):  # the terminal is gone
            terminal.close()


def address(config: Config) -> str:
    """Where a browser reaches the console, with the token that lets it in."""
    settings = config.console
    if not settings.port:
        return "console  on a free port, which the log file names"
    token = settings.token or kept_token(names_folder(config))
    return f"http://{browsed_host(settings.host)}:{settings.port}/?token={token}"


def _redirect(file: Path) -> int:
    """Send standard output and error of this process and its children to the file; returns its size so far."""
    sys.stdout.flush()
    sys.stderr.flush()
    if file.exists() and file.stat().st_size > _MOST_BYTES:
        file.replace(f"{file}.1")
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(descriptor, number)
    os.close(descriptor)
    return file.stat().st_size


def _draw(
    config: Config, terminal: TextIO, head: list[str], foot: list[str], stop: threading.Event, over: threading.Event
) -> None:
    """Renew the screen until `over`. The roles go on whatever happens here."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    live = Live(console=Console(file=terminal), auto_refresh=False, redirect_stdout=False, redirect_stderr=False)

    def show(lines: list[str]) -> None:
        end = ["draining; Ctrl-C again ends it at once"] if stop.is_set() else []
        live.update(Text("\n".join([*head, *lines, *foot, *end])), refresh=True)

    with suppress(OSError), live:  # the terminal is gone: the signal of that ends the roles
        show(["starting"])
        while not over.wait(_EVERY_S):
            _follow(config, show, stop, over)


def _follow(config: Config, show: Callable[[list[str]], None], stop: threading.Event, over: threading.Event) -> None:
    begun_s = time.monotonic()
    try:
        with opened(config) as log:
            reader = StatusReader(log, config)
            every_s = _EVERY_S * (_BROKER_SLOWER if log.forgets_offsets else 1)
            lines, due_s = ["starting"], begun_s
            while not over.wait(_EVERY_S):
                if time.monotonic() >= due_s and not stop.is_set():
                    state, due_s = reader.read(), time.monotonic() + every_s
                    is_whole = time.monotonic() > begun_s + _START_S
                    wrong = [found for found in state.wrong if is_whole or found.check != ROLES]
                    lines = screen(replace(state, wrong=wrong))
                show(lines)
    except FarmwatchError as error:
        show([one_line(error)[:WIDTH]])
    except Exception as error:  # noqa: BLE001 - the roles go on; this may be the terminal's end, then `show` raises
        show([f"the screen failed, the log file goes on: {one_line(repr(error))}"[:WIDTH]])


def _tail(file: Path, begun: int) -> list[str]:
    """The last lines that were written to the file since its size was `begun`."""
    with file.open("rb") as written:
        written.seek(max(begun, file.stat().st_size - _TAIL_BYTES))
        return written.read().decode(errors="replace").splitlines()[-_TAIL_LINES:]
