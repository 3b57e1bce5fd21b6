"""Upkeep: heartbeats, retention and the overview, none of which may end the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from prometheus_client import generate_latest
from structlog.testing import capture_logs

from farmwatch.config.config import Config, load
from farmwatch.daemon.maintenance import Upkeep
from farmwatch.daemon.rate_series import read_points
from filters.rules.ruleset import load_ruleset
from replay.runs.run_rules import RunRules
from scoring.rates.canary import CanaryName
from stream.log.contract import NONE_NEEDED, CleanupPolicy, Output, Topic
from stream.log.errors import LogUnavailable
from stream.memory.log import MemoryLog
from stream.processing.heartbeat import is_heartbeat
from stream.processing.metrics import Metrics
from stream.schema.records import SiteState, encode
from stream.schema.runs import Run
from stream.schema.topics import HITS, SITES, all_topics

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


def _upkeep(
    log: MemoryLog, *clocks: Callable[[], float], metrics: Metrics | None = None, live: RunRules = LIVE
) -> Upkeep:
    """Upkeep with these clocks, wall and monotonic."""
    return Upkeep(log, CONFIG.up, CONFIG.rate, metrics or Metrics(), live, METHOD, *clocks)


class _Log(MemoryLog):
    """Counts retention, and fails at it when told."""

    def __init__(self) -> None:
        super().__init__()
        self.expired: list[int] = []
        self.broken = False

    def expire(self, now_ms: int, needed: Mapping[str, Sequence[int]] = NONE_NEEDED, most: float = 1.0) -> int:
        if self.broken:
            raise LogUnavailable("the disk is away")
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
    """A heartbeat at once and every minute; retention after its own interval."""
    clock = _Clock()
    upkeep = _upkeep(log, clock, clock)
    upkeep.round()
    upkeep.round()
    assert _heartbeats(log) == 1
    clock.now += CONFIG.up.heartbeat_s
    upkeep.round()
    assert (_heartbeats(log), log.expired) == (2, [])
    clock.now += CONFIG.up.retention_s
    upkeep.round()
    assert log.expired == [int(clock.now * 1000)]


def test_a_job_that_takes_long_is_done_less_often(log: _Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a twentieth of the time at most: over a million sites a look takes longer than the interval of looks."""
    clock, began = _Clock(), []

    def expire(*_: Any, **__: Any) -> int:
        began.append(clock.now)
        clock.now += 60
        return 0

    monkeypatch.setattr(log, "expire", expire)
    upkeep = _upkeep(log, clock, clock)
    while len(began) < 3:
        upkeep.round()
        clock.now += 1
    assert [round(later - earlier) for earlier, later in pairwise(began)] == [1200, 1200]


YEAR_S = 365 * 86_400.0


class _Place:
    """A log with records of a day ago, and upkeep with a wall clock and a monotonic clock that the test moves."""

    def __init__(self) -> None:
        self.wall_s, self.monotonic_s = 1_700_000_000.0, 50.0
        self.log = MemoryLog(clock=self._wall_ms)
        self.log.create(all_topics(2, "e"))
        for age_days in (100, 1, 0):
            self.log.append([Output(HITS, 0, b"k", b"", timestamp_ms=self._wall_ms() - age_days * 86_400_000)])
        self.start()

    def start(self) -> None:
        """A process starts."""
        self.upkeep = Upkeep(
            self.log, CONFIG.up, CONFIG.rate, Metrics(), LIVE, METHOD, lambda: self.wall_s, lambda: self.monotonic_s
        )

    def rounds(self, minutes: float) -> list[str]:
        """Let time pass, with a round of retention every five minutes; the events that were said."""
        with capture_logs() as events:
            for _ in range(int(minutes / 5)):
                self.wall_s += 300
                self.monotonic_s += 300
                self.upkeep.expire()
        return [event["event"] for event in events]

    @property
    def kept(self) -> int:
        """Hits that are still there."""
        return self.log.end(HITS)[0] - self.log.beginning(HITS)[0]

    def _wall_ms(self) -> int:
        return int(self.wall_s * 1000)


def test_retention_waits_while_the_clock_is_wrong() -> None:
    """The clock goes a year ahead, for 20 minutes: nothing is removed, one line says so, and one that it goes on."""
    place = _Place()
    assert place.rounds(90) == ["expired"]
    place.wall_s += YEAR_S
    assert place.rounds(20) == ["retention_waits"]
    place.wall_s -= YEAR_S
    assert place.rounds(5) == ["retention_resumed"]
    assert place.kept == 2


def test_an_hour_confirms_a_clock_that_was_set() -> None:
    """The clock was wrong when the process started, and is set right: after an hour retention goes by it."""
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
    """Each look finds it 50 minutes further: retention waits, as after one large step."""
    place = _Place()
    assert place.rounds(90) == ["expired"]
    said = []
    for _ in range(6):
        place.wall_s += 50 * 60
        said += place.rounds(5)
    assert said == ["retention_waits"]


def test_a_start_under_a_wrong_clock_removes_nothing() -> None:
    """A process that starts, and starts again, while the clock is a year ahead: most of a topic is not removed."""
    place = _Place()
    place.wall_s += YEAR_S
    for _ in range(2):
        place.start()
        assert place.rounds(50) == ["retention_waits"]
    place.wall_s -= YEAR_S
    assert place.rounds(70) == ["expired", "retention_resumed"]
    assert place.kept == 2


def test_a_log_that_was_idle_for_long_expires() -> None:
    """Started again after a year: what is most of a topic goes once the process has run for an hour."""
    place = _Place()
    place.wall_s += YEAR_S
    place.monotonic_s = 10.0
    place.start()
    assert place.rounds(55) == ["retention_waits"]
    assert place.rounds(10) == ["expired", "retention_resumed"]
    assert place.kept == 0


def test_no_job_waits_for_a_clock_that_was_ahead(log: _Log) -> None:
    """A round while the clock is a year ahead does not put off the next one by a year."""
    wall, monotonic = _Clock(), _Clock()
    upkeep = _upkeep(log, wall, monotonic)
    wall.now += YEAR_S
    upkeep.round()
    wall.now += CONFIG.up.heartbeat_s - YEAR_S
    monotonic.now += CONFIG.up.heartbeat_s
    upkeep.round()
    assert _heartbeats(log) == 2
    wall.now += CONFIG.rate.series_s
    log.append([_row("a", "llm")])
    before = len(list(read_points(log)))
    upkeep.round()
    assert len(list(read_points(log))) > before


def test_offsets_of_idle_runs_are_renewed_once_a_day(log: _Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the first round of retention, not with those that follow within a day; after a failure with the next."""
    clock, renewed = _Clock(), list[float]()

    def renew(*_: object) -> None:
        renewed.append(clock.now)
        if len(renewed) == 1:
            raise LogUnavailable("the broker is away")

    monkeypatch.setattr("farmwatch.daemon.maintenance.renew_idle", renew)
    upkeep = _upkeep(log, clock, clock)
    for hour in (1, 2, 3, 24, 26):
        clock.now = 1_000.0 + hour * 3600
        upkeep.round()
    assert renewed == [1_000.0 + hour * 3600 for hour in (1, 2, 26)]


def test_a_job_that_fails_does_not_end_the_others(log: _Log) -> None:
    """Retention fails, the heartbeat of the same round is sent, and retention is tried again."""
    clock = _Clock()
    upkeep = _upkeep(log, clock, clock)
    log.broken = True
    clock.now += CONFIG.up.retention_s
    upkeep.round()
    assert _heartbeats(log) == 1
    log.broken = False
    clock.now += CONFIG.up.retention_s
    upkeep.round()
    assert len(log.expired) == 1


def test_the_overview_shows_the_newest_rows_of_the_detector_in_use(log: _Log) -> None:
    """Gauges follow the topic: a changed verdict moves, other detectors' sites do not count, sources stay bounded."""
    metrics = Metrics()
    upkeep = _upkeep(log, _Clock(), metrics=metrics)
    log.append(
        [_row("a", "undecided"), _row("b", "human"), _row("c", "llm", "y/1"), _row("d", "llm", sources=["We!rd"])]
    )
    upkeep.look()
    assert _value(metrics, 'sites{ruleset="default",run="first",verdict="undecided"}') == 1
    log.append([_row("a", "llm")])
    upkeep.look()
    assert _value(metrics, 'sites{ruleset="default",run="first",verdict="llm"}') == 2
    assert _value(metrics, 'sites{ruleset="default",run="first",verdict="undecided"}') == 0
    rate = 'farm_rate{bound="point",ruleset="default",run="first",source="%s"}'
    assert _value(metrics, rate % "all") == pytest.approx(2 / 3)
    assert _value(metrics, rate % "file") == 0.5
    assert _value(metrics, rate % "other") == 1.0


def test_the_share_and_its_alarm_are_gauges(log: _Log) -> None:
    """Of each definition the point and the interval of every look, with its method; sources have that of sites.

    No point where no number is named. The alarm is 1 once new sites have another share.
    """
    metrics = Metrics()
    upkeep = _upkeep(log, _Clock(), metrics=metrics)
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
    log.append(rows(old[:2], 0, 20_000))
    upkeep.look()
    assert {bound for *_, bound in shares()} == {"low", "high"}
    assert {method for _, _, method, _ in shares()} == {"too few sites"}
    log.append(rows(old, 0, 20_000))
    upkeep.look()
    found = shares()
    for definition in ("sites", "domains", "results", "ranked-results"):
        low, point, high = (found["all", definition, "direct", bound] for bound in ("low", "point", "high"))
        assert low < point < high and point == pytest.approx(0.1, abs=0.03)
    assert found["file", "sites", "direct", "point"] == found["all", "sites", "direct", "point"]
    assert {source for source, *_ in found} == {"all", "file"} and len(found) == 15
    assert _value(metrics, changed) == 0
    log.append(rows([(9, 8)] * 60, 1000, 20_010))
    upkeep.look()
    assert _value(metrics, changed) == 1


def test_the_overview_of_a_run_without_rows_names_that_run(log: _Log) -> None:
    """After a cutover to a run that has no row yet, its gauges stand at 0 under its own name."""
    metrics = Metrics()
    moved = RunRules(msgspec.structs.replace(LIVE.run, name="mine"), LIVE.text)
    log.create([Topic("sites.mine", 2, CleanupPolicy.COMPACT)])
    _upkeep(log, _Clock(), metrics=metrics, live=moved).look()
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
def test_rows_that_are_not_in_force_are_nowhere(log: _Log, other: dict[str, Any]) -> None:
    """Of an earlier text of the ruleset, of another ruleset, detector, test or number: in no gauge and no series."""
    metrics = Metrics()
    log.append([_row(f"old{n}", "llm", **other) for n in range(5)])
    log.append([_row("new", "human"), _row("b", "llm"), _row("unjudged", "unclassifiable", ruleset="", digest="")])
    upkeep = _upkeep(log, _Clock(), metrics=metrics)
    upkeep.look()
    for verdict, count in {"llm": 1, "human": 1, "unclassifiable": 1, "undecided": 0}.items():
        assert _value(metrics, f'sites{{ruleset="default",run="first",verdict="{verdict}"}}') == count
    assert _value(metrics, 'farm_rate{bound="point",ruleset="default",run="first",source="all"}') == 0.5
    assert 'ruleset="notes"' not in generate_latest(metrics.registry).decode()
    upkeep.keep(1.0)
    (point,) = [point for point in read_points(log) if not point.by]
    assert (point.llm, point.human, point.site_method, point.site_method_digest) == (1, 1, *METHOD)


def test_the_ruleset_in_force_has_its_series_before_it_judges(log: _Log) -> None:
    """In an empty log, as after a change of the ruleset: zeros of the ruleset in force, and no series without one."""
    metrics = Metrics()
    upkeep = _upkeep(log, _Clock(), metrics=metrics)
    upkeep.look()
    assert _value(metrics, 'sites{ruleset="default",run="first",verdict="llm"}') == 0
    log.append([_row("unjudged", "unclassifiable", ruleset="", digest="")])
    upkeep.look()
    page = generate_latest(metrics.registry).decode()
    assert not any('ruleset=""' in line for line in page.splitlines() if line.startswith("farmwatch_sites{"))


def _value(metrics: Metrics, name: str) -> float | None:
    for line in generate_latest(metrics.registry).decode().splitlines():
        if line.startswith(f"farmwatch_{name} "):
            return float(line.rpartition(" ")[2])
    return None


def test_the_status_says_how_far_the_run_is(log: _Log) -> None:
    """One line at its interval: the crawl, what waits for whom, and the rate of the last look."""
    clock = _Clock()
    upkeep = _upkeep(log, clock, clock)
    log.append([_row("a", "llm"), _row("b", "human")])
    with capture_logs() as before:
        upkeep.round()
    upkeep.look()
    clock.now += CONFIG.up.status_s
    with capture_logs() as events:
        upkeep.round()
    (said,) = [event for event in events if event["event"] == "status"]
    assert not any(event["event"] == "status" for event in before)
    assert (said["pages_fetched"], said["sites_open"], said["share"]) == (0, 0, "none yet")
    assert said["waiting"] == "crawl:1,tally:1"  # the heartbeat among the hits


def test_series_are_kept_at_each_full_interval(log: _Log) -> None:
    """Not at the start but when the next hour begins, and then once an hour: sites of the ruleset in force only."""
    clock = _Clock()
    upkeep = _upkeep(log, clock, clock)
    log.append([_row("a", "llm"), _row("old", "human", digest="0" * 16), _row("b", "human", "y/1")])
    upkeep.round()
    assert list(read_points(log)) == []
    for now in (3599.0, 3600.0, 7199.0, 7200.5):
        clock.now = now
        upkeep.round()
    whole = [point for point in read_points(log) if not point.by]
    assert [(point.at, point.llm, point.human) for point in whole] == [(3_600_000, 1, 0), (7_200_000, 1, 0)]


def test_a_wrong_clock_writes_no_point(log: _Log) -> None:
    """A year ahead for a minute: no point then. A step back of half an hour: the point that is there stays."""
    wall, monotonic = _Clock(), _Clock()
    upkeep = _upkeep(log, wall, monotonic)
    log.append([_row("a", "llm")])

    def after(seconds: float, jump_s: float = 0.0) -> list[tuple[int, int]]:
        wall.now += seconds + jump_s
        monotonic.now += seconds
        upkeep.round()
        return [(point.at // 3_600_000, point.llm) for point in read_points(log) if not point.by]

    assert after(3000) == [(1, 1)]
    assert after(30, YEAR_S) == after(30, -YEAR_S) == [(1, 1)]
    assert after(3600) == [(1, 1), (2, 1)]
    log.append([_row("b", "llm")])
    assert after(60, -1800) == after(1800) == [(1, 1), (2, 1)]
    assert after(3600) == [(1, 1), (2, 1), (3, 2)]


def test_canaries_have_gauges_of_their_own(log: _Log) -> None:
    """Sites by truth and verdict, shares, and the time of the last one; none of it before any came through."""
    metrics = Metrics()
    clock = _Clock()
    upkeep = _upkeep(log, clock, clock, metrics=metrics)
    log.append([_row("a", "llm")])
    upkeep.look()
    assert "canary_sites{" not in generate_latest(metrics.registry).decode()
    for number, verdict in enumerate(("llm", "human", "human", "human")):
        log.append([_row(CanaryName(f"x{number}", f"{number:016x}", 9, 1, "human").site, verdict, updated_at=900_000)])
    upkeep.look()
    assert _value(metrics, 'canary_sites{truth="human",verdict="human"}') == 3
    assert _value(metrics, 'canary_sites{truth="llm",verdict="llm"}') == 0
    assert _value(metrics, 'canary_share{kind="site_fpr"}') == 0.25
    assert _value(metrics, "canary_timestamp_seconds") == 900
    assert _value(metrics, 'sites{ruleset="default",run="first",verdict="human"}') == 0
    assert _value(metrics, 'farm_rate{bound="point",ruleset="default",run="first",source="all"}') == 1
