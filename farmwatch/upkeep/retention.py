"""Retention of the log, and the renewed offsets of idle groups: it waits while the clock is in doubt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from farmwatch.metrics import LOG_BYTES
from replay.runs.retention import offsets_to_keep, renew_idle
from stream.log.contract import Log
from stream.log.errors import TooMuchExpired
from stream.processing.metrics import Metrics
from stream.processing.steady_clock import ClockWatch
from stream.schema.control import Control

_log = structlog.get_logger()
_RENEW_S = 86_400.0  # a broker keeps the offsets of idle groups for a week
_UNCONFIRMED_SHARE = 0.5  # share of a topic that retention may remove before the clock is confirmed


@dataclass(slots=True)
class RetentionRounds:
    """Removes and compacts old records, except those that runs still need; once a day renews offsets of idle groups."""

    log: Log
    clocks: ClockWatch
    monotonic: Callable[[], float]  # seconds
    renew: Callable[[Log, Control], None] = renew_idle
    _renew_at: float = field(init=False, default=0.0)
    _is_waiting: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._renew_at = self.monotonic()

    def apply(self) -> None:
        """Apply retention once, unless the clock is in doubt."""
        control = Control(self.log)
        obstacle = self._expire(control)
        if obstacle and not self._is_waiting:
            _log.warning("retention_waits", why=obstacle, until="an hour confirms the clock", check="timedatectl")
        if self._is_waiting and not obstacle:
            _log.info("retention_resumed")
        self._is_waiting = bool(obstacle)
        if self.monotonic() >= self._renew_at:
            self.renew(self.log, control)
            self._renew_at = self.monotonic() + _RENEW_S

    def _expire(self, control: Control) -> str:
        """Apply retention once. Returns the reason if it has to wait, else ""."""
        clock = self.clocks.read()
        if clock.moved_s:
            return f"the clock moved by {clock.moved_s / 3600:+.1f} hours"
        now_ms = int(clock.wall_s * 1000)
        most = 1.0 if clock.is_confirmed else _UNCONFIRMED_SHARE
        try:
            freed = self.log.expire(now_ms, offsets_to_keep(self.log, control, now_ms), most=most)
        except TooMuchExpired as error:
            return str(error)
        if freed:
            _log.info("expired", bytes=freed)
        return ""


def set_size_gauges(log: Log, metrics: Metrics) -> None:
    """Set the gauges of the log's size; topics of replays count with those of the live run."""
    sizes: Counter[str] = Counter()
    for topic, size in log.sizes(list(log.topics())).items():
        sizes[topic.partition(".")[0]] += size.bytes
    for topic, size_bytes in sizes.items():
        metrics.set(LOG_BYTES, size_bytes, topic=topic)
