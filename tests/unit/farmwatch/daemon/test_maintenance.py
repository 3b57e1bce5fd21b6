"""Maintenance: heartbeats, retention, gauges and series; a failed job does not stop the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from prometheus_client import generate_latest
from structlog.testing import capture_logs

from farmwatch.config.config import Config, load
from farmwatch.daemon.maintenance import Maintenance
from farmwatch.share.rate_series import read_points
from filters.rules.ruleset import load_ruleset
from replay.runs.run_rules import RunRules
from scoring.rates.canary import CanaryName
from scoring.rates.split_rates import rate_lines
from stream.log.contract import NONE_NEEDED, CleanupPolicy, Output, Topic
from stream.log.errors import LogUnavailable
from stream.memory.log import MemoryLog
from stream.processing.heartbeat import is_heartbeat
from stream.processing.metrics import Metrics
from stream.schema.records import SiteState, Template, decode, encode
from stream.schema.runs import Run
from stream.schema.topics import HITS, SITES, TEMPLATES, all_topics

CONFIG: Config = load(None, ["log.partitions=2"], {}).config
METHOD = ("sprt", "0123abcd")
IN_FORCE = load_ruleset(CONFIG.judge.ruleset)
LIVE = RunRules(
    Run(name="live", ruleset=IN_FORCE.name, digest=IN_FORCE.digest, detector="x/1", epoch="e"), IN_FORCE.source
)


class _Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def _maintenance(
    log: MemoryLog, *clocks: Callable[[], float], metrics: Metrics | None = None, live: RunRules = LIVE, **more: Any
) -> Maintenance:
    """Maintenance with these clocks, wall and monotonic."""
    return Maintenance(log, CONFIG.up, CONFIG.rate, metrics or Metrics(), live, METHOD, *clocks, **more)


class _Log(MemoryLog):
    """Records the calls of retention, and calls `on_expire`."""

    def __init__(self) -> None:
        super().__init__()
        self.expired: list[int] = []
        self.on_expire: Callable[[], None] = lambda: None

    def expire(self, now_ms: int, needed: Mapping[str, Sequence[int]] = NONE_NEEDED, most: float = 1.0) -> int:
        self.on_expire()
        self.expired.append(now_ms)
        return 0


@pytest.fixture
def log() -> Iterator[_Log]:
    """A log with all topics."""
    log = _Log()
    log.create(all_topics(2, "e"))
    yield log
    log.close()


def _row(site: str, verdict: str, detector: str = "x/1", method: tuple[str, str] = METHOD, **more: Any) -> Output:
    versions = {"ruleset": IN_FORCE.name, "digest": IN_FORCE.digest, "method": method[0], "method_digest": method[1]}
    fields = {"detector": detector, "sources": ["file"], **versions, **more}
    return Output(SITES, 0, site.encode(), encode(SiteState(id=site, site=site, verdict=verdict, **fields)))


def _heartbeats(log: MemoryLog) -> int:
    return sum(is_heartbeat(message) for partition in range(2) for message in log.read(HITS, partition))


def test_each_job_runs_at_its_interval(log: _Log) -> None:
    """A heartbeat at the start and every minute; retention after its own interval."""
    clock = _Clock()
    maintenance = _maintenance(log, clock, clock)
    maintenance.run_due_jobs()
    maintenance.run_due_jobs()
    assert _heartbeats(log) == 1
    clock.now += CONFIG.up.heartbeat_s
    maintenance.run_due_jobs()
    assert (_heartbeats(log), log.expired) == (2, [])
    clock.now += CONFIG.up.retention_s
    maintenance.run_due_jobs()
    assert log.expired == [int(clock.now * 1000)]


@pytest.mark.parametrize(("cpu_s", "interval_s"), [(60.0, 1200), (0.0, CONFIG.up.retention_s)])
def test_a_job_with_much_cpu_time_runs_less_often(log: _Log, cpu_s: float, interval_s: float) -> None:
    """A job takes at most a twentieth of a processor. A job that only waits keeps its interval."""
    clock, cpu, began = _Clock(), _Clock(), list[float]()

    def take_a_minute() -> None:
        began.append(clock.now)
        clock.now += 60
        cpu.now += cpu_s

    log.on_expire = take_a_minute
    maintenance = _maintenance(log, clock, clock, cpu=cpu)
    while len(began) < 3:
        maintenance.run_due_jobs()
        clock.now += 1
    assert [round(later - earlier) for earlier, later in pairwise(began)] == [interval_s, interval_s]


YEAR_S = 365 * 86_400.0


class _Place:
    """A log with records of 100 days ago to today, and maintenance with a wall clock and a monotonic clock."""

    def __init__(self) -> None:
        self.wall_s, self.monotonic_s = 1_700_000_000.0, 50.0
        self.log = MemoryLog(clock=self._wall_ms)
        self.log.create(all_topics(2, "e"))
        for age_days in (100, 1, 0):
            self.log.append([Output(HITS, 0, b"k", b"", timestamp_ms=self._wall_ms() - age_days * 86_400_000)])
        self.start()

    def start(self) -> None:
        """Start a new process."""
        self.maintenance = _maintenance(self.log, lambda: self.wall_s, lambda: self.monotonic_s)

    def rounds(self, minutes: float) -> list[str]:
        """Let time pass, with retention every five minutes; returns the logged events."""
        with capture_logs() as events:
            for _ in range(int(minutes / 5)):
                self.wall_s += 300
                self.monotonic_s += 300
                self.maintenance.apply_retention()
        return [event["event"] for event in events]

    @property
    def kept(self) -> int:
        """Number of hits that remain."""
        return self.log.end(HITS)[0] - self.log.beginning(HITS)[0]

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


def test_no_job_waits_for_a_clock_that_was_ahead(log: _Log) -> None:
    """Jobs that run while the clock is a year ahead run again at their usual interval."""
    wall, monotonic = _Clock(), _Clock()
    maintenance = _maintenance(log, wall, monotonic)
    wall.now += YEAR_S
    maintenance.run_due_jobs()
    wall.now += CONFIG.up.heartbeat_s - YEAR_S
    monotonic.now += CONFIG.up.heartbeat_s
    maintenance.run_due_jobs()
    assert _heartbeats(log) == 2
    wall.now += CONFIG.rate.series_s
    log.append([_row("a", "llm")])
    before = len(list(read_points(log)))
    maintenance.run_due_jobs()
    assert len(list(read_points(log))) > before


def test_offsets_of_idle_runs_are_renewed_once_a_day(log: _Log) -> None:
    """With the first retention, and not again within a day; after a failure with the next retention."""
    clock, renewed = _Clock(), list[float]()

    def renew(*_: object) -> None:
        renewed.append(clock.now)
        if len(renewed) == 1:
            raise LogUnavailable("the broker is away")

    maintenance = _maintenance(log, clock, clock, renew=renew)
    for hour in (1, 2, 3, 24, 26):
        clock.now = 1_000.0 + hour * 3600
        maintenance.run_due_jobs()
    assert renewed == [1_000.0 + hour * 3600 for hour in (1, 2, 26)]


def test_a_job_that_fails_does_not_end_the_others(log: _Log) -> None:
    """If retention fails, the heartbeat is still sent, and retention is retried."""
    clock = _Clock()
    maintenance = _maintenance(log, clock, clock)

    def fail() -> None:
        raise LogUnavailable("the disk is away")

    log.on_expire = fail
    clock.now += CONFIG.up.retention_s
    maintenance.run_due_jobs()
    assert _heartbeats(log) == 1
    log.on_expire = lambda: None
    clock.now += CONFIG.up.retention_s
    maintenance.run_due_jobs()
    assert len(log.expired) == 1


def test_gauges_show_the_newest_rows_of_the_detector_in_use(log: _Log) -> None:
    """A changed verdict is shown, sites of other detectors do not count, and odd names of sources are `other`."""
    metrics = Metrics()
    maintenance = _maintenance(log, _Clock(), metrics=metrics)
    log.append(
        [_row("a", "undecided"), _row("b", "human"), _row("c", "llm", "y/1"), _row("d", "llm", sources=["We!rd"])]
    )
    maintenance.update_gauges()
    assert _value(metrics, 'sites{ruleset="default",run="first",verdict="undecided"}') == 1
    log.append([_row("a", "llm")])
    maintenance.update_gauges()
    assert _value(metrics, 'sites{ruleset="default",run="first",verdict="llm"}') == 2
    assert _value(metrics, 'sites{ruleset="default",run="first",verdict="undecided"}') == 0
    rate = 'farm_rate{bound="point",ruleset="default",run="first",source="%s"}'
    assert _value(metrics, rate % "all") == pytest.approx(2 / 3)
    assert _value(metrics, rate % "file") == 0.5
    assert _value(metrics, rate % "other") == 1.0


def test_the_share_and_its_alarm_are_gauges(log: _Log) -> None:
    """For each definition, the share and the interval of every look are gauges, with the method and number of sites.

    Sources have those of sites. Without a share there is no point. The alarm is 1 once new sites have another share.
    """
    metrics = Metrics()
    maintenance = _maintenance(log, _Clock(), metrics=metrics)
    old = [(9, 8)] * 10 + [(9, 0)] * 90

    def rows(cells: list[tuple[int, int]], start: int, day: int) -> list[Output]:
        return [
            _row(f"s{n}.d{n}.com", "undecided", scored=cell[0], flagged=cell[1], days=[day], hits=2)
            for n, cell in enumerate(cells, start)
        ]

    def shares() -> dict[tuple[str, ...], float]:
        names = "source", "definition", "method", "bound"
        return {
            tuple(sample.labels[name] for name in names): sample.value
            for family in metrics.registry.collect()
            for sample in family.samples
            if sample.name == "farmwatch_share"
        }

    changed = 'share_changed{detector="x/1",ruleset="default",run="first"}'
    rest_on = 'share_sites{definition="%s",detector="x/1",method="%s",ruleset="default",run="first",source="%s"}'
    log.append(rows(old[:2], 0, 20_000))
    maintenance.update_gauges()
    assert {bound for *_, bound in shares()} == {"low", "high"}
    assert {method for _, _, method, _ in shares()} == {"too few sites"}
    assert _value(metrics, rest_on % ("sites", "too few sites", "all")) == 2
    log.append([*rows(old, 0, 20_000), _row("none.com", "unclassifiable", articles=0, scored=0)])
    maintenance.update_gauges()
    assert _value(metrics, rest_on % ("sites", "too few sites", "all")) is None
    for definition, source in (("sites", "all"), ("domains", "all"), ("results", "all"), ("sites", "file")):
        assert _value(metrics, rest_on % (definition, "direct", source)) == 100
    found = shares()
    for definition in ("sites", "domains", "results", "ranked-results"):
        low, point, high = (found["all", definition, "direct", bound] for bound in ("low", "point", "high"))
        assert low < point < high and point == pytest.approx(0.1, abs=0.03)
    assert found["file", "sites", "direct", "point"] == found["all", "sites", "direct", "point"]
    assert {source for source, *_ in found} == {"all", "file"} and len(found) == 15
    assert _value(metrics, changed) == 0
    log.append(rows([(9, 8)] * 60, 1000, 20_010))
    maintenance.update_gauges()
    assert _value(metrics, changed) == 1


def test_verdicts_that_are_too_old_are_a_gauge(log: _Log) -> None:
    """A site whose term expired long ago counts as expired, and not by its verdict."""
    metrics = Metrics()
    maintenance = _maintenance(log, _Clock(), metrics=metrics)
    log.append([_row("old.com", "llm", term_start=1, term_end=2), _row("new.com", "llm")])
    maintenance.update_gauges()
    assert _value(metrics, 'sites_expired{ruleset="default",run="first"}') == 1
    assert _value(metrics, 'sites{ruleset="default",run="first",verdict="llm"}') == 1


def test_gauges_of_a_run_without_rows_name_that_run(log: _Log) -> None:
    """After a cutover to a run without rows, the gauges are 0 and have its name."""
    metrics = Metrics()
    moved = RunRules(msgspec.structs.replace(LIVE.run, name="mine"), LIVE.text)
    log.create([Topic("sites.mine", 2, CleanupPolicy.COMPACT)])
    _maintenance(log, _Clock(), metrics=metrics, live=moved).update_gauges()
    shown = [sample for family in metrics.registry.collect() for sample in family.samples if "run" in sample.labels]
    assert {(sample.labels["run"], sample.value) for sample in shown if sample.name == "farmwatch_sites"} == {
        ("mine", 0)
    }
    assert {sample.labels["run"] for sample in shown} == {"mine"}


@pytest.mark.parametrize(
    "other",
    [
        {"digest": "0" * 16},
        {"digest": "f" * 16},
        {"ruleset": "notes", "digest": "1" * 16},
        {"detector": "y/1"},
        {"method": ("sprt", "ffff0000")},
        {"method": ("deciles", "0123abcd")},
        {"method": ("sprt", "")},
    ],
    ids=str,
)
def test_rows_of_other_versions_do_not_count(log: _Log, other: dict[str, Any]) -> None:
    """Rows of an earlier ruleset text, another ruleset, detector or site method are in no gauge and no series."""
    metrics = Metrics()
    log.append([_row(f"old{n}", "llm", **other) for n in range(5)])
    log.append([_row("new", "human"), _row("b", "llm"), _row("unjudged", "unclassifiable", ruleset="", digest="")])
    maintenance = _maintenance(log, _Clock(), metrics=metrics)
    maintenance.update_gauges()
    for verdict, count in {"llm": 1, "human": 1, "unclassifiable": 1, "undecided": 0}.items():
        assert _value(metrics, f'sites{{ruleset="default",run="first",verdict="{verdict}"}}') == count
    assert _value(metrics, 'farm_rate{bound="point",ruleset="default",run="first",source="all"}') == 0.5
    assert 'ruleset="notes"' not in generate_latest(metrics.registry).decode()
    maintenance.append_points(1.0)
    (point,) = [point for point in read_points(log) if not point.by]
    assert (point.llm, point.human, point.site_method, point.site_method_digest) == (1, 1, *METHOD)


def test_the_ruleset_in_force_has_its_gauges_before_its_first_verdict(log: _Log) -> None:
    """In an empty log, the gauges of the active ruleset are 0, and no gauge lacks a ruleset."""
    metrics = Metrics()
    maintenance = _maintenance(log, _Clock(), metrics=metrics)
    maintenance.update_gauges()
    assert _value(metrics, 'sites{ruleset="default",run="first",verdict="llm"}') == 0
    log.append([_row("unjudged", "unclassifiable", ruleset="", digest="")])
    maintenance.update_gauges()
    page = generate_latest(metrics.registry).decode()
    assert not any('ruleset=""' in line for line in page.splitlines() if line.startswith("farmwatch_sites{"))


def _value(metrics: Metrics, name: str) -> float | None:
    for line in generate_latest(metrics.registry).decode().splitlines():
        if line.startswith(f"farmwatch_{name} "):
            return float(line.rpartition(" ")[2])
    return None


def test_the_status_line_shows_crawl_lag_and_share(log: _Log) -> None:
    """The line comes at its interval and has the run (`first`), and the share with its interval and versions."""
    clock = _Clock()
    maintenance = _maintenance(log, clock, clock)
    log.append([_row("a", "llm"), _row("b", "human")])
    with capture_logs() as before:
        maintenance.run_due_jobs()
    maintenance.update_gauges()
    clock.now += CONFIG.up.status_s
    with capture_logs() as events:
        maintenance.run_due_jobs()
    (status,) = [event for event in events if event["event"] == "status"]
    assert not any(event["event"] == "status" for event in before)
    assert (status["pages_fetched"], status["sites_open"], status["share"]) == (0, 0, "none yet")
    assert (status["run"], status["waiting"]) == ("first", "crawl:1,tally:1")  # the heartbeat among the hits
    log.append([_row(f"s{n}.example", "human", articles=9, scored=9, flagged=9 * (n % 4 == 0)) for n in range(40)])
    maintenance.update_gauges()
    clock.now += CONFIG.up.status_s
    with capture_logs() as events:
        maintenance.run_due_jobs()
    share = next(event["share"] for event in events if event["event"] == "status")
    (line,) = rate_lines([decode(SiteState, m.value) for m in log.read(SITES, 0) if m.value])
    said = f"(95% interval at every look {line.look_low:.1%} to {line.look_high:.1%}) of 40 sites"
    assert share == f"{line.share:.1%} {said}, ruleset {IN_FORCE.name} {IN_FORCE.digest[:8]}, detector x/1"


def test_points_are_appended_at_each_full_interval(log: _Log) -> None:
    """At the start of each hour, points are appended for the active ruleset only."""
    clock = _Clock()
    maintenance = _maintenance(log, clock, clock)
    log.append([_row("a", "llm"), _row("old", "human", digest="0" * 16), _row("b", "human", "y/1")])
    maintenance.run_due_jobs()
    assert list(read_points(log)) == []
    for now in (3599.0, 3600.0, 7199.0, 7200.5):
        clock.now = now
        maintenance.run_due_jobs()
    whole = [point for point in read_points(log) if not point.by]
    assert [(point.at, point.llm, point.human) for point in whole] == [(3_600_000, 1, 0), (7_200_000, 1, 0)]


def test_a_wrong_clock_writes_no_point(log: _Log) -> None:
    """While the clock is a year ahead, no point is written. After a step back of half an hour, existing points stay."""
    wall, monotonic = _Clock(), _Clock()
    maintenance = _maintenance(log, wall, monotonic)
    log.append([_row("a", "llm")])

    def after(seconds: float, jump_s: float = 0.0) -> list[tuple[int, int]]:
        wall.now += seconds + jump_s
        monotonic.now += seconds
        maintenance.run_due_jobs()
        return [(point.at // 3_600_000, point.llm) for point in read_points(log) if not point.by]

    assert after(3000) == [(1, 1)]
    assert after(30, YEAR_S) == after(30, -YEAR_S) == [(1, 1)]
    assert after(3600) == [(1, 1), (2, 1)]
    log.append([_row("b", "llm")])
    assert after(60, -1800) == after(1800) == [(1, 1), (2, 1)]
    assert after(3600) == [(1, 1), (2, 1), (3, 2)]


def test_canaries_have_gauges_of_their_own(log: _Log) -> None:
    """Canaries have gauges: sites by truth and verdict, shares, and the last canary's time; none before the first."""
    metrics = Metrics()
    clock = _Clock()
    maintenance = _maintenance(log, clock, clock, metrics=metrics)
    log.append([_row("a", "llm")])
    maintenance.update_gauges()
    assert "canary_sites{" not in generate_latest(metrics.registry).decode()
    for number, verdict in enumerate(("llm", "human", "human", "human")):
        log.append([_row(CanaryName(f"x{number}", f"{number:016x}", 9, 1, "human").site, verdict, updated_at=900_000)])
    maintenance.update_gauges()
    assert _value(metrics, 'canary_sites{truth="human",verdict="human"}') == 3
    assert _value(metrics, 'canary_sites{truth="llm",verdict="llm"}') == 0
    assert _value(metrics, 'canary_share{kind="site_fpr"}') == 0.25
    assert _value(metrics, "canary_timestamp_seconds") == 900
    assert _value(metrics, 'sites{ruleset="default",run="first",verdict="human"}') == 0
    assert _value(metrics, 'farm_rate{bound="point",ruleset="default",run="first",source="all"}') == 1


def test_the_size_of_the_log_is_shown_at_once() -> None:
    """Topics of runs count with the live run's topic."""
    log, metrics = MemoryLog(), Metrics()
    log.create([*all_topics(2, "e"), Topic("hits.other", 1)])
    log.append([Output(topic, 0, b"k", b"x" * 100) for topic in (HITS, "hits.other")])
    _maintenance(log, metrics=metrics).run_due_jobs()
    page = generate_latest(metrics.registry).decode()
    sizes = dict(re.findall(r'farmwatch_log_bytes{topic="([\w-]+)"} (\S+)', page))
    assert float(sizes["hits"]) >= 200 and float(sizes["verdicts"]) == 0
    assert set(sizes) >= {"state", "score", "dead-letters"}


def test_sites_that_share_a_template_are_a_gauge(log: _Log) -> None:
    """By rank; a template of one site has none. They are counted again when there are new ones."""
    clock, metrics = _Clock(), Metrics()
    maintenance = _maintenance(log, clock, clock, metrics=metrics)

    def gauges(*rows: tuple[str, bytes]) -> list[float]:
        records = [Template(id="1", site=site, url="", sketch=sketch * 64) for site, sketch in rows]
        log.append([Output(TEMPLATES, 0, f"{one.site} 1".encode(), encode(one)) for one in records])
        clock.now += 60
        maintenance.run_due_jobs()
        page = generate_latest(metrics.registry).decode()
        found = dict(re.findall(r'farmwatch_template_sites{rank="(\w+)"} (\S+)', page))
        return [float(found[rank]) for rank in ("1", "2", "5", "all")]

    assert gauges(("a.example", b"1"), ("b.example", b"1"), ("c.example", b"2")) == [2, 0, 0, 3]
    assert gauges(("d.example", b"2"), ("e.example", b"2")) == [3, 2, 0, 5]
