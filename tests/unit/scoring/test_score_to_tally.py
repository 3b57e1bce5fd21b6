"""SCORE and TALLY on one log: no score is lost between them, and heartbeats count once they have gone all the way."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest

from scoring.detectors.testing import FakeDetector
from scoring.errors import DeviceGone, DeviceLost
from scoring.interface import TextScore
from scoring.score_stage import ScoreStage
from scoring.settings import TallySettings
from scoring.sites.sprt import SprtParams
from scoring.tally_stage import TallyStage
from stream.log.contract import Output
from stream.memory.log import MemoryLog
from stream.processing import heartbeat
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.processing.stage import Stage
from stream.schema.records import Record, Score, ScoreRequest, SiteState, Verdict, decode, encode
from stream.schema.topics import HITS, SCORE_REQUESTS, SCORES, SITES, VERDICTS, all_topics

NOW_MS = 10**9
DETECTOR = FakeDetector().identity


@pytest.fixture
def log() -> MemoryLog:
    """A log of one partition, so that all sites share it."""
    log = MemoryLog(clock=lambda: NOW_MS)
    log.create(all_topics(1, "e"))
    return log


def article(site: str, number: int, digest: str, visit: int = 1) -> Iterator[Output]:
    """What JUDGE writes for an article; the text is flagged."""
    fetch, page, url = f"{site}/{number}v{visit}", f"{site}/{number}", f"http://{site}/{number}"
    verdict = Verdict(
        id=fetch, site=site, page_id=page, url=url, verdict="article", text_digest=digest, digest="d1", fetched_at=visit
    )
    request = ScoreRequest(id=fetch, site=site, page_id=page, url=url, text_digest=digest, text="LLM", fetched_at=visit)
    for topic, record in ((VERDICTS, verdict), (SCORE_REQUESTS, request)):
        yield put(topic, record)


def put(topic: str, record: Record) -> Output:
    """A record under its site's key."""
    return Output(topic, 0, record.site.encode(), encode(record))


def work(log: MemoryLog, stage: Stage, cycles: int = 4) -> Metrics:
    """Let a stage read what is there."""
    metrics = Metrics()
    stage.poll_s = 0.001
    member = log.join(stage.name, list(stage.inputs), member="one", store=stage.store)
    loop = StageLoop(stage, member, metrics=metrics, clock=lambda: NOW_MS)
    for _ in range(cycles):
        loop.cycle(threading.Event())
    member.close()
    return metrics


def rows(log: MemoryLog) -> dict[str, SiteState]:
    """The newest row of each site."""
    found = [decode(SiteState, message.value) for message in log.read(SITES, 0) if message.value]
    return {row.site: row for row in found}


def test_a_text_of_two_sites_is_scored_for_both(log: MemoryLog) -> None:
    """Compaction between SCORE and TALLY takes no site's score, where both have the same text in one partition."""
    log.append([*article("a.example", 1, "same"), *article("b.example", 1, "same")])
    work(log, ScoreStage(lambda: [FakeDetector()]))
    log.expire(NOW_MS)
    work(log, TallyStage(DETECTOR))
    assert {site: (row.articles, row.scored, row.flagged) for site, row in rows(log).items()} == {
        "a.example": (1, 1, 1),
        "b.example": (1, 1, 1),
    }


def test_compaction_joins_only_scores_that_say_the_same(log: MemoryLog) -> None:
    """A text on two pages of a site and a page scored on two visits leave one score, and it counts for all of them."""
    log.append([*article("a.example", 1, "same"), *article("a.example", 2, "same"), *article("a.example", 3, "old")])
    log.append([*article("a.example", 3, "same", visit=2), *article("a.example", 4, "old")])
    work(log, ScoreStage(lambda: [FakeDetector()]))
    log.expire(NOW_MS)
    assert sorted(decode(Score, m.value).id for m in log.read(SCORES, 0) if m.value) == [
        f"old:{DETECTOR}",
        f"same:{DETECTOR}",
    ]
    work(log, TallyStage(DETECTOR, TallySettings(sprt=SprtParams(min_articles=2))))
    row = rows(log)["a.example"]
    assert (row.articles, row.scored, row.flagged, row.pages_used) == (4, 4, 4, 2)


def test_a_heartbeat_is_through_when_it_comes_with_the_scores(log: MemoryLog) -> None:
    """TALLY reads the topic where heartbeats start: one seen there has gone no way and does not count."""
    log.append([heartbeat.travelling(HITS, 0, {heartbeat.HEADER: str(NOW_MS)})])
    assert through(work(log, TallyStage(DETECTOR))) == 0
    log.append([heartbeat.travelling(SCORES, 0, {heartbeat.HEADER: str(NOW_MS - 5000)})])
    metrics = work(log, TallyStage(DETECTOR))
    assert through(metrics) == 1
    assert metrics.registry.get_sample_value("farmwatch_heartbeat_duration_seconds_sum") == 5


def through(metrics: Metrics) -> float:
    """Heartbeats that TALLY counted as through."""
    return metrics.registry.get_sample_value("farmwatch_heartbeat_duration_seconds_count") or 0


class Card(FakeDetector):
    """Fails as often as told before it scores anything."""

    def __init__(self, *faults: Exception) -> None:
        super().__init__()
        self.faults = list(faults)
        self.warm = False

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """Raise the next fault, once the detector is warm."""
        if self.warm and self.faults:
            raise self.faults.pop(0)
        self.warm = True
        return super().score(texts)


def test_a_lost_device_costs_no_record_and_doubles_none(log: MemoryLog) -> None:
    """The batch is rolled back and scored again: each request has one score, and nothing is buried."""
    log.append([output for n in range(9) for output in article("a.example", n, f"text {n}")])
    stage = ScoreStage(lambda: [Card(DeviceLost("fell off the bus"), DeviceLost("again"))], batch_texts=2)
    metrics = work(log, stage, cycles=12)
    scores = [decode(Score, message.value) for message in log.read(SCORES, 0) if message.value]
    assert [score.text_digest for score in scores] == [f"text {n}" for n in range(9)]
    assert list(log.read("dead-letters", 0)) == []
    labels = {"run": "first", "ruleset": "", "stage": "score", "result": "scored"}
    assert metrics.registry.get_sample_value("farmwatch_stage_records_total", labels) == 9


def test_a_device_that_is_gone_ends_the_process_and_buries_nothing(log: MemoryLog) -> None:
    """No record is to blame: the loop ends with the error, and the next process scores all of them."""
    log.append([output for n in range(3) for output in article("a.example", n, f"text {n}")])
    with pytest.raises(DeviceGone):
        work(log, ScoreStage(lambda: [Card(DeviceGone("lost three times"))]))
    assert list(log.read("dead-letters", 0)) == []
    work(log, ScoreStage(lambda: [FakeDetector()]))
    assert len([message for message in log.read(SCORES, 0) if message.value]) == 3
