"""The audit of one run: its verdicts and rows in its window, independent of other runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from farmwatch.audit.audit import audit
from farmwatch.daemon.roles import build_stage
from filters.known_scores import KnownScores
from filters.rules.ruleset import load_ruleset
from filters.stages.judge import JudgeStage
from replay.live.cutover import CutoverRequest, cut_over
from replay.runs.run_rules import RunRules
from scoring.stages.score import score_key
from stream.log.contract import Output, partition_of
from stream.processing.dead_letters import dead_letter
from stream.processing.metrics import Metrics
from stream.schema.records import Features, ScoreRequest, decode, encode
from stream.schema.roles import Role
from stream.schema.topics import FEATURES, HITS, REPLAY_REQUESTS, SCORE_REQUESTS, SCORES
from stream.text.user_errors import Exit, NotFound
from tests.support.front_door import PARTITIONS, Runner
from tests.support.pages.page_records import text_score
from tests.support.runs.cutover_world import DETECTOR, CutoverWorld, cutover_world

STEPS = ["features -> verdicts", "articles -> scores", "sites -> rows"]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CutoverWorld]:
    """A log where live and a replay have judged thirty records."""
    with cutover_world("embedded", tmp_path, monkeypatch) as made:
        made.begin_live()
        made.features(30)
        yield made


def _counts(world: CutoverWorld, run: str) -> dict[str, tuple[int, int, int, int]]:
    report = audit(world.log, run)
    return {name: (s.records, s.done, s.waiting, s.broken) for name, s in report.steps.items()}


def test_a_finished_run_is_clean(world: CutoverWorld) -> None:
    """Every features record has one verdict and every site its row; texts without a score wait."""
    world.replay(world.begin("r1"))
    found = _counts(world, "r1")
    assert list(found) == STEPS
    assert found["features -> verdicts"] == (30, 30, 0, 0)
    assert found["sites -> rows"] == (10, 10, 0, 0)
    articles = sum(verdict.verdict == "article" for verdict in world.verdicts(world.begin("r1").names()))
    assert found["articles -> scores"] == (articles, 0, articles, 0) and articles > 0


@pytest.mark.parametrize(("run", "dead"), [("r1", 1), ("", 1), ("other", 0)])
def test_a_dead_letter_excuses_its_own_run(world: CutoverWorld, run: str, dead: int) -> None:
    """A record that the audited run dead-lettered is dead; one that another run dead-lettered is missing.

    A letter without a run counts for all runs.
    """
    world.replay(world.begin("r1"))
    world.features(1)
    read = [message for partition in range(PARTITIONS) for message in world.log.read(FEATURES, partition)]
    (message,) = [message for message in read if decode(Features, message.value or b"").id == world.put[-1]]
    world.log.reset("judge.r1", FEATURES, world.log.end(FEATURES))
    world.log.append([dead_letter(message, "judge", ValueError("no"), 1, run)])
    step = audit(world.log, "r1").steps["features -> verdicts"]
    assert (step.dead, step.broken) == (dead, 1 - dead)


@pytest.mark.parametrize(("features", "named"), [("features", "live"), ("features.x", "x")])
def test_measure_works_for_the_run_whose_features_it_makes(world: CutoverWorld, features: str, named: str) -> None:
    """After a cutover, MEASURE's dead letters and counters keep the name of the run whose features it makes."""
    live = RunRules(world.begin("r1", features=features))
    with closing(build_stage(Role.MEASURE, world.config, Metrics(), live)) as stage:
        assert stage.run == named


def test_records_outside_the_window_do_not_count(world: CutoverWorld) -> None:
    """Records before the start and after the stop of the run are neither missing nor waiting; once live, they wait."""
    begin = [1] * PARTITIONS
    stop = {FEATURES: world.log.end(FEATURES), HITS: world.log.end(HITS), SCORES: world.log.end(SCORES)}
    run = world.begin("r1", start={FEATURES: begin}, stop=stop)
    world.log.reset("judge.r1", FEATURES, begin)
    world.replay(run)
    world.features(12)
    assert _counts(world, "r1")["features -> verdicts"] == (30 - PARTITIONS, 30 - PARTITIONS, 0, 0)
    assert audit(world.log, "r1").steps["sites -> rows"].waiting == 0
    cut_over(world.log, CutoverRequest("r1", "me", partial=True))
    assert _counts(world, "")["features -> verdicts"] == (42 - PARTITIONS, 30 - PARTITIONS, 12, 0)
    assert list(_counts(world, "")) == ["hits -> pages", "pages -> features", *STEPS]


def test_a_score_for_each_request_is_no_duplicate(world: CutoverWorld) -> None:
    """Live and a replay both requested a text, so it has two scores; a third one is a duplicate."""
    run = world.begin("r1", ruleset="default")
    world.work("judge", JudgeStage(load_ruleset("default")))
    world.replay(run)
    for topic in (SCORE_REQUESTS, REPLAY_REQUESTS):
        for partition in range(PARTITIONS):
            for message in list(world.log.read(topic, partition)):
                _score(world, partition, decode(ScoreRequest, message.value or b""))
    assert audit(world.log, "r1").steps["articles -> scores"].broken == 0
    message = next(m for partition in range(PARTITIONS) for m in world.log.read(SCORE_REQUESTS, partition))
    _score(world, message.partition, decode(ScoreRequest, message.value or b""))
    assert audit(world.log, "r1").steps["articles -> scores"].broken == 1


@pytest.mark.parametrize("asks", [False, True])
def test_articles_that_score_gives_no_score_are_unscored(world: CutoverWorld, asks: bool) -> None:
    """If SCORE does not run the detector of a replay, its texts are unscored, not lost."""
    run = world.begin("r1", ruleset="default")
    stage = JudgeStage(
        load_ruleset("default"), run="r1", names=run.names(), replays=True, detector="gone/1", may_request=lambda: asks
    )
    world.work("judge.r1", stage)
    if asks:
        assert audit(world.log, "r1").steps["articles -> scores"].waiting == 20
        world.log.reset("score", REPLAY_REQUESTS, world.log.end(REPLAY_REQUESTS))
    step = audit(world.log, "r1").steps["articles -> scores"]
    assert (step.records, step.done, step.broken, step.waiting) == (20, 20, 0, 0)
    assert step.reasons == {"unscored": 20}
    articles = [verdict for verdict in world.verdicts(run.names()) if verdict.verdict == "article"]
    verdict = articles[0]
    alike = sum(other.site == verdict.site and other.text_digest == verdict.text_digest for other in articles)
    request = ScoreRequest(
        id=verdict.id, site=verdict.site, page_id="p", url="", text_digest=verdict.text_digest, text=""
    )
    partition = partition_of(verdict.site, PARTITIONS)
    for detector, unscored in (("another/1", 20), (DETECTOR, 20 - alike)):
        _score(world, partition, request, detector)
        assert audit(world.log, "r1").steps["articles -> scores"].reasons == {"unscored": unscored}


def test_a_dead_lettered_request_is_dead(world: CutoverWorld) -> None:
    """A dead-lettered request is dead, even if it names a detector, because SCORE did not skip it."""
    run = world.begin("r1", ruleset="default")
    stage = JudgeStage(load_ruleset("default"), run="r1", names=run.names(), replays=True, detector=DETECTOR)
    world.work("judge.r1", stage)
    world.log.reset("score", REPLAY_REQUESTS, world.log.end(REPLAY_REQUESTS))
    message = next(m for partition in range(PARTITIONS) for m in world.log.read(REPLAY_REQUESTS, partition))
    world.log.append([dead_letter(message, "score", ValueError("no"), 1)])
    request = decode(ScoreRequest, message.value or b"")
    asked = (request.site, request.text_digest)
    alike = sum((verdict.site, verdict.text_digest) == asked for verdict in world.verdicts(run.names()))
    step = audit(world.log, "r1").steps["articles -> scores"]
    assert (step.dead, step.done, step.broken) == (alike, 20 - alike, 0)


def test_a_request_that_the_live_judge_lost_is_broken(world: CutoverWorld) -> None:
    """Once a run is live, each new article has its request; before that, a replay may have requested none."""
    run = world.begin("r1", ruleset="default")
    ruleset = load_ruleset("default")
    world.work("judge.r1", JudgeStage(ruleset, run="r1", names=run.names(), replays=True, may_request=lambda: False))
    cut_over(world.log, CutoverRequest("r1", "me", partial=True))
    world.features(3)  # two of them are articles
    world.work("judge.r1", JudgeStage(ruleset, run="r1", names=run.names(is_live=True), known=_AllKnown()))
    step = audit(world.log).steps["articles -> scores"]
    assert (step.records, step.done, step.broken) == (22, 20, 2)


class _AllKnown(KnownScores):
    """Makes JUDGE request nothing."""

    def __init__(self) -> None:
        super().__init__(DETECTOR, lambda _: ())

    def has(self, *_: object) -> bool:
        return True


def test_articles_with_scores_of_other_detectors_are_unscored(world: CutoverWorld) -> None:
    """SCORE has processed the requests with another detector than that of the run."""
    world.replay(world.begin("r1"))
    for partition in range(PARTITIONS):
        for message in list(world.log.read(REPLAY_REQUESTS, partition)):
            _score(world, partition, decode(ScoreRequest, message.value or b""), "another/1")
    world.log.reset("score", REPLAY_REQUESTS, world.log.end(REPLAY_REQUESTS))
    step = audit(world.log, "r1").steps["articles -> scores"]
    assert step.reasons["unscored"] == step.done == step.records > 0


def _score(world: CutoverWorld, partition: int, request: ScoreRequest, detector: str = DETECTOR) -> None:
    page, fetch = request.page_id, request.id
    score = text_score(request.site, request.text_digest, detector, True, page, fetch, score=1.0)
    world.log.append([Output(SCORES, partition, score_key(score).encode(), encode(score))])


def test_an_unknown_run_is_refused(world: CutoverWorld, farmwatch: Runner) -> None:
    """The message lists the existing runs; exit code 1."""
    with pytest.raises(NotFound, match="the runs of this log: first"):
        audit(world.log, "nope")
    ran = farmwatch("doctor", "audit", "--run", "nope", "--log", world.config.log.url)
    assert (ran.code, "there is no run 'nope'" in ran.err) == (Exit.PROBLEM, True)
    world.replay(world.begin("r1"))
    ran = farmwatch("doctor", "audit", "--run", "r1", "--log", world.config.log.url)
    assert ran.code == Exit.OK and "features -> verdicts\t30\t30" in ran.out
