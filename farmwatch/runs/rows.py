"""Rows of runs in `control`, changed by one at a time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from stream.control import Control, exclusive
from stream.errors import Fenced
from stream.log import Log
from stream.runs import Run

_ATTEMPTS = 8
_WAIT_S = 0.2


class Change(NamedTuple):
    """What is to be written: a row, and rulesets (digest, text) that it needs."""

    row: Run
    rulesets: Sequence[tuple[str, str]] = ()


def change(log: Log, decide: Callable[[Control], Change | None]) -> Run | None:
    """Write what `decide` makes of `control` as it stands, alone; None: nothing. Returns the row.

    `decide` may be called again, where another process changed `control` at the same time. Raises Fenced where others
    do so all the time, LogUnavailable, and what `decide` raises.
    """
    for attempt in range(_ATTEMPTS):
        try:
            with exclusive(log) as writer:
                decided = decide(Control(log))
                if decided is None:
                    return None
                writer.put(decided.row, rulesets=decided.rulesets)
                return decided.row
        except Fenced:
            if attempt + 1 == _ATTEMPTS:
                raise
            time.sleep(random.uniform(0.5, 1.0) * _WAIT_S * (attempt + 1))  # noqa: S311  # spreads, hides nothing
    raise AssertionError("the last attempt returns or raises")
