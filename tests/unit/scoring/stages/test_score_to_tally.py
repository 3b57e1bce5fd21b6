"""SCORE and TALLY on one log: no score is lost between them, and heartbeats count only after all stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from scoring.errors import DeviceGone, DeviceLost
from scoring.interface import TextScore
from scoring.sites.settings import TallySettings
from scoring.sites.sprt import SprtParams
from scoring.stages.score import ScoreStage
from scoring.stages.tally import TallyStage
from stream.memory.log import MemoryLog
from stream.processing import heartbeat
from stream.processing.metrics import Metrics
from stream.processing.stage import Stage
from stream.schema.records import Score, ScoreRequest, SiteState, Verdict
from stream.schema.topics import HITS, SCORE_REQUESTS, SCORES, SITES, VERDICTS, all_topics
from tests.support.fake_detector import FakeDetector
from tests.support.logs import stage_work
from tests.support.logs.stage_work import put, records

NOW_MS = 10**9
DETECTOR = FakeDetector().identity


@pytest.fixture
def log() -> MemoryLog:
    """A log of one partition, which all sites share."""
    log = MemoryLog(clock=lambda: NOW_MS)
    log.create(all_topics(1, "e"))
    return log


def put_article(log: MemoryLog, site: str, number: int, digest: str, visit: int = 1) -> None:
    """JUDGE's records for an article with a flagged text."""
    names: dict[str, Any] = {
        "id": f"{site}/{number}v{visit}",
        "site": site,
        "page_id": f"{site}/{number}",
        "url": f"http://{site}",
    }
    text: dict[str, Any] = {"text_digest": digest, "fetched_at": visit}
    put(log, VERDICTS, Verdict(**names, **text, verdict="article", digest="d1"))
    put(log, SCORE_REQUESTS, ScoreRequest(**names, **text, text="LLM"))


def work(log: MemoryLog, stage: Stage) -> Metrics:
    """Run a stage over all records."""
    return stage_work.work(log, stage, lambda: NOW_MS)


def test_a_text_of_two_sites_is_scored_for_both(log: MemoryLog) -> None:
    """If two sites of a partition have the same text, compaction between SCORE and TALLY keeps both scores."""
    for site in ("a.example", "b.example"):
        put_article(log, site, 1, "same")
    work(log, ScoreStage(lambda: [FakeDetector()]))
    log.expire(NOW_MS)
    work(log, TallyStage(DETECTOR))
    rows = {row.site: (row.articles, row.scored, row.flagged) for row in records(log, SITES, SiteState)}
    assert rows == {"a.example": (1, 1, 1), "b.example": (1, 1, 1)}


def test_compaction_joins_only_scores_that_say_the_same(log: MemoryLog) -> None:
    """One text on two pages, or two visits of a page, has one score that counts for both."""
    for number, digest, visit in ((1, "same", 1), (2, "same", 1), (3, "old", 1), (3, "same", 2), (4, "old", 1)):
        put_article(log, "a.example", number, digest, visit)
    work(log, ScoreStage(lambda: [FakeDetector()]))
    log.expire(NOW_MS)
    assert sorted(score.id for score in records(log, SCORES, Score)) == [f"old:{DETECTOR}", f"same:{DETECTOR}"]
    work(log, TallyStage(DETECTOR, TallySettings(sprt=SprtParams(min_articles=2))))
    row = records(log, SITES, SiteState)[-1]
    assert (row.articles, row.scored, row.flagged, row.pages_used) == (4, 4, 4, 2)


def test_a_heartbeat_is_through_when_it_comes_with_the_scores(log: MemoryLog) -> None:
    """A heartbeat that TALLY reads on its first topic has not passed all stages and does not count."""
    log.append([heartbeat.travelling(HITS, 0, {heartbeat.HEADER: str(NOW_MS)})])
    assert through(work(log, TallyStage(DETECTOR))) == 0
    log.append([heartbeat.travelling(SCORES, 0, {heartbeat.HEADER: str(NOW_MS - 5000)})])
    metrics = work(log, TallyStage(DETECTOR))
    assert through(metrics) == 1
    assert metrics.registry.get_sample_value("farmwatch_heartbeat_duration_seconds_sum") == 5


def through(metrics: Metrics) -> float:
    """Heartbeats that TALLY counted."""
    return metrics.registry.get_sample_value("farmwatch_heartbeat_duration_seconds_count") or 0


class Card(FakeDetector):
    """A device that fails a given number of times before it scores."""

    def __init__(self, *faults: Exception) -> None:
        super().__init__()
        self.faults = list(faults)
        self.warm = False

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """Raise the next error after the warm-up."""
        if self.warm and self.faults:
            raise self.faults.pop(0)
        self.warm = True
        return super().score(texts)


def test_a_lost_device_costs_no_record_and_doubles_none(log: MemoryLog) -> None:
    """The batch is rolled back and scored again: each request has one score, and none is dead-lettered."""
    for n in range(9):
        put_article(log, "a.example", n, f"text {n}")
    stage = ScoreStage(lambda: [Card(DeviceLost("fell off the bus"), DeviceLost("again"))], batch_texts=2)
    metrics = work(log, stage)
    assert [score.text_digest for score in records(log, SCORES, Score)] == [f"text {n}" for n in range(9)]
    assert list(log.read("dead-letters", 0)) == []
    labels = {"run": "first", "ruleset": "", "stage": "score", "result": "scored"}
    assert metrics.registry.get_sample_value("farmwatch_stage_records_total", labels) == 9


def test_a_device_that_is_gone_ends_the_process_and_buries_nothing(log: MemoryLog) -> None:
    """If the device is gone, the loop ends without dead letters, and the next process scores all records."""
    for n in range(3):
        put_article(log, "a.example", n, f"text {n}")
    with pytest.raises(DeviceGone):
        work(log, ScoreStage(lambda: [Card(DeviceGone("lost three times"))]))
    assert list(log.read("dead-letters", 0)) == []
    work(log, ScoreStage(lambda: [FakeDetector()]))
    assert len(records(log, SCORES, Score)) == 3
