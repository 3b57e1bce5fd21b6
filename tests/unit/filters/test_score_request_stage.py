"""The second request pass: each text without a request is requested once; a new member finds the rest in the log."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from filters.known_scores import ArticleText, KnownScores, UnrequestedTexts
from filters.rules.judgement import judge
from filters.rules.ruleset import parse_ruleset
from filters.stages.judge import ScoreRequestStage
from stream.log.errors import LogUnavailable
from stream.memory.log import MemoryLog
from stream.processing import heartbeat
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.schema.records import Features, ScoreRequest
from stream.schema.runs import names_of
from stream.schema.topics import FEATURES, REPLAY_REQUESTS, all_topics
from tests.support.logs.loops import count, cycle, refusing
from tests.support.logs.stage_work import put, records
from tests.support.pages.numbered_pages import numbered_page as page

RULESET = parse_ruleset('[rules.extracted]\nthreshold = "ok"\n[rules.min_tokens]\nthreshold = 5\n', "mine")
DETECTOR = "fake/1"


class Desk:
    """A log of one partition with pages; its requests count as known, besides `scored`."""

    def __init__(self, *pages: Features, scored: tuple[str, ...] = ()) -> None:
        self.log = MemoryLog(clock=lambda: 7)
        self.log.create(all_topics(1, "e"))
        put(self.log, FEATURES, *pages)
        self.log.append([heartbeat.travelling(FEATURES, 0, {heartbeat.HEADER: "5000"})])
        self.scored, self.metrics = scored, Metrics()

    def articles(self, partition: int) -> Iterator[ArticleText]:
        assert partition == 0
        for verdict in (judge(found, RULESET) for found in records(self.log, FEATURES, Features)):
            if verdict.verdict == "article":
                yield ArticleText(verdict.site, verdict.text_digest, verdict.id)

    def known(self) -> KnownScores:
        texts = [*self.scored, *(f"{request.site} {request.text_digest}" for request in self.requests())]
        return KnownScores(DETECTOR, lambda _: [(0, 0, f"{text}:{DETECTOR}".encode()) for text in texts])

    def requests(self) -> list[ScoreRequest]:
        return records(self.log, REPLAY_REQUESTS, ScoreRequest)

    def asked(self) -> list[str]:
        return [request.id for request in self.requests()]

    def loop(self, *faults: Exception) -> StageLoop:
        """A member of the pass, whose first commits raise these errors."""
        unasked = UnrequestedTexts(self.articles, self.known)
        stage = ScoreRequestStage(RULESET, unasked, run="r1", names=names_of("r1"), detector=DETECTOR)
        stage.poll_s, stage.max_records = 0.001, 2
        member: Any = refusing(self.log.join("ask.r1", list(stage.inputs), member="one"), *faults)
        return StageLoop(stage, member, metrics=self.metrics, clock=lambda: 7)

    def run(self, loop: StageLoop) -> None:
        cycle(loop, 6)
        stop = threading.Event()
        stop.set()
        loop.run(stop)


def test_it_asks_for_each_unasked_text_once_a_site() -> None:
    """Texts with a score, dropped pages and repeated texts are skipped, even if one fetch id has two texts."""
    pages = [page(1), page(2), page(3, "x"), page(4, "x"), page(5, "x", "b.example"), page(6, tokens=1)]
    desk = Desk(*pages, page(2), page(1, "y"), scored=("a.example t1",))
    desk.run(desk.loop())
    asked = [(request.id, request.text) for request in desk.requests()]
    assert asked == [("f2", "2"), ("f3", "x"), ("f5", "x"), ("f1", "y")]
    assert {(request.run, request.detector) for request in desk.requests()} == {("r1", DETECTOR)}
    assert {m.topic for topic in desk.log.topics() for m in desk.log.read(topic, 0)} == {FEATURES, REPLAY_REQUESTS}
    labels = {"run": "r1", "ruleset": "mine", "stage": "ask"}
    assert count(desk.metrics, "stage_records_total", **labels, result="asked") == 4
    assert count(desk.metrics, "stage_records_total", **labels, result="passed_over") == 4
    assert count(desk.metrics, "heartbeat_timestamp_seconds", stage="ask") == 0


def test_whoever_begins_anew_asks_for_what_is_left() -> None:
    """A fenced member has requested whole batches; the next member requests the rest."""
    desk = Desk(*[page(number) for number in range(8)])
    first = desk.loop()
    cycle(first, 2)
    assert len(desk.asked()) == 4
    desk.log.join("ask.r1", [FEATURES], member="one").close()
    desk.log.reset("ask.r1", FEATURES, [0])
    desk.run(desk.loop())
    desk.run(first)
    assert desk.asked() == [f"f{number}" for number in range(8)]


def test_a_batch_that_is_rolled_back_asks_once() -> None:
    """After a failed commit, the same member requests the texts of the batch when it repeats the batch."""
    desk = Desk(*[page(number) for number in range(3)])
    desk.run(desk.loop(LogUnavailable("away for a moment")))
    assert desk.asked() == ["f0", "f1", "f2"]


def test_what_is_unasked_is_counted_by_text() -> None:
    """Unrequested texts are counted, including taken ones until the partition is read again."""
    articles = [ArticleText("a", "t1", "f1"), ArticleText("a", "t1", "f2"), ArticleText("b", "t1", "f3")]
    unasked = UnrequestedTexts(
        lambda partition: articles if partition == 1 else [], lambda: KnownScores("d/1", lambda _: ())
    )
    assert [unasked.count(partition) for partition in (0, 1)] == [0, 2]
    assert [unasked.has_fetch(1, fetch) for fetch in ("f1", "f2", "f3", "f4")] == [True, True, True, False]
    assert [unasked.take(1, site, "t1") for site in ("a", "a", "b", "c")] == [True, False, True, False]
    assert not unasked.take(0, "a", "t1")
    assert unasked.count(1) == 2
    unasked.forget([1, 2])
    assert unasked.take(1, "a", "t1")
