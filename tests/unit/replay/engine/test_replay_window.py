"""A window of time: its records, and messages about expired ones; on both logs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farmwatch.runs.notices import early_begin_note
from farmwatch.runs.summary_lines import lines_of
from replay.engine.runner import Ending
from replay.engine.source import OutsideRetention, WindowOffsets, offsets_of
from replay.engine.summary import lost_text, summary_of
from replay.live.cutover import CutoverRefused, CutoverRequest, cut_over
from replay.rows.gaps import missing_records
from replay.runs.window import Window, read_window
from stream.log.contract import Log, Output, Topic
from stream.memory.log import MemoryLog
from stream.processing.heartbeat import HEADER
from stream.schema.control import Control
from stream.schema.runs import Gap, Run
from stream.schema.topics import FEATURES
from stream.text.user_errors import UsageError
from tests.support.runs.replay_world import OTHER_DETECTOR, LiveWorld, config_of, features_of_pages
from tests.support.worlds import TestClock

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
MAY = int(datetime(2026, 5, 1, tzinfo=UTC).timestamp() * 1000)
FULL = 40_000  # bytes that a partition keeps


@pytest.fixture
def clock() -> TestClock:
    return TestClock(HOUR_MS)


@pytest.fixture
def log(clock: TestClock) -> Iterator[Log]:
    """A fresh log with a topic of two partitions, each limited to this many bytes."""
    made: Log = MemoryLog(clock=clock)
    made.create([Topic("t", 2, retention_bytes=FULL)])
    yield made
    made.close()


def fill(log: Log, clock: TestClock, partition: int, hours: range, size: int, *, beat: bool = False) -> None:
    """Append a record or a heartbeat in each of these hours."""
    for hour in hours:
        clock.now_ms = hour * HOUR_MS
        log.append([Output("t", partition, b"k", b"x" * size, {HEADER: "1"} if beat else {})])


def cut(log: Log, hour: int) -> WindowOffsets:
    return offsets_of(log, "t", Window(from_at=hour * HOUR_MS, to_at=2**44, to_end=True))


def test_a_partition_with_expired_records_is_reported(log: Log, clock: TestClock) -> None:
    """A window that one of two partitions still has is accepted, and the possible gap is reported.

    A later window has no gap; `earliest` takes the existing records.
    """
    fill(log, clock, 0, range(1, 21), FULL // 4 - 1000)
    fill(log, clock, 1, range(1, 21), 1)
    log.expire(clock())
    assert log.beginning("t") == [16, 0]
    assert cut(log, 3) == ([16, 2], [20, 20], [Gap("t", 0, 0, 16, 17 * HOUR_MS)])
    assert cut(log, 17) == ([16, 16], [20, 20], [])
    assert offsets_of(log, "t", Window()) == ([16, 0], [20, 20], [])


def test_a_window_that_no_partition_has_is_refused(log: Log, clock: TestClock) -> None:
    """If every partition lost its part, the refusal names the existing range."""
    fill(log, clock, 0, range(1, 21), FULL // 4 - 1000)
    log.expire(clock())
    with pytest.raises(OutsideRetention) as refused:
        cut(log, 3)
    assert refused.value.facts["kept"] == "1970-01-01T17:00:00Z or later"
    fill(log, clock, 1, range(20, 21), FULL + 1)
    log.expire(clock())
    assert (log.beginning("t"), log.end("t")) == ([16, 1], [20, 1])
    with pytest.raises(OutsideRetention, match="t has records from 1970-01-01 17:00:00Z to 1970-01-01 20:00:00Z"):
        cut(log, 3)
    assert cut(log, 17).gaps == [Gap("t", 1, 0, 1, 0)]


@pytest.mark.parametrize("beat", [False, True])
def test_a_sparse_partition_refuses_nothing(log: Log, clock: TestClock, beat: bool) -> None:
    """A partition whose next record came late may have lost some; an earlier heartbeat rules that out."""
    fill(log, clock, 0, range(1, 2), FULL - 1000)
    fill(log, clock, 0, range(2, 3 if beat else 2), 0, beat=True)
    fill(log, clock, 0, range(19, 20), FULL - 1000)
    fill(log, clock, 1, range(1, 21), 1)
    log.expire(clock())
    assert log.beginning("t") == [1, 0]
    assert cut(log, 3).gaps == ([] if beat else [Gap("t", 0, 0, 1, 19 * HOUR_MS)])


@pytest.fixture
def world(log: Log, tmp_path: Path, clock: TestClock) -> LiveWorld:
    """A log where live judged 60 pages of 6 sites in each of three hours of May."""
    made = LiveWorld(log, config_of(f"sqlite:{tmp_path / 'log'}"))
    made.tempo.check_s = 0.02
    for hour in (1, 2, 3):
        clock.now_ms = MAY + hour * HOUR_MS
        pages = features_of_pages(6, 10, made.epoch, seed=hour)
        made.feed(
            [msgspec.structs.replace(page, id=f"{hour}{page.id}", page_id=f"{hour}{page.page_id}") for page in pages]
        )
    made.carry_on()
    return made


def test_a_window_of_time_is_judged_as_live_did(world: LiveWorld) -> None:
    """The run has the verdicts of live for the records between the two times, and no others."""
    rules = world.rules_file(20)
    assert world.replay(ruleset=rules, name="hour", begin="2026-05-01T02:00", end="2026-05-01T03:00") is Ending.DONE
    verdicts = world.outcome("hour")[0]
    assert len(verdicts) == 60
    assert verdicts == [verdict for verdict in world.outcome()[0] if verdict.id.startswith("2")]


def test_a_window_with_gaps_is_reported(world: LiveWorld) -> None:
    """At its begin, its end and to a cutover, also by a run with the same window. A resume adds no gap."""
    kept = {topic: [0] * partitions for topic, partitions in world.log.topics().items()}
    world.log.expire(2**44, {**kept, FEATURES: [5, 0, 0]})
    run, ruleset = world.begin(ruleset=world.rules_file(20), begin="2026-05-01T00:30", name="whole")
    assert early_begin_note(world.log, run) == ""
    said = (
        "up to 5 records of its window were deleted before it began (features, partition 0 complete from 2026-05-01T01:"
    )
    assert lost_text(run.gaps).startswith(said)
    assert world.resume(run, ruleset) is Ending.DONE
    assert len(world.outcome("whole")[0]) == 175
    assert world.begin(begin="whole", detector=OTHER_DETECTOR, name="second")[0].gaps == run.gaps
    assert world.begin(name="whole")[0].gaps == run.gaps
    summary = summary_of(world.log, Control(world.log), world.config, world.row("whole"), 1)
    assert summary.lost == {FEATURES: 5}
    assert f"  {said}" in "\n".join(lines_of(summary, world.row("whole")))
    assert missing_records(world.log, world.row("whole"), {}) == {FEATURES: 5}
    with pytest.raises(CutoverRefused):
        cut_over(world.log, CutoverRequest("whole", "me"))
    assert cut_over(world.log, CutoverRequest("whole", "me", partial=True)).run.name == "whole"


def test_many_partitions_are_counted() -> None:
    """Eight partitions are named and the rest counted; empty ones and topics are listed separately."""
    early = [Gap("pages", partition, 0, 3, 0 if partition > 9 else HOUR_MS + partition) for partition in range(11)]
    said = lost_text([*early, Gap("hits", 0, 4, 6)])
    assert "up to 33 records" in said
    assert "pages, partitions 0, 1, 2, 3, 4, 5, 6, 7 and 2 more complete from 1970-01-01T01:00:01Z on" in said
    assert "partition 10 without records" in said
    assert said.endswith("; 2 records expired before it read them (hits 2)")
    assert lost_text([]) == ""


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_a_usage_error(text: str) -> None:
    """Any text gives a window, or an error without control characters."""
    try:
        assert isinstance(read_window(text, "follow", {}, MAY).from_at, int)
    except UsageError as error:
        assert str(error).isprintable()


@pytest.mark.parametrize("end", ["2026-05-01", "20260501", "1777593600", "2026-05-01T00:00Z"])
def test_the_end_of_a_window_has_every_form_of_a_time(end: str) -> None:
    """A day in either form means its end, a moment means itself."""
    window = read_window("2026-04-01", end, {}, MAY + 2 * DAY_MS)
    assert window.to_at == MAY + (DAY_MS if len(end) <= 10 and not end.startswith("177") else 0)


def test_a_run_named_like_a_day_is_the_run() -> None:
    """An existing run name takes precedence over a time."""
    run = Run(name="2026-05-01", ruleset="", digest="", detector="", epoch="", from_at=5, to_at=9)
    window = read_window("2026-05-01", None, {run.name: run}, MAY)
    assert (window.from_at, window.to_at) == (5, 9)
    assert read_window("2026-05-02", None, {run.name: run}, MAY + 2 * DAY_MS).from_at == MAY + DAY_MS
