"""The health of a stage: alive, and making progress. Written by its loop, read by /healthz and /readyz."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """`ok`: the loop ticks and makes progress. `ready`: it owns partitions, restored, and its stage can work."""

    ok: bool
    ready: bool
    detail: str


class Watchdog:
    """Reports a stage as unhealthy if the loop does not tick, or makes no progress on its input for `limit_s`."""

    def __init__(self, limit_s: float, monotonic: Callable[[], float]) -> None:
        self._limit_s = limit_s
        self._monotonic = monotonic
        self._ticked_at = self._progress_at = monotonic()
        self._trouble = ""
        self.ready = False  # whether partitions are held and the stage can work

    def ticked(self) -> None:
        self._ticked_at = self._monotonic()

    def progressed(self, *, idle: bool = False) -> None:
        """Note progress: a commit, progress of slow work, or (`idle`) no input."""
        self._progress_at = self._monotonic()
        if not idle:
            self._trouble = ""

    def troubled(self, trouble: str) -> None:
        self._trouble = trouble
        self.ready = False

    def health(self) -> Health:
        now, trouble = self._monotonic(), self._trouble
        silent_s, stalled_s = now - self._ticked_at, now - self._progress_at
        if silent_s > self._limit_s:
            return Health(False, self.ready, f"the loop has not ticked for {silent_s:.0f} s")
        if stalled_s > self._limit_s:
            return Health(False, self.ready, f"input waits, nothing committed for {stalled_s:.0f} s. {trouble}")
        return Health(True, self.ready, trouble or "ok")
