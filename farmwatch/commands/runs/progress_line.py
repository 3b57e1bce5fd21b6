"""The progress of a replay: a line every ten seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

from farmwatch.terminal.messages import message
from replay.engine.runner import ReplayStatus
from replay.runs.phases import JUDGE
from stream.text.wording import lasting

_EVERY_S = 10.0


class ProgressLine:
    """Prints the progress of a replay on stderr when a line is due."""

    def __init__(self, run: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._run = run
        self._monotonic = monotonic
        self._written_s = monotonic()

    def show(self, status: ReplayStatus) -> None:
        if (now_s := self._monotonic()) - self._written_s >= _EVERY_S:
            self._written_s = now_s
            message(line_of(self._run, status))


def line_of(run: str, status: ReplayStatus) -> str:
    """`v5-1: judge 12000 of 100000, 23%, 3412/s, 1 min left, waits for live (measure 120)`.

    A run that follows new records: `v5-1: follows, 12000 read, 3 behind`, in offsets of `features`.
    """
    current = status.progress.current
    if status.follows:
        read = next((advance.done for advance in status.progress.phases if advance.phase == JUDGE), 0)
        # Up to the present ends; offsets that wait for an earlier phase count once. To count records is expensive.
        behind = max((advance.total - advance.done for advance in status.progress.phases), default=0)
        parts = [f"{run}: follows", f"{read} read", f"{behind} behind"]
    else:
        parts = [f"{run}: {current.phase} {current.done} of {current.total}", f"{status.progress.share:.0%}"]
        if status.rate is not None:
            parts.append(f"{status.rate:.0f}/s")
        if status.eta_s is not None:
            parts.append(f"{lasting(status.eta_s)} left")
    if status.waits_for:
        parts.append(f"waits for live ({status.waits_for})")
    return ", ".join(parts)
