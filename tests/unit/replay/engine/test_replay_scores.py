"""Scores of a replay: requested once, from the right detector, while SCORE runs it; known scores are reused."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
import pytest

from farmwatch.commands.runs.replay import _unscored_warning
from farmwatch.daemon.roles import build_stage
from farmwatch.runs.summary_lines import lines_of
from filters.stages.judge import JudgeStage
from replay.compare.comparer import ComparisonRequest, compare
from replay.engine.bounded_member import BoundedMember
from replay.engine.runner import Ending
from replay.engine.summary import summary_of
from replay.rows.scores import (
    announce_detectors,
    backlog,
    count_unrequested,
    is_scored,
    requests_wait,
    scores_of_backlog,
)
from replay.rows.site_table import counts_of, read_rows
from replay.runs.phases import request_phase
from stream.log.contract import Commit, Output, partition_of
from stream.memory.log import MemoryLog
from stream.processing.metrics import Metrics
from stream.schema.control import Control
from stream.schema.records import Score, ScoreRequest
from stream.schema.roles import Role
from stream.schema.runs import RunStatus, names_of
from stream.schema.topics import CONTROL, FEATURES, PAGES, SCORE_REQUESTS
from tests.support.runs import replay_world
from tests.support.runs.replay_world import (
    DETECTOR,
    OTHER_DETECTOR,
    PARTITIONS,
    LiveWorld,
    Working,
    config_of,
    features_of_pages,
    live_world,
    pages_later,
    requests_of,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

later_pages = partial(pages_later, sites=6, pages=5)

_score_of = replay_world.score_of
_DAY_MS = 86_400_000


@pytest.fixture
def world(tmp_path: Path) -> LiveWorld:
    """A log where live judged 60 pages of 6 sites; SCORE runs one detector."""
    return live_world(tmp_path, 6, 10, detectors=[DETECTOR])


def unscored(world: LiveWorld, run: str) -> int:
    return counts_of(read_rows(world.log, names_of(run).sites)).unscored


def said(world: LiveWorld, run: str) -> str:
    """The printed result of a run."""
    summary = summary_of(world.log, Control(world.log), world.config, world.row(run), 1)
    return "\n".join(lines_of(summary, world.row(run)))


def all_flagged(request: ScoreRequest, detector: str = DETECTOR) -> Score:
    return msgspec.structs.replace(_score_of(request, detector), flag=True, score=1.0)


def test_a_detector_that_score_runs_later(world: LiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """While SCORE runs another detector, no score is requested, and the result says that all are missing.

    Once SCORE runs the right one, the resumed run requests each text once and uses the scores; a comparison shows the
    change.
    """
    run, ruleset = world.begin(detector=OTHER_DETECTOR, name="b")
    warning = _unscored_warning(world.log, run, world.config)
    assert DETECTOR in warning and "--name b" in warning
    assert world.resume(run, ruleset) is Ending.DONE
    articles = counts_of(read_rows(world.log, "sites.b")).articles
    assert requests_of(world) == []
    assert unscored(world, "b") == articles > 0
    assert f"{articles} articles have no score yet" in said(world, "b")
    assert f"SCORE runs {DETECTOR}, not {OTHER_DETECTOR}" in said(world, "b")
    assert "--name b    # adds newer scores, requests missing ones" in said(world, "b")
    assert world.replay(name="b") is Ending.DONE
    assert requests_of(world) == []

    world.score_runs(DETECTOR, OTHER_DETECTOR)
    assert _unscored_warning(world.log, run, world.config) == ""
    assert world.replay(name="b") is Ending.DONE
    assert "wait for SCORE, and none is running: start `farmwatch up --role score`" in said(world, "b")
    score = world.log.join("score", [SCORE_REQUESTS], member="score-1")
    assert "requests of replays wait for SCORE, which scores live texts first" in said(world, "b")
    score.close()
    once = requests_of(world)
    assert len(set(once)) == len(once) > 0
    assert set(once) == set(requests_of(world, topic=SCORE_REQUESTS))
    assert unscored(world, "b") == articles
    assert world.replay(name="b") is Ending.DONE
    assert requests_of(world) == once  # they wait for SCORE

    monkeypatch.setattr(replay_world, "score_of", all_flagged)
    assert world.score() == len(once)
    assert world.replay(name="b") is Ending.DONE
    assert (unscored(world, "b"), requests_of(world)) == (0, once)
    assert "no score yet" not in said(world, "b")
    rows = world.outcome("b")[1].values()
    assert all(row.detector == OTHER_DETECTOR and row.flagged == row.scored for row in rows)
    found = compare(world.log, "live", "b", ComparisonRequest(sample=1, seed=0, resamples=50), world.config.rate, 1)
    flagged = next(change for change in found.changes if change.name == "flagged_share")
    assert (found.b.detector, found.b.unscored, flagged.b) == (OTHER_DETECTOR, 0, 1.0)
    assert flagged.a is not None and flagged.a < 1.0
    assert found.b.llm > found.a.llm


def test_unanswered_requests_are_repeated(world: LiveWorld) -> None:
    """If SCORE changed its detector before the answer, the resumed run requests the text once more."""
    file = world.rules
    assert world.replay(ruleset=file, name="loose") is Ending.DONE
    once = requests_of(world)
    assert len(once) > 1
    assert unscored(world, "loose") >= len(once)
    world.score_runs(OTHER_DETECTOR)
    assert world.score() == len(once)
    assert world.replay(name="loose") is Ending.DONE
    assert requests_of(world) == once
    world.score_runs(DETECTOR)
    for _ in range(2):
        assert world.replay(name="loose") is Ending.DONE
        assert sorted(requests_of(world)) == sorted(2 * once)
    assert world.score(share=0.5) == len(once)
    assert world.replay(name="loose") is Ending.DONE
    third = requests_of(world)[2 * len(once) :]
    assert 0 < len(third) < len(once)
    assert world.score() == len(third)
    assert world.replay(name="loose") is Ending.DONE
    assert unscored(world, "loose") == 0
    assert not requests_wait(world.log)


class Killed(Exception):
    """Stands for a kill: after it, the member only leaves the group."""


@pytest.mark.parametrize("is_written", [False, True])
def test_an_interrupted_pass_requests_nothing_twice(
    world: LiveWorld, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    """Killed just before or after each commit and resumed, it requests each text once."""
    world.tempo.records = 15
    world.replay(detector=OTHER_DETECTOR, name="b")
    world.score_runs(OTHER_DETECTOR)
    run, ruleset = world.begin(name="b")
    group, commit, commits = request_phase(run).group, BoundedMember.commit, [0]

    def killing(member: BoundedMember, given: Commit) -> None:
        if member.group != group or not given.outputs:
            return commit(member, given)
        commits[0] += 1
        if is_written or commits[0] % 2 == 0:
            commit(member, given)
        if is_written or commits[0] % 2 == 1:
            raise Killed

    monkeypatch.setattr(BoundedMember, "commit", killing)
    kills = 0
    while world.row("b").state != RunStatus.DONE:
        run, ruleset = world.begin(name="b")
        with suppress(Killed):
            assert world.resume(run, ruleset) is Ending.DONE
            break
        kills += 1
    assert kills > 1
    once = requests_of(world)
    assert len(set(once)) == len(once)
    assert set(once) == set(requests_of(world, topic=SCORE_REQUESTS))


@pytest.fixture
def looks_often(world: LiveWorld) -> None:
    world.tempo.check_s = world.tempo.control_s = 0.01


def left_unanswered(world: LiveWorld) -> None:
    """SCORE runs another detector for a while and leaves requests unanswered."""
    world.score_runs(OTHER_DETECTOR)
    world.score()
    world.score_runs(DETECTOR)


def test_a_follower_requests_once_score_runs_its_detector(world: LiveWorld, looks_often: None) -> None:
    """It goes back once over its verdicts, then follows on and requests new texts."""
    run, ruleset = world.begin(detector=OTHER_DETECTOR, name="b", end="follow")
    assert "this process" in _unscored_warning(world.log, run, world.config)
    work = Working(world, (run, ruleset))
    work.patiently("caught up")
    assert requests_of(world) == []
    world.score_runs(DETECTOR, OTHER_DETECTOR)
    work.patiently("caught up", 2)
    articles = len(set(requests_of(world, topic=SCORE_REQUESTS)))
    assert work.heard[1] == f"{articles} texts without a score and without a request: requesting scores"
    before = set(requests_of(world))
    assert before == set(requests_of(world, topic=SCORE_REQUESTS))
    world.feed(later_pages(world))
    wait_until(lambda: len(world.outcome("b")[0]) == 90, "the new ones to be judged")
    assert set(requests_of(world)) > before
    assert work.stop() is Ending.STOPPED
    assert len(set(requests_of(world))) == len(requests_of(world))


def test_a_resumed_follower_requests_while_live_continues(world: LiveWorld, looks_often: None) -> None:
    """Texts were left unanswered, more were judged since, and live keeps measuring: one pass requests all."""
    seeds = iter(range(3, 1000))

    def live_goes_on(said: str) -> None:
        if "requesting" in said:
            world.feed(later_pages(world, next(seeds))[:1])

    once: list[tuple[str, str]] = []
    for _ in range(2):
        file = {} if once else {"ruleset": world.rules}
        work = Working(world, world.begin(name="f", end="follow", **file))
        work.patiently("caught up")
        work.stop()
        once = once or requests_of(world)
        left_unanswered(world)
    assert sorted(requests_of(world)) == sorted(2 * once)
    world.feed(later_pages(world))
    work = Working(world, world.begin(name="f"), live_goes_on)
    work.patiently("caught up")
    work.stop()
    assert work.said("without a request: requesting") == 1
    assert set(once) <= set(requests_of(world)[2 * len(once) :])
    assert count_unrequested(world.log, world.row("f")) == 0


def test_a_pass_waits_for_an_idle_member(world: LiveWorld, looks_often: None) -> None:
    """A killed process is a member until its lease ends: a resumed run waits, then requests all."""
    world.replay(ruleset=world.rules, name="loose")
    once = requests_of(world)
    left_unanswered(world)
    ghost = world.log.join("ask.loose", [FEATURES], member="ghost")
    work = Working(world, world.begin(name="loose"))
    work.patiently("waiting: another process")
    assert requests_of(world) == once
    ghost.close()
    assert work.end() is Ending.DONE
    assert work.said("waiting: another process") == 1
    assert sorted(requests_of(world)) == sorted(2 * once)


def test_a_follower_requests_texts_of_a_detector_gap(world: LiveWorld, looks_often: None) -> None:
    """SCORE drops the detector and runs it again: texts judged in between are requested, without a restart."""
    work = Working(world, world.begin(ruleset=world.rules, name="f", end="follow"))
    work.patiently("caught up")
    before = requests_of(world)
    world.score_runs(OTHER_DETECTOR)
    work.sees_control()
    world.feed(later_pages(world))
    wait_until(lambda: len(world.outcome("f")[0]) == 90, "the new ones to be judged")
    assert requests_of(world) == before
    world.score_runs(DETECTOR)
    work.patiently("caught up", 2)
    work.stop()
    assert len(requests_of(world)) > len(before)
    assert len(set(requests_of(world))) == len(requests_of(world))
    assert count_unrequested(world.log, world.row("f")) == 0


def test_texts_with_expired_features_are_not_requested(tmp_path: Path) -> None:
    """They cause no pass, and a pass for other texts leaves them out."""
    now_ms = [1_000_000_000_000]
    world = LiveWorld(MemoryLog(clock=lambda: now_ms[0]), config_of(f"sqlite:{tmp_path / 'log'}"))
    world.score_runs(DETECTOR)
    world.feed(features_of_pages(6, 10, world.epoch))
    now_ms[0] += 150 * _DAY_MS
    world.feed(later_pages(world))
    world.carry_on()
    heard: list[str] = []
    run, ruleset = world.begin(detector=OTHER_DETECTOR, name="b")
    world.resume(run, ruleset)
    world.score_runs(OTHER_DETECTOR)
    both = count_unrequested(world.log, run)
    now_ms[0] += 50 * _DAY_MS
    world.log.expire(now_ms[0])
    later = count_unrequested(world.log, run)
    assert 0 < later < both
    run, ruleset = world.begin(name="b")
    world.resume(run, ruleset, on_message=heard.append)
    assert [text.partition(" ")[0] for text in heard] == [str(later)]
    assert len(requests_of(world)) == later == len(set(requests_of(world)))
    world.score()
    run, ruleset = world.begin(name="b")
    world.resume(run, ruleset, on_message=heard.append)
    assert unscored(world, "b") > 0
    assert len(heard) == 1


def test_counting_texts_stops_on_request(world: LiveWorld) -> None:
    """The count checks for a stop between partitions and then returns 0."""
    world.replay(detector=OTHER_DETECTOR, name="b")
    told = iter([False, True])
    assert count_unrequested(world.log, world.row("b"), lambda: next(told)) == 0
    assert next(told, None) is None


def test_an_older_text_of_a_page_is_requested(world: LiveWorld) -> None:
    """The newest text of each page has a score, and the first text of one page has none: that one is requested."""
    page = features_of_pages(1, 1, world.epoch)[0]
    digests = ("f" * 32, "0" * 32)  # SCORE answers all but the first of these
    world.feed(
        [
            msgspec.structs.replace(page, id=text, page_id="twice", text_digest=text, fetched_at=5000 + number)
            for number, text in enumerate(digests)
        ]
    )
    world.replay(ruleset=world.rules_file(1), name="b")
    assert {(page.site, text) for text in digests} <= set(requests_of(world))
    world.score(share=0.9999)
    once = requests_of(world)
    world.replay(name="b")
    assert unscored(world, "b") == 0
    assert sorted(requests_of(world)) == sorted([*once, (page.site, digests[0])])


def test_live_again_requests_no_scored_text(world: LiveWorld) -> None:
    """After going back, JUDGE requests only texts without a score, not those scored under the run in between.

    Sites with so many new scores that TALLY may have dropped some are requested again.
    """
    rules = world.begin(ruleset=world.rules_file(60), name="strict")[1]
    world.replay(name="strict")
    strict, live = world.row("strict").names(is_live=True), names_of("live", is_live=True)
    assert scores_of_backlog(world.log, live, DETECTOR, few=0) is None
    world.feed(later_pages(world))
    world.run_stage(JudgeStage(rules, run="strict", names=strict), strict.judge_group)
    assert world.score() > 0
    meanwhile = requests_of(world, "strict", SCORE_REQUESTS)
    before = len(requests_of(world, "live", SCORE_REQUESTS))
    assert scores_of_backlog(world.log, live, DETECTOR) is None  # too few to be worth a look
    for most in (1, 1000):
        known = scores_of_backlog(world.log, live, DETECTOR, few=0, surely_kept=most)
        assert known is not None
        found = {text for text in meanwhile if known.has(partition_of(text[0], PARTITIONS), *text)}
        assert (found == set(meanwhile)) == (most == 1000)
    is_behind = backlog(world.log, live)
    assert is_behind()
    world.run_stage(JudgeStage(world.ruleset, known=known, is_behind=is_behind), "judge")
    assert not is_behind()
    new = requests_of(world, "live", SCORE_REQUESTS)[before:]
    assert new and not set(new) & set(meanwhile)
    assert scores_of_backlog(world.log, live, DETECTOR, few=0) is None


def test_a_backlog_ends_once_it_is_judged(world: LiveWorld) -> None:
    """Waiting pages count until their features are judged; later pages do not count."""
    names = names_of("live", is_live=True)
    world.log.append([Output(PAGES, 0, b"s0.example", b"a page")])
    is_behind = backlog(world.log, names)
    assert is_behind()
    world.feed(later_pages(world))  # measured of it
    world.log.reset(names.measure_group, PAGES, world.log.end(PAGES))
    assert is_behind()
    ends = world.log.end(FEATURES)
    world.feed(later_pages(world, seed=3))
    world.log.reset(names.judge_group, FEATURES, ends)
    assert not is_behind()


def test_score_announces_its_detectors(world: LiveWorld) -> None:
    """SCORE writes its detectors to the log at its start, once; before that the configuration counts."""
    log, config = world.log, world.config
    end = log.end(CONTROL)
    stage = build_stage(Role.SCORE, config, Metrics(), log=log)
    stage.close()
    told = Control(log).scorers
    assert told is not None and [name.partition("/")[0] for name in told.detectors] == ["lite-ngram"]
    assert not is_scored(Control(log), config, DETECTOR)
    rows = log.end(CONTROL)
    assert rows > end
    announce_detectors(log, told.detectors)
    assert log.end(CONTROL) == rows
    empty = MemoryLog()
    assert is_scored(Control(empty), config, told.detectors[0])
    assert not is_scored(Control(empty), config, DETECTOR)
