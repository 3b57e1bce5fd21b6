"""The time of a process: the wall clock, but for its steps.

The wall clock can be set, by hand or by a time service. A monotonic clock cannot: a difference between the two that
changes by seconds is a step. Time goes on evenly through a step. The new wall clock is believed only once it has lasted
as long as the one before, within a minute and an hour. So a clock that is wrong for a while begins no term, makes
nothing due and delays nothing, and one that was wrong at the start of the process is soon corrected.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import structlog

from stream.log.contract import Clock, wall_ms
from stream.processing.metrics import CLOCK_STEPS, Metrics

_log = structlog.get_logger()

_STEP_MS = 3000  # a smaller change is followed at once: a time service that slews, a leap second
_LEAST_MS, _MOST_MS = 60_000, 3_600_000  # how long a new wall clock must last until it is believed
FORWARD, BACK = "forward", "back"


class _Step(NamedTuple):
    """A step of the wall clock that is not believed yet."""

    difference_ms: int  # of the two clocks, after the step
    since_ms: int  # by the monotonic clock


def uptime_s() -> float:
    """A monotonic clock that, where the system has one, also runs while the machine sleeps."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


class SteadyClock:
    """A `Clock` for all threads of a process. Each step of the wall clock is counted, and logged once."""

    def __init__(
        self, metrics: Metrics | None = None, wall: Clock = wall_ms, monotonic: Callable[[], float] = uptime_s
    ) -> None:
        """Begin at the time of the wall clock; `monotonic` returns seconds."""
        self._metrics = metrics
        self._wall = wall
        self._monotonic = monotonic
        self._since_ms = self._monotonic_ms()
        self._difference_ms = wall() - self._since_ms
        self._step: _Step | None = None
        self._lock = threading.Lock()
        if metrics is not None:
            for direction in (FORWARD, BACK):
                metrics.touch(CLOCK_STEPS, direction=direction)

    def __call__(self) -> int:
        """Milliseconds since 1970 UTC."""
        with self._lock:
            now_ms = self._monotonic_ms()
            self._compare(self._wall() - now_ms, now_ms)
            return now_ms + self._difference_ms

    @property
    def is_confirmed(self) -> bool:
        """Whether the wall clock has not stepped for an hour."""
        self()
        return self._step is None and self._monotonic_ms() - self._since_ms >= _MOST_MS

    def _compare(self, difference_ms: int, now_ms: int) -> None:
        if abs(difference_ms - self._difference_ms) <= _STEP_MS:
            self._difference_ms, self._step = difference_ms, None
            return
        step = self._step
        if step is None or abs(difference_ms - step.difference_ms) > _STEP_MS:
            self._step = _Step(difference_ms, now_ms)
            moved_ms = difference_ms - self._difference_ms
            mend = "set this machine's clock; if it is right now, it is believed within an hour"
            _log.warning("clock_stepped", moved_s=_seconds(moved_ms), mend=mend)
            if self._metrics is not None:
                self._metrics.count(CLOCK_STEPS, direction=FORWARD if moved_ms > 0 else BACK)
            return
        needed_ms = min(max(step.since_ms - self._since_ms, _LEAST_MS), _MOST_MS)
        if now_ms - step.since_ms >= needed_ms:
            _log.warning("clock_step_believed", moved_s=_seconds(difference_ms - self._difference_ms))
            self._difference_ms, self._since_ms, self._step = difference_ms, step.since_ms, None

    def _monotonic_ms(self) -> int:
        return int(1000 * self._monotonic())


def _seconds(milliseconds: int) -> float:
    return round(milliseconds / 1000, 1)
