"""CPU time that the log costs a process: in the loop's thread by operation, and in the log's own threads.

Measured, reads of state on a sample: the share of `process_cpu_seconds_total` is the cost of exactly-once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

from stream.processing.metrics import Metrics

P = ParamSpec("P")
T = TypeVar("T")
_LOG_THREADS = ("kafka-io", "network-thread", "log-lease")  # in the names of kafka-python's threads and ours
_TIMED = 17  # reads of state; a prime, for stages read in turns of two, four and more
_TICK_S = 0.01  # USER_HZ is 100 on every Linux that Python runs on


class LogCpu:
    """Counts into `log_cpu_seconds_total{operation}`; used from the loop's thread only."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._threads: dict[int, float] = {}
        self._state_s = 0.0  # spent on reads of state, and not counted yet: a count costs as much as a read
        self._reads = 0

    @contextmanager
    def timed(self, operation: str) -> Iterator[None]:
        started = time.thread_time()
        try:
            yield
        finally:
            self._metrics.count("log_cpu_seconds", time.thread_time() - started, operation=operation)
            if self._state_s:
                self._metrics.count("log_cpu_seconds", self._state_s, operation="state")
                self._state_s = 0.0

    def sampled(self, read: Callable[P, T]) -> Callable[P, T]:
        """`read`, of which one call in _TIMED is timed and counts for all: the clock can cost as much as a read."""

        def call(*args: P.args, **options: P.kwargs) -> T:
            self._reads += 1
            if self._reads % _TIMED:
                return read(*args, **options)
            started = time.thread_time()
            try:
                return read(*args, **options)
            finally:
                self._state_s += _TIMED * (time.thread_time() - started)

        return call

    def look_at_threads(self) -> None:
        """Count what the log's own threads have spent since the last look (Linux; nothing elsewhere)."""
        for thread in threading.enumerate():
            number = thread.native_id
            if number is None or not any(part in thread.name for part in _LOG_THREADS):
                continue
            spent = _thread_cpu_s(number)
            more = max(0.0, spent - self._threads.get(number, 0.0))
            self._metrics.count("log_cpu_seconds", more, operation="threads")
            self._threads[number] = spent


def _thread_cpu_s(number: int) -> float:
    try:
        fields = Path(f"/proc/self/task/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) * _TICK_S
