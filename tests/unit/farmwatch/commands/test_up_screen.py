"""The screen of `up` on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.front_door import PARTITIONS
from tests.support.paths import ROOT

_PROGRAM = """
import os, sys, threading, time
import structlog
from farmwatch.commands.start import up_screen
from farmwatch.config.config import load
from farmwatch.terminal.messages import message
from stream.schema.roles import Role
up_screen._EVERY_S = 0.2
if sys.argv[3] == "broken":
    up_screen.screen = lambda state: 1 / 0
stop = threading.Event()
config = load(None, ["log.url=" + sys.argv[1], "log.partitions=" + sys.argv[2], "console.token=t0ken"], {}).config
with up_screen.up_screen(config, list(Role), stop) as last_lines:
    structlog.get_logger().info("an_event")
    os.system("echo of a child >&2")
    time.sleep(4)
    message("of the supervisor")
    if sys.argv[3] == "signal":
        stop.set()
        time.sleep(0.5)
if sys.argv[3] == "failure":
    print(*last_lines())
"""


@pytest.mark.parametrize("end", ["signal", "failure"])
def test_the_terminal_shows_the_state_and_a_file_gets_the_log(finished: str, end: str) -> None:
    """The console's address first, the status, the file of the log at the end; the file's last lines on failure."""
    shown = _shown(finished, end)
    file = _file(finished)
    assert shown.index("http://127.0.0.1:9480/?token=t0ken") < shown.index("share  ") < shown.rindex(f"log    {file}")
    assert ("draining; Ctrl-C again ends it at once" in shown) == (end == "signal")
    logged = ("event=an_event", "of a child", "of the supervisor")
    assert [text in shown for text in logged] == [end == "failure"] * 3
    written = file.read_text()
    assert "role=supervisor" in written and all(text in written for text in logged)


def test_a_screen_that_fails_says_so(finished: str) -> None:
    """An error of the screen takes the place of the status, with a hint at the log file."""
    assert "the screen failed, the log file goes on: ZeroDivisionError(" in _shown(finished, "broken")


def test_a_terminal_that_is_gone_does_not_end_up(finished: str) -> None:
    """The roles go on, and the end is without an error."""
    process, ours = _start(finished, "gone")
    while b"share  " not in _read(ours):
        pass
    os.close(ours)
    assert (process.wait(), "Traceback" in _file(finished).read_text()) == (0, False)


def test_a_long_file_is_set_aside_when_up_starts(finished: str) -> None:
    """Above 10 MB the file becomes up.log.1, and a new one begins."""
    file = _file(finished)
    with file.open("ab") as written:
        written.truncate(10_000_001)
    _shown(finished, "failure")
    old = file.with_name("up.log.1")
    assert old.stat().st_size == 10_000_001 and file.stat().st_size < 10_000


def _start(log: str, end: str) -> tuple[subprocess.Popen[bytes], int]:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", _PROGRAM, log, str(PARTITIONS), end]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT)
    os.close(theirs)
    return process, ours


def _shown(log: str, end: str) -> str:
    """All that the terminal got, without the line ends that fold long paths."""
    process, ours = _start(log, end)
    seen = b""
    while (more := _read(ours)) and (seen := seen + more):
        pass
    os.close(ours)
    assert process.wait() == 0
    return seen.decode().replace("\r\n", "")


def _file(log: str) -> Path:
    return Path(log.partition(":")[2]) / "up.log"


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # its other side is closed
        return b""
