"""The table of who reads what agrees with the stages."""

from __future__ import annotations

from crawler.crawl_stage import CrawlStage
from farmwatch.flow import READS, lag_of, topic_states
from filters.judge_stage import JudgeStage
from filters.measure_stage import MeasureStage
from scoring.score_stage import ScoreStage
from scoring.tally_stage import TallyStage
from stream.log import Output, Topic
from stream.memory_log import MemoryLog
from stream.topics import FEATURES, all_topics


def test_the_table_is_what_the_stages_read() -> None:
    """READS names each stage's group and its inputs."""
    stages = (CrawlStage, MeasureStage, JudgeStage, ScoreStage, TallyStage)
    assert {stage.name: set(stage.inputs) for stage in stages} == {
        group: set(topics) for group, topics in READS.items()
    }


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
