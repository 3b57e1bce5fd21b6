"""Offsets that retention keeps for runs, from their rows and committed offsets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from farmwatch.config.topic_limits import limits_of
from farmwatch.daemon.maintenance import RetentionRounds
from filters.rules.ruleset import load_ruleset
from filters.stages.judge import JudgeStage
from replay.live.cutover import CutoverRequest, cut_over
from replay.runs.retention import BACK_DAYS, holding_runs, offsets_to_keep, oldest_unread, topics_held
from stream.log.contract import wall_ms
from stream.opening import open_log
from stream.processing.steady_clock import SteadyClock
from stream.schema.runs import LIVE, Alias, Run, RunStatus, features_of
from stream.schema.topics import FEATURES, HITS, VERDICTS
from tests.support.front_door import Runner
from tests.support.runs.cutover_world import CutoverWorld, config_of, cutover_world
from tests.support.runs.replay_world import put_rows

DAY_MS = 86_400_000


def _run(name: str, **fields: object) -> Run:
    return Run(name=name, ruleset="r", digest="d", detector="x/1", epoch="e", **fields)  # type: ignore[arg-type]


def _holding(runs: Sequence[Run], alias: Alias, were_live: Sequence[str], now_ms: int = 0) -> list[str]:
    return [run.name for run in holding_runs({run.name: run for run in runs}, alias, were_live, now_ms)]


def test_which_runs_hold_records() -> None:
    """The live run, a running one, and for some days the previous live run; no finished run and no older live run.

    The previous live run counts even if it is cancelled: a cutover may go back to it.
    """
    runs = [
        _run(LIVE),
        _run("under-way"),
        _run("done", state=RunStatus.DONE),
        _run("cancelled", state=RunStatus.CANCELLED),
        _run("removed", state=RunStatus.REMOVED),
        _run("now"),
        _run("before"),
    ]
    alias = Alias(run="now", before="before", at=5 * DAY_MS, number=3)
    were = [LIVE, "now", "before"]
    assert _holding(runs, alias, were, 6 * DAY_MS) == ["under-way", "now", "before"]
    assert _holding(runs, alias, were, (5 + BACK_DAYS) * DAY_MS) == ["under-way", "now"]
    cancelled = [_run("before", state=RunStatus.CANCELLED)]
    assert _holding(cancelled, alias, were, 6 * DAY_MS) == ["before"]
    assert _holding(runs, Alias(), [LIVE]) == [LIVE, "under-way", "now", "before"]


def test_topics_of_a_replay_have_the_limits_of_the_live_ones(world: CutoverWorld) -> None:
    """From the start, by time and by size: else they could outgrow the disk until the next start of `up`."""
    world.pages(3)
    world.config = config_of(world.config.log.url, "measure.max_elements=9999")
    world.plan_run("anew")
    found = world.log.definitions()
    for topic in (FEATURES, VERDICTS):
        assert limits_of(found[f"{topic}.anew"]) == limits_of(found[topic])


def test_the_lowest_unread_offset_is_kept() -> None:
    """By topic and partition: the committed offset, else the start; compacted scores are left out."""
    committed: Mapping[tuple[str, str], list[int | None]] = {
        ("judge", FEATURES): [5, 9],
        ("judge.a", FEATURES): [7, None],
        ("tally", "hits"): [4, 4],
    }
    topics = {FEATURES: 2, "hits": 2, "pages": 2, "scores": 2, "verdicts": 2}
    runs = [_run(LIVE), _run("a", start={FEATURES: [3, 8]})]
    found = oldest_unread(runs, topics, lambda group, topic: committed.get((group, topic), [None, None]))
    assert found == {FEATURES: [5, 8], "hits": [0, 0], "pages": [0, 0], "verdicts": [0, 0]}
    own = oldest_unread([_run("b", features=features_of("b"), remeasures=True)], topics, lambda *_: [2, None])
    assert own == {"hits": [2, 0], "pages": [2, 0]}
    assert oldest_unread([], topics, lambda *_: [None, None]) == {}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CutoverWorld]:
    """A log where live has judged everything."""
    with cutover_world("embedded", tmp_path, monkeypatch) as made:
        made.begin_live()
        made.features(30)
        made.work("judge", JudgeStage(load_ruleset("default")))
        yield made


def test_maintenance_keeps_records_for_going_back(world: CutoverWorld) -> None:
    """Features after the cutover stay for the previous run beyond their retention, and later expire."""
    world.replay(world.begin("r1"))
    at = wall_ms()
    cut_over(world.log, CutoverRequest("r1", "me", max_lag=1000), clock=lambda: at)
    world.features(10)
    run = world.control().live
    assert run is not None
    world.work("judge.r1", JudgeStage(load_ruleset(run.ruleset), run="r1", names=run.names(is_live=True)))
    for days, kept in ((2, 10), (BACK_DAYS, 0)):
        held = offsets_to_keep(world.log, world.control(), at + days * DAY_MS)
        world.log.expire(at + 4_000 * DAY_MS, held)
        assert _features(world) == kept


def test_maintenance_keeps_unread_records_of_live(world: CutoverWorld) -> None:
    """JUDGE was down for a year: its unread records exist, its read ones do not."""
    world.features(3)
    run = world.control().live
    assert run is not None
    since_s = [0.0]
    later_s = wall_ms() / 1000 + 365 * 86_400
    clock = SteadyClock(wall=lambda: int(1000 * (later_s + since_s[0])), monotonic=lambda: since_s[0])
    retention = RetentionRounds(world.log, clock, lambda: since_s[0])
    since_s[0] = 3600.0  # the clock is confirmed
    retention.apply()
    assert _features(world) == 3
    world.log.expire(int(later_s * 1000))
    assert _features(world) == 0


def test_a_stopped_replay_that_holds_records_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, farmwatch: Runner
) -> None:
    """`runs`, `doctor` and `status` name the topics with old records that are kept for it alone."""
    with cutover_world("embedded", tmp_path, monkeypatch) as world:
        world.begin_live()
        now, url = world.log, world.config.log.url
        with closing(open_log(url, clock=lambda: wall_ms() - 3 * DAY_MS)) as world.log:
            world.features(30)
        world.log = now
        world.work("judge", JudgeStage(load_ruleset("default")))
        half = world.begin("half")
        assert topics_held(world.log, world.control(), half, wall_ms()) == [FEATURES]
        for command in ("runs", "doctor", "status"):
            ran = farmwatch(*command.split(), "--log", url)
            assert "retention keeps old records of features" in ran.out + ran.err, command
        put_rows(world.log, msgspec.structs.replace(half, state=RunStatus.CANCELLED))
        assert topics_held(world.log, world.control(), half, wall_ms()) == []
        assert "retention keeps" not in farmwatch("runs", "--log", url).err


def test_topics_with_only_new_unread_records_are_left_out(world: CutoverWorld) -> None:
    """A live run is always a few records behind: on Kafka, naming a topic for those would lift its retention."""
    world.features(3)
    assert offsets_to_keep(world.log, world.control(), wall_ms()) == {}
    assert set(offsets_to_keep(world.log, world.control(), wall_ms() + 2 * DAY_MS)) == {FEATURES, HITS, VERDICTS}


def _features(world: CutoverWorld) -> int:
    return sum(world.log.end(FEATURES)) - sum(world.log.beginning(FEATURES))
