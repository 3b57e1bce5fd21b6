"""Scores of a replay: asked for once, by the detector that is wanted, when SCORE runs it; reused wherever known."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from farmwatch.comparing.comparer import Asked, compare
from farmwatch.replay_command import _warnings
from farmwatch.role_names import Role
from farmwatch.roles import build_stage
from farmwatch.runs.asking import pass_to_make
from farmwatch.runs.bounded import BoundedMember
from farmwatch.runs.counts import counts_of, rows_of
from farmwatch.runs.engine import Ending
from farmwatch.runs.phases import ask_phase
from farmwatch.runs.scored import known_meanwhile, requests_wait
from farmwatch.runs.scorers import ScorersWatch, is_scored_now, tell_what_score_runs
from farmwatch.runs.summary import lines_of, summary_of
from filters.judge_stage import JudgeStage
from stream.control import Control
from stream.embedded_log import EmbeddedLog
from stream.log import Commit, Log, partition_of
from stream.memory_log import MemoryLog
from stream.metrics import Metrics
from stream.records import Features, Score, ScoreRequest
from stream.runs import State, names_of
from stream.topics import CONTROL, SCORE_REQUESTS
from tests import replay_world
from tests.replay_world import (
    DETECTOR,
    OTHER_DETECTOR,
    PARTITIONS,
    LiveWorld,
    config_of,
    features_of_pages,
    requests_of,
    write_rules,
)
from tests.stream.worlds import patiently

_score_of = replay_world.score_of


@pytest.fixture(params=["memory", "embedded"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LiveWorld]:
    """A log on which live judged 60 pages of 6 sites; SCORE runs one detector, which has scored all texts."""
    log: Log = MemoryLog() if request.param == "memory" else EmbeddedLog(tmp_path / "log")
    made = LiveWorld(log, config_of(f"sqlite:{tmp_path / 'log'}"))
    made.score_runs(DETECTOR)
    made.feed(features_of_pages(6, 10, made.epoch))
    made.carry_on()
    yield made
    log.close()


def later_pages(world: LiveWorld, seed: int = 2) -> list[Features]:
    """Pages of the same sites that were not there before."""
    more = features_of_pages(6, 5, world.epoch, seed=seed)
    return [msgspec.structs.replace(page, id=f"n{page.id}", page_id=f"n{page.page_id}") for page in more]


def unscored(world: LiveWorld, run: str) -> int:
    """Articles of a run without a score."""
    return counts_of(rows_of(world.log, names_of(run).sites)).unscored


def said(world: LiveWorld, run: str) -> str:
    """What is printed of a run at its end."""
    summary = summary_of(world.log, Control(world.log), world.config, world.row(run), 1)
    return "\n".join(lines_of(summary))


def all_flagged(request: ScoreRequest, detector: str = DETECTOR) -> Score:
    """A detector that flags every text."""
    return msgspec.structs.replace(_score_of(request, detector), flag=True, score=1.0)


def test_a_detector_that_score_comes_to_run_later(world: LiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked for while SCORE runs another one, and all is unscored, which is said; once it runs the wanted
    one, the run that goes on asks for each text once, takes in the scores, and a comparison shows the change.
    """
    run, ruleset = world.begin(detector=OTHER_DETECTOR, name="b")
    assert [DETECTOR in warning and "--name b" in warning for warning in _warnings(world.log, run, world.config)] == [
        True
    ]
    assert world.carry_out(run, ruleset) is Ending.DONE
    articles = counts_of(rows_of(world.log, "sites.b")).articles
    assert requests_of(world) == []
    assert unscored(world, "b") == articles > 0
    assert f"{articles} articles have no score yet" in said(world, "b")
    assert f"SCORE runs {DETECTOR}, not {OTHER_DETECTOR}" in said(world, "b")
    assert f"--name b    # once SCORE runs {OTHER_DETECTOR}" in said(world, "b")
    assert world.replay(name="b") is Ending.DONE
    assert requests_of(world) == []

    world.score_runs(DETECTOR, OTHER_DETECTOR)
    assert _warnings(world.log, run, world.config) == []
    assert world.replay(name="b") is Ending.DONE
    assert "requests of replays wait for SCORE" in said(world, "b")
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
    found = compare(world.log, "live", "b", Asked(sample=1, seed=0, resamples=50), world.config.rate, 1)
    flagged = next(change for change in found.changes if change.name == "flagged_share")
    assert (found.b.detector, found.b.unscored, flagged.b) == (OTHER_DETECTOR, 0, 1.0)
    assert flagged.a is not None and flagged.a < 1.0
    assert found.b.llm > found.a.llm


def test_what_score_left_unanswered_is_asked_for_again(world: LiveWorld, tmp_path: Path) -> None:
    """SCORE changed over between the request and the answer: the run that goes on asks once more, and no more."""
    file = write_rules(tmp_path, 5)
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
    """Stands for a kill: nothing is done after it but leaving the group."""


@pytest.mark.parametrize("is_written", [False, True])
def test_a_pass_that_breaks_off_asks_for_nothing_twice(
    world: LiveWorld, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    """Killed just before or just after each of its commits, and gone on with, it asks for each text once."""
    monkeypatch.setattr("farmwatch.runs.stages._RECORDS", 15)
    world.replay(detector=OTHER_DETECTOR, name="b")
    world.score_runs(OTHER_DETECTOR)
    run, ruleset = world.begin(name="b")
    group, commit, commits = ask_phase(run).group, BoundedMember.commit, [0]

    def killing(member: BoundedMember, given: Commit) -> None:
        if member._group != group or not given.outputs:
            return commit(member, given)
        commits[0] += 1
        if is_written or commits[0] % 2 == 0:
            commit(member, given)
        if is_written or commits[0] % 2 == 1:
            raise Killed

    monkeypatch.setattr(BoundedMember, "commit", killing)
    kills = 0
    while world.row("b").state != State.DONE:
        run, ruleset = world.begin(name="b")
        with suppress(Killed):
            assert world.carry_out(run, ruleset) is Ending.DONE
            break
        kills += 1
        found = pass_to_make(world.log, world.row("b"))
        assert found is None or not found.from_start  # it goes on where it was
    assert kills > 1
    once = requests_of(world)
    assert len(set(once)) == len(once)
    assert set(once) == set(requests_of(world, topic=SCORE_REQUESTS))


def test_a_follower_asks_when_score_comes_to_run_its_detector(
    world: LiveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes back over what it has judged, once, and then follows on, asking for what comes."""
    monkeypatch.setattr("farmwatch.runs.engine._CONTROL_S", 0.01)
    monkeypatch.setattr("farmwatch.runs.scorers._LOOK_S", 0.01)
    run, ruleset = world.begin(detector=OTHER_DETECTOR, name="b", end="follow")
    assert "this process" in _warnings(world.log, run, world.config)[0]
    stop, heard, endings = threading.Event(), list[str](), list[Ending]()
    thread = threading.Thread(
        target=lambda: endings.append(world.carry_out(run, ruleset, stop=stop, said=heard.append)), daemon=True
    )
    thread.start()
    patiently(lambda: len(heard) == 1, "the run to have caught up")
    assert requests_of(world) == []
    world.score_runs(DETECTOR, OTHER_DETECTOR)
    patiently(lambda: len(heard) == 3, "the run to have asked, and to follow on")
    before = set(requests_of(world))
    assert before == set(requests_of(world, topic=SCORE_REQUESTS))
    world.feed(later_pages(world))
    patiently(lambda: len(world.outcome("b")[0]) == 90, "the new ones to be judged")
    assert set(requests_of(world)) > before
    stop.set()
    thread.join(20)
    assert endings == [Ending.STOPPED]
    assert len(set(requests_of(world))) == len(requests_of(world))


def test_live_again_asks_for_no_text_that_was_scored_meanwhile(
    world: LiveWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Going back, JUDGE asks at live priority for what nobody scored, and for nothing that the run between has.

    Sites of so many new scores that TALLY may forget some before their verdicts come are asked for again.
    """
    rules = world.begin(ruleset=write_rules(tmp_path, 60), name="strict")[1]
    world.replay(name="strict")
    strict, live = world.row("strict").names(is_live=True), names_of("live", is_live=True)
    assert known_meanwhile(world.log, live, DETECTOR, few=0) is None
    world.feed(later_pages(world))
    world.run_stage(JudgeStage(rules, run="strict", names=strict), strict.judge_group)
    assert world.score() > 0
    meanwhile = requests_of(world, "strict", SCORE_REQUESTS)
    before = len(requests_of(world, "live", SCORE_REQUESTS))
    assert known_meanwhile(world.log, live, DETECTOR) is None  # too few to be worth a look
    for most in (1, 1000):
        monkeypatch.setattr("farmwatch.runs.scored._SURELY_KEPT", most)
        known = known_meanwhile(world.log, live, DETECTOR, few=0)
        assert known is not None
        found = {text for text in meanwhile if known.has(partition_of(text[0], PARTITIONS), *text)}
        assert (found == set(meanwhile)) == (most == 1000)
    world.run_stage(JudgeStage(world.ruleset, known=known), "judge")
    new = requests_of(world, "live", SCORE_REQUESTS)[before:]
    assert new and not set(new) & set(meanwhile)
    assert known_meanwhile(world.log, live, DETECTOR, few=0) is None


def test_score_says_what_it_runs(world: LiveWorld) -> None:
    """At its start SCORE writes its detectors to the log, once; a configuration counts only where it never has."""
    log, config = world.log, world.config
    end = log.end(CONTROL)
    stage = build_stage(Role.SCORE, config, Metrics(), log=log)
    stage.close()
    told = Control(log).scorers
    assert told is not None and [name.partition("/")[0] for name in told.detectors] == ["lite-ngram"]
    assert not is_scored_now(log, config, DETECTOR)
    rows = log.end(CONTROL)
    assert rows > end
    tell_what_score_runs(log, told.detectors)
    assert log.end(CONTROL) == rows
    empty = MemoryLog()
    assert is_scored_now(empty, config, told.detectors[0])
    assert not is_scored_now(empty, config, DETECTOR)


def test_what_score_runs_is_looked_up_now_and_then() -> None:
    """A change shows after some seconds, and not with each question."""
    world = LiveWorld(MemoryLog(), config_of("sqlite:none"))
    now_s = [0.0]
    watch = ScorersWatch(world.log, world.config, OTHER_DETECTOR, monotonic=lambda: now_s[0])
    found = [watch()]
    world.score_runs(DETECTOR)
    for now_s[0] in (1.0, 6.0):
        found.append(watch())
    assert found == [True, True, False]
