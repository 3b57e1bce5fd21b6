"""The table of who reads what agrees with the stages."""

from __future__ import annotations

import pytest

from crawler.crawl_stage import CrawlStage
from filters.judge_stage import JudgeStage
from filters.measure_stage import MeasureStage
from filters.rules.ruleset import load_ruleset
from replay.runs.topology import READS, lag_of, reads_of_live, topic_states
from scoring.score_stage import ScoreStage
from scoring.tally_stage import TallyStage
from stream.log.contract import Output, Topic
from stream.memory.log import MemoryLog
from stream.schema.runs import LIVE, Alias, Run, RunNames, features_of, names_of
from stream.schema.topics import FEATURES, all_topics
from tests.support.replay_world import put_rows


@pytest.mark.parametrize("names", [names_of(LIVE), names_of("r1", is_live=True), names_of("r2", features_of("r1"))])
def test_the_table_is_what_the_stages_read(names: RunNames) -> None:
    """What the table says that each group reads is what the stages of that run read; the first run's are READS."""
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
    """After a cutover the groups of the new run have a lag on the topics that it reads, and the old one's are gone."""
    log = MemoryLog()
    run = Run(name="r1", ruleset="default", digest="d", detector="x/1", epoch="e")
    log.create([*all_topics(2, "e"), Topic(run.names().verdicts, 2)])
    log.append([Output(topic, 1, b"k", b"v") for topic in (FEATURES, "verdicts.r1", "verdicts")])
    assert {state.name: state.lag for state in topic_states(log)}["verdicts.r1"] == {}
    put_rows(log, run, Alias(run="r1", before=LIVE, number=1))
    lags = {state.name: state.lag for state in topic_states(log)}
    assert (lags[FEATURES], lags["verdicts.r1"], lags["verdicts"]) == ({"judge.r1": 1}, {"tally.r1": 1}, {})


def test_lag_counts_what_a_group_has_not_committed() -> None:
    """A topic's state shows its records and how far behind its group is; others are not behind on it."""
    log = MemoryLog()
    log.create([Topic(FEATURES, 2)])
    log.append([Output(FEATURES, partition, b"k", b"v") for partition in (0, 0, 1)])
    log.reset("judge", FEATURES, [1, 0])
    (state,) = topic_states(log)
    assert (state.records, state.lag) == (3, {"judge": 2})


def test_lag_over_all_topics_of_a_group() -> None:
    """A group that has read nothing is behind by everything that is kept."""
    log = MemoryLog()
    log.create(all_topics(2, "e"))
    log.append([Output("verdicts", 0, b"k", b"v"), Output("scores", 1, b"k", b"v"), Output("pages", 1, b"k", b"v")])
    assert lag_of(log, "tally") == 2
