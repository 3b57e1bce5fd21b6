"""Which group reads which topics, and its lag in records."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.stages.crawl import CrawlStage
from filters.rules.ruleset import load_ruleset
from filters.stages.judge import JudgeStage
from filters.stages.measure import MeasureStage
from replay.live.cutover import CutoverRefused, CutoverRequest, cut_over
from replay.runs.topology import (
    MAX_LAG,
    MAX_OTHER_SCORES,
    READS,
    between,
    lag_by_group,
    lag_of,
    reads_of_live,
    records_behind,
    topic_states,
)
from scoring.stages.score import ScoreStage, score_key
from scoring.stages.tally import TallyStage
from stream.log.contract import Log, Output, Topic
from stream.memory.log import MemoryLog
from stream.processing.heartbeat import HEADER, KEY
from stream.schema.control import Control
from stream.schema.records import ScoreRequest
from stream.schema.runs import LIVE, Alias, Run, RunNames, features_of, names_of
from stream.schema.topics import FEATURES, HITS, RETRIES, SCORES, all_topics
from tests.support.runs.replay_world import (
    DETECTOR,
    OTHER_DETECTOR,
    LiveWorld,
    features_of_pages,
    live_world,
    output,
    put_rows,
    score_of,
)


@pytest.mark.parametrize("names", [names_of(LIVE), names_of("r1", is_live=True), names_of("r2", features_of("r1"))])
def test_the_table_matches_the_stages(names: RunNames) -> None:
    """The table lists the topics that the stages of a run read; READS is the table of the first run."""
    rules = load_ruleset("default")
    found = {
        "crawl": set(CrawlStage.inputs),
        names.measure_group: set(MeasureStage.inputs),
        names.judge_group: set(JudgeStage(rules, names=names).inputs),
        "score": set(ScoreStage.inputs),
        names.tally_group: set(TallyStage("x/1", names=names).inputs),
    }
    assert found == {group: set(topics) for group, topics in reads_of_live(names).items()}
    assert (reads_of_live(names) == READS) == (names == names_of(LIVE))


def test_topics_show_the_lag_of_the_run_that_is_live() -> None:
    """After a cutover the groups of the new run have a lag on its topics; those of the old run are gone.

    Every live group reads the retries of dead letters.
    """
    log = MemoryLog()
    run = Run(name="r1", ruleset="default", digest="d", detector="x/1", epoch="e")
    log.create([*all_topics(2, "e"), Topic(run.names().verdicts, 2)])
    log.append([Output(topic, 1, b"k", b"v") for topic in (FEATURES, "verdicts.r1", "verdicts", RETRIES)])
    assert {state.name: state.lag for state in topic_states(log)}["verdicts.r1"] == {}
    put_rows(log, run, Alias(run="r1", before=LIVE, number=1))
    lags = {state.name: state.lag for state in topic_states(log)}
    assert (lags[FEATURES], lags["verdicts.r1"], lags["verdicts"]) == ({"judge.r1": 1}, {"tally.r1": 1}, {})
    assert lags[RETRIES] == dict.fromkeys(["crawl", "measure", "judge.r1", "score", "tally.r1"], 1)


def test_lag_counts_uncommitted_records() -> None:
    """The state of a topic has its records and the lag of its group; a group's lag is the sum over its topics."""
    log = MemoryLog()
    log.create(all_topics(2, "e"))
    log.append([Output(FEATURES, partition, b"k", b"v") for partition in (0, 0, 1)])
    log.append([Output(topic, 1, b"k", b"v") for topic in ("verdicts", "scores", "pages")])
    log.reset("judge", FEATURES, [1, 0])
    (state,) = [state for state in topic_states(log) if state.name == FEATURES]
    assert (state.records, state.lag) == (3, {"judge": 2})
    assert lag_of(log, "tally") == 2
    assert between([3, 0], [1, 2]) == 2  # never negative


def beats(log: Log, topic: str, number: int) -> None:
    log.append([Output(topic, 0, KEY, b"", {HEADER: "1"})] * number)


@pytest.fixture
def world(tmp_path: Path) -> LiveWorld:
    """A log with a live run, and a finished run `mine`."""
    made = live_world(tmp_path, 2, 3)
    made.replay(ruleset=made.rules, name="mine")
    return made


def lag(world: LiveWorld, limit: int = MAX_LAG) -> dict[str, int]:
    return lag_by_group(world.log, Control(world.log), world.row("mine"), limit)


def test_heartbeats_are_no_lag(world: LiveWorld) -> None:
    """After a night of heartbeats a finished run has lag 0, and a cutover accepts it with --max-lag 0."""
    for topic in (HITS, FEATURES, SCORES):
        beats(world.log, topic, 600)
    assert lag(world) == {"judge.mine": 0, "tally.mine": 0}
    assert records_behind(world.log, {"crawl": (HITS,)}) == {"crawl": 6}
    moved = cut_over(world.log, CutoverRequest("mine", "me", max_lag=0))
    assert moved.cutover is not None and moved.cutover.lag == 0


def test_records_between_heartbeats_are_counted(world: LiveWorld) -> None:
    """Each group counts its records; a cutover with a limit one lower is refused with these numbers."""
    beats(world.log, FEATURES, 30)
    world.feed(features_of_pages(2, 2, world.epoch, seed=2))  # 4 hits, 4 features, 3 heartbeats
    beats(world.log, HITS, 30)
    assert lag(world) == {"judge.mine": 4, "tally.mine": 4}
    with pytest.raises(CutoverRefused, match=r"8 records behind \(judge.mine 4, tally.mine 4\)"):
        cut_over(world.log, CutoverRequest("mine", "me", max_lag=7))


def test_a_large_lag_counts_by_offsets(world: LiveWorld) -> None:
    """Beyond the limit of a cutover the rest counts by offsets, without reading, and never too low."""
    world.log.append([Output(HITS, 0, b"k", b"v")] * (MAX_LAG + 50))
    beats(world.log, HITS, 30)
    assert lag(world, MAX_LAG + 50)["tally.mine"] == MAX_LAG + 50
    assert lag(world, 5)["tally.mine"] == MAX_LAG + 80


def test_scores_of_other_detectors_are_no_lag(world: LiveWorld) -> None:
    """They are skipped, even before scores of the run's own detector.

    Beyond a limit the rest counts by offsets, and never too low.
    """
    request = ScoreRequest(id="r", site="s0.example", page_id="p", url="u", text_digest="f" * 32, text="t")
    other, own = (
        output(SCORES, made, score_key(made))
        for made in (score_of(request, OTHER_DETECTOR), score_of(request, DETECTOR))
    )
    others = [other] * MAX_OTHER_SCORES
    world.log.append([*others, own, own, own])
    assert lag(world, 5) == {"judge.mine": 0, "tally.mine": 3}
    moved = cut_over(world.log, CutoverRequest("mine", "me", max_lag=3))
    assert moved.cutover is not None and moved.cutover.lag == 3
    world.log.append([*others[:9], *others[:9]])
    assert 3 < lag(world, 5)["tally.mine"] <= 3 + 18
