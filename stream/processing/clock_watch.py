"""Compares the wall clock with the monotonic clock, for work that a wrong time would make do harm."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

_HOUR_S = 3600.0


class ClockReading(NamedTuple):
    """A comparison of the two clocks."""

    moved_s: float  # unconfirmed movement of the wall clock against the monotonic clock; 0 if less than an hour
    is_confirmed: bool  # the wall clock has not moved for an hour
    wall_s: float


class ClockWatch:
    """Compares the wall clock with the monotonic clock, which cannot be set.

    An hour in which both move together confirms the current wall clock. A new process starts with such an hour.
    """

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float]) -> None:
        """Both clocks are in seconds."""
        self._wall = wall
        self._monotonic = monotonic
        self._since_s = self._based_s = monotonic()
        self._believed_s = self._seen_s = wall() - self._since_s  # differences of the clocks

    def read(self) -> ClockReading:
        """Compare now."""
        now_s, wall_s = self._monotonic(), self._wall()
        difference_s = wall_s - now_s
        if abs(difference_s - self._seen_s) > _HOUR_S:
            self._seen_s, self._since_s = difference_s, now_s
        is_confirmed = now_s - self._since_s >= _HOUR_S
        if is_confirmed and now_s - self._based_s >= _HOUR_S:  # not at each reading: a clock may move in small steps
            self._believed_s = self._seen_s = difference_s
            self._based_s = now_s
        moved_s = difference_s - self._believed_s
        return ClockReading(moved_s if abs(moved_s) > _HOUR_S else 0.0, is_confirmed, wall_s)
