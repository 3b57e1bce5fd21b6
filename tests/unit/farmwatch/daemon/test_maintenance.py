"""The periodic work of a TALLY process; retention waits while the clock is in doubt."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import pytest
from prometheus_client import generate_latest
from structlog.testing import capture_logs

from farmwatch.daemon.maintenance import (
    HEARTBEAT_S,
    STATUS_S,
    Maintenance,
    PeriodicJob,
    RetentionRounds,
    jobs_of_tally,
    set_size_gauges,
)
from farmwatch.share.live_share import GAUGES_S
from farmwatch.share.rate_series import read_points
from scoring.rates.split_rates import rate_lines
from stream.log.contract import Log, Output, Topic
from stream.log.errors import LogUnavailable
from stream.memory.log import MemoryLog
from stream.processing.heartbeat import is_heartbeat
from stream.processing.metrics import Metrics
from stream.processing.steady_clock import SteadyClock
from stream.schema.control import Control
from stream.schema.records import SiteState, decode
from stream.schema.topics import DECISIONS, HITS, SITES, all_topics
from tests.support.runs.live_rows import CONFIG, IN_FORCE, LIVE, METHOD, YEAR_S, Clock, new_log, row


class _Times:
    """Maintenance with one job, which keeps the times of its starts."""

    def __init__(self, every_s: float, takes_s: float = 0.0, cpu_s: float = 0.0, **how: bool) -> None:
        self.clock, self._cpu, self.began = Clock(), Clock(), list[float]()
        self._takes_s, self._cpu_s = takes_s, cpu_s
        jobs = [PeriodicJob("job", every_s, self._work, **how)]
        self.maintenance = Maintenance(jobs, self.clock, self._cpu)

    def _work(self) -> None:
        self.began.append(self.clock.now)
        self.clock.now += self._takes_s
        self._cpu.now += self._cpu_s

    def run(self, seconds: int) -> list[float]:
        """Let time pass; returns the times of the starts, from the beginning on."""
        for _ in range(seconds):
            self.maintenance.run_due_jobs()
            self.clock.now += 1
        return [began - 1_000 for began in self.began]


@pytest.mark.parametrize(("at_once", "starts"), [(True, [0, 60, 120]), (False, [60, 120])])
def test_each_job_runs_at_its_interval(at_once: bool, starts: list[int]) -> None:
    """At once or after its first interval, and then each interval."""
    assert _Times(60, at_once=at_once).run(150) == starts


@pytest.mark.parametrize(("cpu_s", "rests", "interval_s"), [(60.0, True, 1200), (0.0, True, 300), (60.0, False, 300)])
def test_a_job_with_much_cpu_time_runs_less_often(cpu_s: float, rests: bool, interval_s: int) -> None:
    """A job takes at most a twentieth of a processor, but for one that must not rest. One that waits does not rest."""
    began = _Times(300, 60.0, cpu_s, rests=rests).run(3000)
    assert {later - earlier for earlier, later in pairwise(began)} == {interval_s}


def test_a_job_that_fails_does_not_end_the_others() -> None:
    """It is logged, the next job runs, and it is tried again at its next interval."""
    clock, tried, other = Clock(), list[float](), list[float]()

    def fail() -> None:
        tried.append(clock.now)
        raise ValueError("the disk is away")

    jobs = [PeriodicJob("bad", 10, fail, at_once=True), PeriodicJob("good", 10, lambda: other.append(clock.now))]
    maintenance = Maintenance(jobs, clock, clock)
    with capture_logs() as events:
        maintenance.run_due_jobs()
        clock.now += 10
        maintenance.run_due_jobs()
    assert (tried, other) == ([1_000, 1_010], [1_010])
    assert [(event["job"], event["error"]) for event in events] == [("bad", "ValueError: the disk is away")] * 2


@pytest.fixture
def log() -> MemoryLog:
    """A log with all topics."""
    return new_log()


def _tally(log: MemoryLog, clock: Clock, monotonic: Clock, cpu: Callable[[], float] = lambda: 0.0) -> Maintenance:
    steady = SteadyClock(wall=lambda: int(clock() * 1000), monotonic=monotonic)
    jobs = jobs_of_tally(log, CONFIG.rate, Metrics(), LIVE, METHOD, steady, monotonic)
    return Maintenance(jobs, monotonic, cpu)


def _heartbeats(log: MemoryLog) -> int:
    return sum(is_heartbeat(message) for partition in range(2) for message in log.read(HITS, partition))


def test_no_job_waits_for_a_clock_that_was_ahead(log: MemoryLog) -> None:
    """Jobs that run while the clock is a year ahead run again at their usual interval; points are appended then."""
    wall, monotonic = Clock(), Clock()
    maintenance = _tally(log, wall, monotonic)
    wall.now += YEAR_S
    maintenance.run_due_jobs()
    wall.now += HEARTBEAT_S - YEAR_S
    monotonic.now += HEARTBEAT_S
    maintenance.run_due_jobs()
    assert _heartbeats(log) == 2
    wall.now += CONFIG.rate.series_s
    monotonic.now += CONFIG.rate.series_s
    log.append([row("a", "llm")])
    assert list(read_points(log)) == []
    maintenance.run_due_jobs()
    assert list(read_points(log))


def test_the_status_line_shows_crawl_lag_and_share(log: MemoryLog) -> None:
    """The line comes at its interval and has the run (`first`), and the share with its interval and versions."""
    clock = Clock()
    maintenance = _tally(log, clock, clock)
    with capture_logs() as events:
        maintenance.run_due_jobs()
        assert not events
        log.append([Output(DECISIONS, 0, b"s1.example", b"a decision on a site that CRAWL does not have")])
        log.append([row(f"s{n}.example", "human", articles=9, scored=9, flagged=9 * (n % 4 == 0)) for n in range(40)])
        clock.now += STATUS_S
        maintenance.run_due_jobs()
    (status,) = [event for event in events if event["event"] == "status"]
    assert (status["pages_fetched"], status["sites_open"], status["run"]) == (0, 0, "first")
    assert status["waiting"] == "tally:1"  # the heartbeat among the hits
    (line,) = rate_lines([decode(SiteState, message.value) for message in log.read(SITES, 0) if message.value])
    interval = f"(95% interval {line.low:.1%} to {line.high:.1%}) of 40 sites"
    versions = f"ruleset {IN_FORCE.name} {IN_FORCE.digest[:8]}, detector x/1"
    looks = f"for repeated looks {line.look_low:.1%} to {line.look_high:.1%}"
    assert status["share"] == f"{line.share:.1%} {interval}, {versions}; {looks}"


def test_the_status_line_of_each_process_has_the_share_of_now(log: MemoryLog) -> None:
    """A process whose gauges rest since before the first score says the share, as the others do, not "none yet"."""
    clock = Clock()
    maintenance = _tally(log, clock, clock, cpu=itertools.count(0.0, 2.0).__next__)  # each job takes two seconds
    clock.now += GAUGES_S
    maintenance.run_due_jobs()
    log.append([row(f"s{n}.example", "human", articles=9, scored=9, flagged=9 * (n % 4 == 0)) for n in range(40)])
    clock.now += STATUS_S - GAUGES_S
    with capture_logs() as events:
        maintenance.run_due_jobs()
    (status,) = [event for event in events if event["event"] == "status"]
    assert re.match(r"[0-9.]+% \(95% interval", status["share"])


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
        clock = SteadyClock(wall=self._wall_ms, monotonic=self._monotonic)
        self.retention = RetentionRounds(self.log, clock, self._monotonic, self.renew)

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


def test_a_step_of_the_clock_removes_nothing() -> None:
    """While the clock is a year ahead for 20 minutes, nothing more is removed."""
    place = _Place()
    assert place.rounds(90) == ["expired"]
    place.wall_s += YEAR_S
    assert place.rounds(20) == ["clock_stepped"]
    place.wall_s -= YEAR_S
    assert place.rounds(5) == []
    assert place.kept == 2


def test_an_hour_confirms_a_clock_that_was_set() -> None:
    """The clock is wrong at the start and then corrected: an hour later retention uses it."""
    place = _Place()
    place.wall_s -= YEAR_S
    place.start()
    assert place.rounds(90) == []
    place.wall_s += YEAR_S
    assert place.rounds(60) == ["clock_stepped"]
    assert place.kept == 3
    assert place.rounds(10) == ["clock_step_believed", "expired"]
    assert place.kept == 2


def test_a_start_under_a_wrong_clock_removes_nothing() -> None:
    """A process starts twice while the clock is a year ahead: most of a topic is not removed."""
    place = _Place()
    place.wall_s += YEAR_S
    for _ in range(2):
        place.start()
        assert place.rounds(50) == ["retention_waits"]
    place.wall_s -= YEAR_S
    assert place.rounds(70) == ["clock_stepped", "clock_step_believed", "expired", "retention_resumed"]
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
