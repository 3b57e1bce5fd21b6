"""Retention waits while the clock is in doubt, and renews the offsets of idle groups."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

from prometheus_client import generate_latest
from structlog.testing import capture_logs

from farmwatch.daemon.maintenance import RetentionRounds, set_size_gauges
from stream.log.contract import Log, Output, Topic
from stream.log.errors import LogUnavailable
from stream.memory.log import MemoryLog
from stream.processing.metrics import Metrics
from stream.processing.steady_clock import ClockWatch
from stream.schema.control import Control
from stream.schema.topics import HITS, all_topics

YEAR_S = 365 * 86_400.0


class _Place:
    """A log with records of 100 days ago to today, and retention with a wall clock and a monotonic clock."""

    def __init__(self, renew: Callable[[Log, Control], None] = lambda *_: None) -> None:
        self.renew = renew
        self.wall_s, self.monotonic_s = 1_700_000_000.0, 50.0
        self.log = MemoryLog(clock=self._wall_ms)
        self.log.create(all_topics(2, "e"))
        for age_days in (100, 1, 0):
            self.log.append([Output(HITS, 0, b"k", b"", timestamp_ms=self._wall_ms() - age_days * 86_400_000)])
        self.start()

    def start(self) -> None:
        """Start a new process."""
        self.retention = RetentionRounds(
            self.log, ClockWatch(lambda: self.wall_s, self._monotonic), self._monotonic, self.renew
        )

    def rounds(self, minutes: float) -> list[str]:
        """Let time pass, with retention every five minutes; returns the logged events."""
        with capture_logs() as events:
            for _ in range(int(minutes / 5)):
                self.wall_s += 300
                self.monotonic_s += 300
                self.retention.apply()
        return [event["event"] for event in events]

    @property
    def kept(self) -> int:
        """Number of hits that remain."""
        return self.log.end(HITS)[0] - self.log.beginning(HITS)[0]

    def _monotonic(self) -> float:
        return self.monotonic_s

    def _wall_ms(self) -> int:
        return int(self.wall_s * 1000)


def test_retention_waits_while_the_clock_is_wrong() -> None:
    """While the clock is a year ahead for 20 minutes, nothing is removed; one event reports it, and one its end."""
    place = _Place()
    assert place.rounds(90) == ["expired"]
    place.wall_s += YEAR_S
    assert place.rounds(20) == ["retention_waits"]
    place.wall_s -= YEAR_S
    assert place.rounds(5) == ["retention_resumed"]
    assert place.kept == 2


def test_an_hour_confirms_a_clock_that_was_set() -> None:
    """The clock is wrong at the start and then corrected: an hour later retention uses it."""
    place = _Place()
    place.wall_s -= YEAR_S
    place.start()
    assert place.rounds(90) == []
    place.wall_s += YEAR_S
    assert place.rounds(60) == ["retention_waits"]
    assert place.kept == 3
    assert place.rounds(10) == ["expired", "retention_resumed"]
    assert place.kept == 2


def test_a_clock_that_creeps_is_noticed() -> None:
    """If the clock moves by 50 minutes between checks, retention waits, as after one large step."""
    place = _Place()
    assert place.rounds(90) == ["expired"]
    said = []
    for _ in range(6):
        place.wall_s += 50 * 60
        said += place.rounds(5)
    assert said == ["retention_waits"]


def test_a_start_under_a_wrong_clock_removes_nothing() -> None:
    """A process starts twice while the clock is a year ahead: most of a topic is not removed."""
    place = _Place()
    place.wall_s += YEAR_S
    for _ in range(2):
        place.start()
        assert place.rounds(50) == ["retention_waits"]
    place.wall_s -= YEAR_S
    assert place.rounds(70) == ["expired", "retention_resumed"]
    assert place.kept == 2


def test_a_log_that_was_idle_for_long_expires() -> None:
    """After a year without a process, most of a topic is removed once the process has run for an hour."""
    place = _Place()
    place.wall_s += YEAR_S
    place.monotonic_s = 10.0
    place.start()
    assert place.rounds(55) == ["retention_waits"]
    assert place.rounds(10) == ["expired", "retention_resumed"]
    assert place.kept == 0


def test_offsets_of_idle_runs_are_renewed_once_a_day() -> None:
    """With the first retention, and not again within a day; after a failure with the next retention."""
    renewed = list[float]()

    def renew(*_: object) -> None:
        renewed.append(place.monotonic_s)
        if len(renewed) == 1:
            raise LogUnavailable("the broker is away")

    place = _Place(renew)
    for hour in (1, 2, 3, 24, 27):
        place.monotonic_s = 3600.0 * hour
        with suppress(LogUnavailable):
            place.retention.apply()
    assert renewed == [3600.0 * hour for hour in (1, 2, 27)]


def test_the_size_of_the_log_is_a_gauge() -> None:
    """Topics of runs count with the live run's topic."""
    log, metrics = MemoryLog(), Metrics()
    log.create([*all_topics(2, "e"), Topic("hits.other", 1)])
    log.append([Output(topic, 0, b"k", b"x" * 100) for topic in (HITS, "hits.other")])
    set_size_gauges(log, metrics)
    page = generate_latest(metrics.registry).decode()
    sizes = dict(re.findall(r'farmwatch_log_bytes{topic="([\w-]+)"} (\S+)', page))
    assert float(sizes["hits"]) >= 200 and float(sizes["verdicts"]) == 0
    assert set(sizes) >= {"state", "score", "dead-letters"}
