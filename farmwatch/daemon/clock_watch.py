"""Whether the wall clock can be believed: retention must not remove what only a wrong clock makes old."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

_HOUR_S = 3600.0


class ClockReading(NamedTuple):
    """What is known of the wall clock at a moment."""

    moved_s: float  # how far it has moved against the monotonic clock, not confirmed yet; 0 for less than an hour
    is_confirmed: bool  # for an hour it has not moved
    wall_s: float  # the time that was compared


class ClockWatch:
    """Compares the wall clock with the monotonic clock, which nobody sets.

    An hour in which the two moved together confirms the wall clock, as it then is. A process that starts knows nothing
    of the time before, so it begins with such an hour.
    """

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float]) -> None:
        """Both clocks are in seconds."""
        self._wall = wall
        self._monotonic = monotonic
        self._since_s = self._based_s = monotonic()
        self._believed_s = self._seen_s = wall() - self._since_s  # differences of the clocks

    def look(self) -> ClockReading:
        """Compare now."""
        now_s, wall_s = self._monotonic(), self._wall()
        difference_s = wall_s - now_s
        if abs(difference_s - self._seen_s) > _HOUR_S:
            self._seen_s, self._since_s = difference_s, now_s
        is_confirmed = now_s - self._since_s >= _HOUR_S
        if is_confirmed and now_s - self._based_s >= _HOUR_S:  # not at each look: a clock may move in small steps
            self._believed_s = self._seen_s = difference_s
            self._based_s = now_s
        moved_s = difference_s - self._believed_s
        return ClockReading(moved_s if abs(moved_s) > _HOUR_S else 0.0, is_confirmed, wall_s)
