"""Updates rows of `control`, one process at a time."""

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
_WAIT_S = 0.2  # until the next attempt; grows with each attempt


class ControlUpdate(NamedTuple):
    """The rows to write in one commit: a run, the rulesets (digest, text) that it needs, a move of the alias."""

    row: Run | None = None
    rulesets: Sequence[tuple[str, str]] = ()
    move: tuple[Alias, Cutover] | tuple[()] = ()


def update_control(
    log: Log, make_update: Callable[[Control], ControlUpdate | None], sleep: Callable[[float], None] = time.sleep
) -> Run | None:
    """Write the update that `make_update` computes from `control`; None writes nothing. Returns the run's row.

    No other process can write in between. `make_update` may be called again if another process changed `control` at the
    same time. It must read rows and offsets only: a slow one that reads records would lose against every other change.
    Raises Fenced if others keep changing `control`, LogUnavailable, and as `make_update`.
    """
    for attempt in range(_ATTEMPTS):
        try:
            with exclusive(log) as writer:
                update = make_update(Control(log))
                if update is None:
                    return None
                row = () if update.row is None else (update.row,)
                writer.put(*row, *update.move, rulesets=update.rulesets)
                return update.row
        except Fenced:
            if attempt + 1 == _ATTEMPTS:
                raise
            sleep(random.uniform(0.5, 1.0) * _WAIT_S * (attempt + 1))  # noqa: S311  # spreads, hides nothing
    raise AssertionError("the last attempt returns or raises")


def update_run(log: Log, name: str, make_update: Callable[[Control, Run], Run]) -> Run:
    """Write the row that `make_update` computes from the current row of a run, if it differs. Returns the new row."""
    rows: list[Run] = []

    def update(control: Control) -> ControlUpdate | None:
        run = run_named(control, name)
        rows[:] = [make_update(control, run)]
        return None if rows[0] == run else ControlUpdate(rows[0])

    update_control(log, update)
    return rows[0]


def operator() -> str:
    """user@host; a user without a name (as in a container) is shown by number."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # Python 3.13 raises OSError, those before KeyError
        user = f"uid{os.getuid()}"
    return f"{user}@{socket.gethostname()}"
