"""JUDGE and MEASURE in runs: their topics, a replay's requests to the detector, and no request twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from filters.known_scores import KnownScores
from filters.measure.workers import ExtractionPool
from filters.rules.judgement import judge
from filters.rules.ruleset import parse_ruleset
from filters.settings import MeasureSettings
from filters.stages.judge import JudgeStage, requested_store
from filters.stages.measure import MeasureStage
from stream.log.contract import Message, Topic
from stream.memory.log import MemoryLog
from stream.processing import heartbeat
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.schema.records import ScoreRequest, Verdict
from stream.schema.runs import features_of, names_of
from stream.schema.topics import FEATURES, all_topics
from tests.support.logs.loops import count, cycle
from tests.support.logs.stage_work import put, records
from tests.support.pages.numbered_pages import numbered_page as features

RULESET = parse_ruleset('[rules.extracted]\nthreshold = "ok"\n[rules.min_tokens]\nthreshold = 5\n', "mine")
RUN = "r1"
DETECTOR = "fake/1"


def new_log(run: str = RUN, topic: str = FEATURES) -> MemoryLog:
    """A log of one partition with the live topics and those of a run."""
    log = MemoryLog(clock=lambda: 7)
    names = names_of(run, topic)
    own = {names.features, names.verdicts, f"state.{requested_store(run)}"} - {FEATURES}
    topics = [*all_topics(1, "e"), *(Topic(name, 1) for name in own)]
    log.create(topics)
    return log


@contextmanager
def running(
    log: MemoryLog, stage: JudgeStage, clock: Callable[[], int] = lambda: 7, metrics: Metrics | None = None
) -> Iterator[StageLoop]:
    """The loop of a new member of the stage's group, which leaves the group at the end."""
    stage.poll_s = 0.001
    member = log.join(f"judge.{stage.run}", list(stage.inputs), member="one", store=stage.store)
    yield StageLoop(stage, member, metrics=metrics or Metrics(), clock=clock)
    member.close()


def work(log: MemoryLog, stage: JudgeStage, cycles: int = 3) -> Metrics:
    metrics = Metrics()
    with running(log, stage, metrics=metrics) as loop:
        cycle(loop, cycles)
    return metrics


def known(*scored: tuple[str, str]) -> KnownScores:
    keys = [f"{site} {digest}:{DETECTOR}".encode() for site, digest in scored]
    return KnownScores(DETECTOR, lambda _: [(0, offset, key) for offset, key in enumerate(keys)])


def replays(*scored: tuple[str, str], **more: Any) -> JudgeStage:
    settings = {"run": RUN, "known": known(*scored), "replays": True, "detector": DETECTOR, **more}
    return JudgeStage(RULESET, **settings)


def messages(log: MemoryLog, topic: str) -> Sequence[Message]:
    return list(log.read(topic, 0))


def asked(log: MemoryLog, topic: str = "score.requests.replay") -> list[tuple[str, str]]:
    return [(request.id, request.text) for request in records(log, topic, ScoreRequest)]


def test_a_replay_writes_beside_the_live_topics() -> None:
    """Verdicts go to the run's own topic with its name and ruleset as headers; the live topics stay empty."""
    log = new_log()
    pages = [features(1), features(2, tokens=2)]
    put(log, FEATURES, *pages)
    metrics = work(log, replays())
    found = messages(log, f"verdicts.{RUN}")
    verdicts = records(log, f"verdicts.{RUN}", Verdict)
    assert verdicts == [judge(page, RULESET, now_ms=7, run=RUN) for page in pages]
    assert {(m.headers["run"], m.headers["ruleset"]) for m in found} == {(RUN, RULESET.digest)}
    assert messages(log, "verdicts") == messages(log, "score.requests") == []
    (request,) = records(log, "score.requests.replay", ScoreRequest)
    fields = {name: getattr(pages[0], name) for name in ("id", "site", "page_id", "url", "text_digest", "text")}
    expected = ScoreRequest(**fields, fetched_at=pages[0].fetched_at, run=RUN, detector=DETECTOR)
    assert request == expected
    assert count(metrics, "page_verdicts_total", run=RUN, ruleset="mine", verdict="article") == 1
    assert count(metrics, "rule_drops_total", run=RUN, ruleset="mine", rule="min_tokens") == 1


def test_a_replay_asks_only_for_texts_without_a_score_and_once_a_site() -> None:
    """Known texts are not requested; a text on two pages is requested once, and once more for another site."""
    log = new_log()
    pages = [features(1), features(2), features(3, text="x"), features(4, text="x")]
    pages += [features(5, text="x", site="b.example"), features(6, site="b.example", tokens=1)]
    put(log, FEATURES, *pages)
    work(log, replays(("a.example", "t1"), ("b.example", "t2")))
    assert asked(log) == [("f2", "2"), ("f3", "x"), ("f5", "x")]
    requests = records(log, "score.requests.replay", ScoreRequest)
    assert {(request.run, request.detector) for request in requests} == {(RUN, DETECTOR)}


def test_what_was_asked_is_asked_by_no_later_process_of_the_run() -> None:
    """A second process of the run requests only new texts; another run requests all texts."""
    log = new_log()
    put(log, FEATURES, features(1))
    work(log, replays())
    put(log, FEATURES, features(2, text="1"), features(3))
    work(log, replays())
    assert asked(log) == [("f1", "1"), ("f3", "3")]


def test_a_batch_that_is_rolled_back_asks_once() -> None:
    """If the commit of a batch fails, its texts are requested when the batch is repeated."""
    log = new_log()
    put(log, FEATURES, features(1), features(2))
    stage = replays()
    with running(log, stage) as loop:
        log.join(f"judge.{RUN}", list(stage.inputs), member="one", store=stage.store).close()  # fences the first
        cycle(loop, 4)
    work(log, replays())
    assert asked(log) == [("f1", "1"), ("f2", "2")]
    assert len(messages(log, f"verdicts.{RUN}")) == 2


def test_a_replay_asks_only_while_it_can() -> None:
    """While SCORE does not run its detector, texts are judged only; a later page with the same text requests it."""
    log = new_log()
    answers = iter([False, True, True])
    put(log, FEATURES, features(1, text="x"), features(2, text="x"), features(3))
    work(log, replays(may_request=lambda: next(answers)))
    assert len(messages(log, f"verdicts.{RUN}")) == 3
    assert asked(log) == [("f2", "x"), ("f3", "3")]


def test_a_replay_takes_in_scores_that_come_while_it_works() -> None:
    """A text that was scored after the index was read is not requested once the index is refreshed."""
    log = new_log()
    keys = [(0, 0, b"a.example t1:fake/1")]
    found = KnownScores(DETECTOR, lambda after: [key for key in keys if key[1] >= after[0]])
    clock = [7]
    with running(log, replays(known=found), lambda: clock[0]) as loop:
        for number, clock[0] in ((1, 20_000), (2, 21_000), (3, 31_000), (4, 32_000)):
            put(log, FEATURES, features(number))
            cycle(loop, 1)
            if number == 1:
                keys += [(0, offset, f"a.example t{offset + 1}:fake/1".encode()) for offset in (1, 2, 3)]
    assert asked(log) == [("f2", "2"), ("f3", "3")]


def test_the_live_run_asks_for_no_text_that_is_known_to_have_a_score() -> None:
    """The live run requests texts without a score, at its own priority and for any detector, without state."""
    log = new_log()
    put(log, FEATURES, features(1), features(2), features(3, text="2"))
    stage = JudgeStage(RULESET, run=RUN, names=names_of(RUN, is_live=True), known=known(("a.example", "t1")))
    assert (stage.store, stage.forward) == (None, "score.requests")
    work(log, stage)
    assert asked(log) == []
    assert asked(log, "score.requests") == [("f2", "2"), ("f3", "2")]
    assert {request.detector for request in records(log, "score.requests", ScoreRequest)} == {""}


def test_the_live_run_forgets_what_is_known_once_it_has_caught_up() -> None:
    """While JUDGE is behind, a text with a score is not requested; afterwards it is, without look-ups."""
    log = new_log()
    is_behind = iter([True, False])
    names = names_of(RUN, is_live=True)
    texts = known(("a.example", "t1"))
    stage = JudgeStage(RULESET, run=RUN, names=names, known=texts, is_behind=lambda: next(is_behind))
    clock = [20_000]
    with running(log, stage, lambda: clock[0]) as loop:
        for number, clock[0] in enumerate((20_000, 21_000, 31_000, 32_000, 60_000)):
            put(log, FEATURES, features(number, text="1"))
            cycle(loop, 1)
    assert [fetch for fetch, _ in asked(log, "score.requests")] == ["f3", "f4"]


def test_the_live_run_asks_for_every_article() -> None:
    """Any run that is live requests on the live topic, writes its own topic of verdicts, and keeps no state."""
    for run, topic in (("live", "verdicts"), (RUN, f"verdicts.{RUN}")):
        log = new_log()
        put(log, FEATURES, features(1), features(2, text="1"))
        stage = JudgeStage(RULESET, run=run, names=names_of(run, is_live=True))
        assert (stage.store, stage.forward) == (None, "score.requests")
        work(log, stage)
        assert asked(log, "score.requests") == [("f1", "1"), ("f2", "1")]
        assert len(messages(log, topic)) == 2
        assert asked(log) == []


def test_heartbeats_end_at_a_replay_and_pass_the_live_run() -> None:
    """The live run forwards and counts heartbeats; a replay does neither."""
    for replay, sent in ((True, 0), (False, 1)):
        log = new_log()
        log.append([heartbeat.travelling(FEATURES, 0, {heartbeat.HEADER: "5000"})])
        metrics = work(log, JudgeStage(RULESET, run=RUN, replays=replay))
        found = [m for topic in log.topics() if topic != FEATURES for m in messages(log, topic)]
        assert [m.topic for m in found] == ["score.requests"] * sent
        assert bool(count(metrics, "heartbeat_timestamp_seconds", stage="judge")) == bool(sent)


def test_a_run_that_measured_anew_is_judged_from_its_own_features() -> None:
    """A run that measured again reads its own features, not those of the live run."""
    topic = features_of(RUN)
    log = new_log(topic=topic)
    put(log, FEATURES, features(1))
    put(log, topic, features(2))
    work(log, replays(names=names_of(RUN, topic)))
    assert [verdict.id for verdict in records(log, f"verdicts.{RUN}", Verdict)] == ["f2"]


@pytest.mark.parametrize(("replays", "forward", "counts"), [(True, None, ""), (False, "features.r1", None)])
def test_measure_of_a_run_has_its_own_topic_and_memory(
    pool: ExtractionPool, replays: bool, forward: str | None, counts: str | None
) -> None:
    """A run that measures again has its own features and site memory; as a replay it forwards no heartbeat."""
    names = names_of(RUN, features_of(RUN))
    stage = MeasureStage(MeasureSettings(workers=2), run=RUN, names=names, replays=replays, pool=pool)
    assert stage.store == f"site-memory.{stage.epoch}.{RUN}"
    assert (stage.forward, stage.heartbeat_input, set(stage.inputs)) == (forward, counts, {"pages"})
