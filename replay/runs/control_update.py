"""Rows of `control`, changed by one process at a time."""

from __future__ import annotations

import getpass
import os
import random
import socket
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from replay.runs.lookup import run_named
from stream.log.contract import Log
from stream.log.errors import Fenced
from stream.schema.control import Control, exclusive
from stream.schema.runs import Alias, Cutover, Run

_ATTEMPTS = 8
_WAIT_S = 0.2  # for the winner to write its change; longer each time


class ControlUpdate(NamedTuple):
    """What is to be written in one commit: a run's row, rulesets (digest, text) that it needs, a move of the alias."""

    row: Run | None = None
    rulesets: Sequence[tuple[str, str]] = ()
    move: tuple[Alias, Cutover] | tuple[()] = ()


def change(
    log: Log, decide: Callable[[Control], ControlUpdate | None], sleep: Callable[[float], None] = time.sleep
) -> Run | None:
    """Write what `decide` makes of `control` as it stands, alone; None: nothing. Returns the run's row.

    `decide` may be called again, where another process changed `control` at the same time. It reads rows and offsets,
    never records: a slow `decide` would lose against every other change. Raises Fenced where others do so
    all the time, LogUnavailable, and what `decide` raises.
    """
    for attempt in range(_ATTEMPTS):
        try:
            with exclusive(log) as writer:
                decided = decide(Control(log))
                if decided is None:
                    return None
                row = () if decided.row is None else (decided.row,)
                writer.put(*row, *decided.move, rulesets=decided.rulesets)
                return decided.row
        except Fenced:
            if attempt + 1 == _ATTEMPTS:
                raise
            sleep(random.uniform(0.5, 1.0) * _WAIT_S * (attempt + 1))  # noqa: S311  # spreads, hides nothing
    raise AssertionError("the last attempt returns or raises")


def change_run(log: Log, name: str, decide: Callable[[Control, Run], Run]) -> Run:
    """Write what `decide` makes of the row of a run, where it differs; returns the row that holds now.

    Raises NotFound where the run was removed, and as `change`.
    """
    found: list[Run] = []

    def update(control: Control) -> ControlUpdate | None:
        run = run_named(control, name)
        found[:] = [decide(control, run)]
        return None if found[0] == run else ControlUpdate(found[0])

    change(log, update)
    return found[0]


def operator() -> str:
    """user@host; a user without a name, as in a container, by number."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # Python 3.13 raises OSError, those before KeyError
        user = f"uid{os.getuid()}"
    return f"{user}@{socket.gethostname()}"
