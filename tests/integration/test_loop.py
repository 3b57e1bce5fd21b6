"""The stage loop on the in-memory log: commits, rollbacks, dead letters and shutdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from stream.log.contract import RECORD_CAP_BYTES, At, Log, Message, Output, Topic, partition_of
from stream.log.errors import Fenced, LogUnavailable
from stream.memory.log import MemoryLog
from stream.processing import heartbeat
from stream.processing.metrics import Metrics
from stream.processing.stage import Context
from stream.schema.records import Decision, Hit, Record, encode
from tests.support.logs.loops import Around, Counting, Transient, count, cycle, decisions, letters, loop_on, refusing

PARTITIONS = 2


class Troubled(Counting):
    """Fails in the way that a URL names."""

    def __init__(self) -> None:
        self.transient_faults = 0
        self.lost_partitions: list[int] = []

    def process(self, record: Hit, prepared: Any, ctx: Context) -> None:
        super().process(record, prepared, ctx)
        if record.url == "poison":
            raise ValueError("cannot be processed")
        if record.url == "large":
            ctx.emit("out", Decision(id=record.id, site=record.site, stop=False, reason="x" * RECORD_CAP_BYTES))
        if record.url == "transient" and self.transient_faults:
            self.transient_faults -= 1
            raise Transient("comes back later")

    def lost(self, partitions: Sequence[int]) -> None:
        self.lost_partitions += partitions


class Preparing(Counting):
    """Fails in its slow work for some records."""

    max_records = 10

    def prepare(self, records: Sequence[Record]) -> Sequence[Any]:
        if any(isinstance(r, Hit) and r.url == "poison" for r in records):
            raise ValueError("the batch cannot be prepared")
        return [f"prepared {r.id}" for r in records]

    def process(self, record: Hit, prepared: Any, ctx: Context) -> None:
        ctx.emit("out", Decision(id=record.id, site=record.site, stop=False, reason=prepared))


@pytest.fixture
def memory() -> MemoryLog:
    log = MemoryLog()
    log.create([Topic(name, PARTITIONS) for name in ("in", "out", "hits", "dead-letters", "state.counts")])
    return log


def put(log: Log, *hits: tuple[str, str]) -> None:
    log.append(
        [
            Output("in", partition_of(site, PARTITIONS), site.encode(), encode(Hit(id=str(n), site=site, url=url)))
            for n, (site, url) in enumerate(hits)
        ]
    )


def test_each_record_takes_effect_once(memory: MemoryLog) -> None:
    """Outputs, state and counts of a batch appear once per record, in the order of the site."""
    put(memory, *[("a.example", "x"), ("b.example", "x"), ("a.example", "x")])
    metrics = Metrics()
    cycle(loop_on(memory, Troubled(), metrics))
    assert sorted((d.site, d.reason) for d in decisions(memory)) == [
        ("a.example", "1"),
        ("a.example", "2"),
        ("b.example", "1"),
    ]
    assert count(metrics, "search_results_total", source="test", outcome="read") == 3
    assert count(metrics, "log_records_total", topic="in", direction="in") == 3


def test_a_transient_error_is_rolled_back_and_tried_again(memory: MemoryLog) -> None:
    """A transient error rolls the batch back; on the retry each record counts once."""
    put(memory, ("a.example", "x"), ("a.example", "transient"))
    stage, metrics = Troubled(), Metrics()
    stage.transient_faults = 2
    cycle(loop_on(memory, stage, metrics))
    assert [d.reason for d in decisions(memory)] == ["1", "2"]
    assert count(metrics, "search_results_total", source="test", outcome="read") == 2
    assert stage.lost_partitions, "the stage was told to drop what it cached"


@pytest.mark.parametrize(("url", "said"), [("poison", "cannot be processed"), ("large", "a Decision of")])
def test_a_poison_record_is_dead_lettered_with_its_origin(memory: MemoryLog, url: str, said: str) -> None:
    """A record that fails, or whose output is too large, is dead-lettered; other records are processed."""
    put(memory, ("a.example", "x"), ("a.example", url), ("a.example", "x"))
    cycle(loop_on(memory, Troubled()))
    assert [d.reason for d in decisions(memory)] == ["1", "2"]
    (letter,) = letters(memory)
    assert (letter.topic, letter.offset, letter.stage) == ("in", 1, "counting")
    assert said in letter.error


def test_the_breaker_stops_a_stage_that_buries_everything(memory: MemoryLog) -> None:
    """If most records fail, the stage waits instead of dead-lettering all of its input."""
    put(memory, *[("a.example", "poison")] * 10)
    loop = loop_on(memory, Troubled())
    cycle(loop, 4)
    assert letters(memory) == []
    assert memory.committed("group", "in") == [None, None]
    assert "BreakerOpen" in loop.health().detail


@pytest.mark.parametrize("may_return", [False, True])
def test_damage_that_stays_does_not_open_the_breaker(memory: MemoryLog, may_return: bool) -> None:
    """A damaged batch on Kafka is many damaged records, all dead-lettered. A missing file makes the stage wait."""
    put(memory, *[("a.example", "x")] * 60)
    member = memory.join("group", ["in"], member="one", store="counts")

    def poll(*limits: Any) -> list[Message]:
        damage = {"value": b"", "damage": "its checksum differs", "may_return": may_return}
        return [replace(m, **damage) for m in member.poll(*limits)]

    loop = loop_on(memory, Troubled(), member=Around(member, poll=poll))
    cycle(loop, 4)
    assert len(letters(memory)) == (0 if may_return else 60)
    assert ("BreakerOpen" in loop.health().detail) is may_return


def test_one_record_that_cannot_be_prepared_does_not_fail_its_batch(memory: MemoryLog) -> None:
    """If prepare fails for a batch, its records are prepared one by one, and only the bad one is dead-lettered."""
    put(memory, ("a.example", "x"), ("a.example", "poison"), ("a.example", "y"))
    cycle(loop_on(memory, Preparing()))
    assert [d.reason for d in decisions(memory)] == ["prepared 0", "prepared 2"]


def test_a_heartbeat_travels_on(memory: MemoryLog) -> None:
    """A heartbeat is passed to the next topic with its start time, and the stage does not see it."""
    memory.append([heartbeat.travelling("in", 1, {heartbeat.HEADER: "12345"})])
    metrics = Metrics()
    cycle(loop_on(memory, Troubled(), metrics))
    (message,) = list(memory.read("out", 1))
    assert heartbeat.started_at(message) == 12345
    assert count(metrics, "heartbeat_timestamp_seconds", stage="counting") == 12.345


def test_a_fenced_commit_shows_nothing_and_the_records_come_again(memory: MemoryLog) -> None:
    """If ownership is lost at the commit, nothing is visible and the records are read again."""
    put(memory, ("a.example", "x"))
    stage = Troubled()
    member = memory.join("group", ["in"], member="one", store="counts")
    faults = (LogUnavailable("the broker is away"), Fenced("another member owns it"))
    metrics = Metrics()
    with capture_logs() as events:
        cycle(loop_on(memory, stage, metrics, member=refusing(member, *faults)))
    assert [event["log_level"] for event in events if event["event"] == "rolled_back"] == ["warning", "info"]
    assert [d.reason for d in decisions(memory)] == ["1"]
    assert count(metrics, "search_results_total", source="test", outcome="read") == 1


def test_a_rebalance_is_one_event(memory: MemoryLog) -> None:
    """A first fence, as each rebalance has one, is no event of its own: `assigned` says which partitions moved."""
    put(memory, ("a.example", "x"))
    member = memory.join("group", ["in"], member="one", store="counts")
    with capture_logs() as events:
        cycle(loop_on(memory, Troubled(), member=refusing(member, Fenced("partitions moved"))))
    assert [event["event"] for event in events if event["log_level"] != "debug"] == ["assigned"]


def test_a_stage_that_stands_still_is_unhealthy(memory: MemoryLog) -> None:
    """Input without a commit for longer than the watchdog's limit makes the loop unhealthy, with the reason."""
    now = [0.0]
    put(memory, ("a.example", "transient"))
    stage = Troubled()
    stage.transient_faults = 10**6

    def monotonic() -> float:
        now[0] += 5.0
        return now[0]

    loop = loop_on(memory, stage, monotonic=monotonic)
    cycle(loop, 40)
    health = loop.health()
    assert not health.ok
    assert "comes back later" in health.detail


def test_input_that_never_arrives_is_unhealthy(memory: MemoryLog) -> None:
    """A member with lag that gets no records is not idle: the loop becomes unhealthy."""
    now = [0.0]
    put(memory, ("a.example", "x"))
    member = memory.join("group", ["in"], member="one", store="counts")

    def poll(*_: float) -> list[Message]:
        member.poll(0, 1, 1)
        return []

    def monotonic() -> float:
        now[0] += 2.0
        return now[0]

    loop = loop_on(memory, Troubled(), member=Around(member, poll=poll), monotonic=monotonic)
    cycle(loop, 60)
    assert not loop.health().ok


def test_headers_travel_with_what_is_made_of_a_record(memory: MemoryLog) -> None:
    """Trace, run, epoch and ruleset headers of a record are copied to its outputs; other headers are not."""
    trace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
    headers = {"traceparent": trace, "run": "live", "private": "x"}
    record = encode(Hit(id="1", site="a.example", url="x"))
    memory.append([Output("in", partition_of("a.example", PARTITIONS), b"a.example", record, headers)])
    cycle(loop_on(memory, Troubled()))
    (message,) = [m for p in range(PARTITIONS) for m in memory.read("out", p)]
    assert dict(message.headers) == {"traceparent": trace, "run": "live"}


def test_the_lag_of_partitions_that_moved_away_is_forgotten(memory: MemoryLog) -> None:
    """The lag of lost partitions is removed, so that the sum over processes counts each record once."""
    metrics, stage = Metrics(), Counting()
    member = memory.join("group", list(stage.inputs), member="one", store=stage.store)
    member.poll(0, 1, 1)
    owned = dict(member.assignment())
    shown = Around(member, assignment=lambda: dict(owned), lag=lambda: {At("in", p): 7 for p in owned})
    loop = loop_on(memory, stage, metrics, member=shown)
    put(memory, ("a.example", "x"))
    cycle(loop)
    assert _lags(metrics) == {("log_lag_records", "0"): 7, ("log_lag_records", "1"): 7, ("log_lag_seconds", ""): 0}
    del owned[1]
    cycle(loop, 1)
    assert _lags(metrics) == {("log_lag_records", "0"): 7}


def _lags(metrics: Metrics) -> dict[tuple[str, str], float]:
    """Lags by gauge and partition."""
    samples = [
        sample for metric in metrics.registry.collect() for sample in metric.samples if "_log_lag_" in sample.name
    ]
    return {(one.name.removeprefix("farmwatch_"), one.labels.get("partition", "")): int(one.value) for one in samples}
