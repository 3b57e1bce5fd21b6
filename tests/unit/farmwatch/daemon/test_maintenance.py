"""Maintenance: each job runs at its interval, and a failed job does not stop the others."""

from __future__ import annotations

from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from farmwatch.daemon.maintenance import HEARTBEAT_S, STATUS_S, Maintenance, PeriodicJob, jobs_of_tally
from farmwatch.share.rate_series import read_points
from scoring.rates.split_rates import rate_lines
from stream.memory.log import MemoryLog
from stream.processing.heartbeat import is_heartbeat
from stream.processing.metrics import Metrics
from stream.schema.records import SiteState, decode
from stream.schema.topics import HITS, SITES
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


def _tally(log: MemoryLog, clock: Clock, monotonic: Clock) -> Maintenance:
    jobs = jobs_of_tally(log, CONFIG.rate, Metrics(), LIVE, METHOD, clock, monotonic)
    return Maintenance(jobs, monotonic, lambda: 0.0)


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
    monotonic.now += 1
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
        log.append([row(f"s{n}.example", "human", articles=9, scored=9, flagged=9 * (n % 4 == 0)) for n in range(40)])
        clock.now += STATUS_S
        maintenance.run_due_jobs()
    (status,) = [event for event in events if event["event"] == "status"]
    assert (status["pages_fetched"], status["sites_open"], status["run"]) == (0, 0, "first")
    assert status["waiting"] == "crawl:1,tally:1"  # the heartbeat among the hits
    (line,) = rate_lines([decode(SiteState, message.value) for message in log.read(SITES, 0) if message.value])
    interval = f"(95% interval at every look {line.look_low:.1%} to {line.look_high:.1%}) of 40 sites"
    versions = f"ruleset {IN_FORCE.name} {IN_FORCE.digest[:8]}, detector x/1"
    assert status["share"] == f"{line.share:.1%} {interval}, {versions}"
