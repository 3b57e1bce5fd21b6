"""The live share: gauges, points of the series, and what counts in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from prometheus_client import generate_latest

from farmwatch.share.live_share import LiveShare
from farmwatch.share.rate_series import read_points
from replay.runs.run_rules import RunRules
from scoring.rates.canary import CanaryName
from stream.log.contract import CleanupPolicy, Output, Topic
from stream.memory.log import MemoryLog
from stream.processing.metrics import Metrics
from stream.processing.steady_clock import SteadyClock
from stream.schema.records import Template, encode
from stream.schema.topics import TEMPLATES
from tests.support.runs.live_rows import CONFIG, LIVE, METHOD, YEAR_S, Clock, new_log, row


def live_share(
    log: MemoryLog, metrics: Metrics | None = None, live: RunRules = LIVE, clock: Callable[[], float] = lambda: 1_000.0
) -> LiveShare:
    """The share of a live run, at the time 1,000 s by default."""
    return LiveShare(log, CONFIG.rate, metrics or Metrics(), live, METHOD, clock)


@pytest.fixture
def log() -> MemoryLog:
    """A log with all topics."""
    return new_log()


def _value(metrics: Metrics, name: str) -> float | None:
    for line in generate_latest(metrics.registry).decode().splitlines():
        if line.startswith(f"farmwatch_{name} "):
            return float(line.rpartition(" ")[2])
    return None


def test_gauges_show_the_newest_rows_of_the_detector_in_use(log: MemoryLog) -> None:
    """A changed verdict is shown, sites of other detectors do not count, and odd names of sources are `other`."""
    metrics = Metrics()
    share = live_share(log, metrics)
    log.append([row("a", "undecided"), row("b", "human"), row("c", "llm", "y/1"), row("d", "llm", sources=["We!rd"])])
    share.update_gauges()
    assert _value(metrics, 'sites{ruleset="default",run="first",verdict="undecided"}') == 1
    log.append([row("a", "llm")])
    share.update_gauges()
    assert _value(metrics, 'sites{ruleset="default",run="first",verdict="llm"}') == 2
    assert _value(metrics, 'sites{ruleset="default",run="first",verdict="undecided"}') == 0
    rate = 'farm_rate{bound="point",ruleset="default",run="first",source="%s"}'
    assert _value(metrics, rate % "all") == pytest.approx(2 / 3)
    assert _value(metrics, rate % "file") == 0.5
    assert _value(metrics, rate % "other") == 1.0


def test_the_flagged_share_of_controls_is_a_gauge(log: MemoryLog) -> None:
    """It has the interval of `rate`, and what the detector's card states; without a control page any more none."""
    metrics = Metrics()
    share = live_share(log, metrics)
    share.stated = 0.05
    controls: dict[str, Any] = {"control_scored": 8, "control_flagged": 2}
    log.append([row(f"c{n}", "human", scored=8, flagged=2, **controls) for n in range(6)])
    share.update_gauges()
    name = 'control_share{bound="%s",detector="x/1",ruleset="default",run="first"}'
    low, point, high = (_value(metrics, name % bound) for bound in ("low", "point", "high"))
    assert low is not None and high is not None and low < 0.25 < high and point == 0.25
    assert _value(metrics, name % "stated") == 0.05
    log.append([row(f"c{n}", "human", scored=8, flagged=2) for n in range(6)])
    share.update_gauges()
    assert _value(metrics, name % "point") is _value(metrics, name % "stated") is None


def test_the_share_and_its_alarm_are_gauges(log: MemoryLog) -> None:
    """For sites and domains, the share and both its intervals are gauges, with the method and number of sites.

    Search results have gauges of their own, from the hits. Sources have those of sites. Without a share there is no
    point. The alarm is 1 once new sites have another share.
    """
    metrics = Metrics()
    share = live_share(log, metrics)
    old = [(9, 8)] * 10 + [(9, 0)] * 90

    def rows(cells: list[tuple[int, int]], start: int, day: int) -> list[Output]:
        return [
            row(f"s{n}.d{n}.com", "undecided", scored=cell[0], flagged=cell[1], days=[day], hits=2)
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
    share.update_gauges()
    assert {bound for *_, bound in shares()} == {"low", "high", "look_low", "look_high"}
    assert {method for _, _, method, _ in shares()} == {"too few sites"}
    assert _value(metrics, rest_on % ("sites", "too few sites", "all")) == 2
    log.append([*rows(old, 0, 20_000), row("none.com", "unclassifiable", articles=0, scored=0)])
    share.update_gauges()
    assert _value(metrics, rest_on % ("sites", "too few sites", "all")) is None
    for definition, source in (("sites", "all"), ("domains", "all"), ("sites", "file")):
        assert _value(metrics, rest_on % (definition, "direct", source)) == 100
    shown = shares()
    for definition in ("sites", "domains"):
        bounds = ("look_low", "low", "point", "high", "look_high")
        least, low, point, high, most = (shown["all", definition, "direct", bound] for bound in bounds)
        assert least < low < point < high < most and point == pytest.approx(0.1, abs=0.03)
    assert shown["file", "sites", "direct", "point"] == shown["all", "sites", "direct", "point"]
    assert {source for source, *_ in shown} == {"all", "file"} and len(shown) == 15
    assert _value(metrics, changed) == 0
    log.append(rows([(9, 8)] * 60, 1000, 20_010))
    share.update_gauges()
    assert _value(metrics, changed) == 1


def test_verdicts_that_are_too_old_are_a_gauge(log: MemoryLog) -> None:
    """A site whose term expired long ago counts as expired, and not by its verdict."""
    metrics = Metrics()
    share = live_share(log, metrics)
    log.append([row("old.com", "llm", term_start=1, term_end=2), row("new.com", "llm")])
    share.update_gauges()
    assert _value(metrics, 'sites_expired{ruleset="default",run="first"}') == 1
    assert _value(metrics, 'sites{ruleset="default",run="first",verdict="llm"}') == 1


def test_gauges_of_a_run_without_rows_name_that_run(log: MemoryLog) -> None:
    """After a cutover to a run without rows, the gauges are 0 and have its name."""
    metrics = Metrics()
    moved = RunRules(msgspec.structs.replace(LIVE.run, name="mine"), LIVE.text)
    log.create([Topic("sites.mine", 2, CleanupPolicy.COMPACT)])
    live_share(log, metrics, live=moved).update_gauges()
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
def test_rows_of_other_versions_do_not_count(log: MemoryLog, other: dict[str, Any]) -> None:
    """Rows of an earlier ruleset text, another ruleset, detector or site method are in no gauge and no series."""
    metrics = Metrics()
    log.append([row(f"old{n}", "llm", **other) for n in range(5)])
    log.append([row("new", "human"), row("b", "llm"), row("unjudged", "unclassifiable", ruleset="", digest="")])
    share = live_share(log, metrics)
    share.update_gauges()
    for verdict, count in {"llm": 1, "human": 1, "unclassifiable": 1, "undecided": 0}.items():
        assert _value(metrics, f'sites{{ruleset="default",run="first",verdict="{verdict}"}}') == count
    assert _value(metrics, 'farm_rate{bound="point",ruleset="default",run="first",source="all"}') == 0.5
    shown = re.findall('farmwatch_sites{ruleset="(.*?)"', generate_latest(metrics.registry).decode())
    assert set(shown) == {"default"}
    share.append_points(1.0)
    (point,) = [point for point in read_points(log) if not point.by]
    assert (point.llm, point.human, point.site_method, point.site_method_digest) == (1, 1, *METHOD)


def test_points_are_appended_at_each_full_interval(log: MemoryLog) -> None:
    """At the start of each hour, points are appended for the active ruleset only."""
    clock = Clock()
    share = live_share(log, clock=clock)
    log.append([row("a", "llm"), row("old", "human", digest="0" * 16), row("b", "human", "y/1")])
    share.append_due_points()
    assert list(read_points(log)) == []
    for now in (3599.0, 3600.0, 7199.0, 7200.5):
        clock.now = now
        share.append_due_points()
    whole = [point for point in read_points(log) if not point.by]
    assert [(point.at, point.llm, point.human) for point in whole] == [(3_600_000, 1, 0), (7_200_000, 1, 0)]


def test_a_wrong_clock_writes_no_point(log: MemoryLog) -> None:
    """While the clock is a year ahead, no point is written. After a step back of half an hour, existing points stay."""
    wall, monotonic = Clock(), Clock()
    steady = SteadyClock(wall=lambda: int(wall() * 1000), monotonic=monotonic)
    share = live_share(log, clock=lambda: steady() / 1000)
    log.append([row("a", "llm")])

    def after(seconds: float, jump_s: float = 0.0) -> list[tuple[int, int]]:
        wall.now += seconds + jump_s
        monotonic.now += seconds
        share.append_due_points()
        return [(point.at // 3_600_000, point.llm) for point in read_points(log) if not point.by]

    assert after(3000) == [(1, 1)]
    assert after(30, YEAR_S) == after(30, -YEAR_S) == [(1, 1)]
    assert after(3600) == [(1, 1), (2, 1)]
    log.append([row("b", "llm")])
    assert after(60, -1800) == after(1800) == [(1, 1), (2, 1)]
    assert after(3600) == [(1, 1), (2, 1), (3, 2)]


def test_canaries_have_gauges_of_their_own(log: MemoryLog) -> None:
    """Canaries have gauges: sites by truth and verdict, shares, and the last canary's time; none before the first."""
    metrics = Metrics()
    share = live_share(log, metrics)
    log.append([row("a", "llm")])
    share.update_gauges()
    assert "canary_sites{" not in generate_latest(metrics.registry).decode()
    for number, verdict in enumerate(("llm", "human", "human", "human")):
        log.append([row(CanaryName(f"x{number}", f"{number:016x}", 9, 1, "human").site, verdict, updated_at=900_000)])
    share.update_gauges()
    assert _value(metrics, 'canary_sites{truth="human",verdict="human"}') == 3
    assert _value(metrics, 'canary_sites{truth="llm",verdict="llm"}') == 0
    assert _value(metrics, 'canary_share{kind="site_fpr"}') == 0.25
    assert _value(metrics, "canary_timestamp_seconds") == 900
    assert _value(metrics, 'sites{ruleset="default",run="first",verdict="human"}') == 0
    assert _value(metrics, 'farm_rate{bound="point",ruleset="default",run="first",source="all"}') == 1


def test_sites_that_share_a_template_are_a_gauge(log: MemoryLog) -> None:
    """By rank; a template of one site has none. They are counted again when there are new ones."""
    metrics = Metrics()
    share = live_share(log, metrics)

    def sizes(*rows: tuple[str, bytes]) -> list[float]:
        records = [Template(id="1", site=site, url="", sketch=sketch * 64) for site, sketch in rows]
        log.append([Output(TEMPLATES, 0, f"{record.site} 1".encode(), encode(record)) for record in records])
        share.update_template_gauges()
        page = generate_latest(metrics.registry).decode()
        gauges = dict(re.findall(r'farmwatch_template_sites{rank="(\w+)"} (\S+)', page))
        return [float(gauges[rank]) for rank in ("1", "2", "5", "all")]

    assert sizes(("a.example", b"1"), ("b.example", b"1"), ("c.example", b"2")) == [2, 0, 0, 3]
    assert sizes(("d.example", b"2"), ("e.example", b"2")) == [3, 2, 0, 5]
