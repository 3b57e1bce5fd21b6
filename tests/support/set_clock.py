"""A machine with two clocks: the wall clock can be set, the monotonic one only runs."""

from __future__ import annotations

NOON_MS = 1_800_000_000_000


class SetClock:
    """Call it for the wall time in milliseconds."""

    def __init__(self) -> None:
        self.uptime_s = 1000.0
        self.off_ms = 0  # how far the wall clock is ahead of the truth

    def __call__(self) -> int:
        return self.true_ms + self.off_ms

    @property
    def true_ms(self) -> int:
        return NOON_MS + int(1000 * self.uptime_s)

    def monotonic(self) -> float:
        return self.uptime_s

    def run(self, seconds: float) -> None:
        self.uptime_s += seconds

    def set(self, off_s: float) -> None:
        self.off_ms = int(1000 * off_s)
