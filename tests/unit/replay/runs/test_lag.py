"""How far a run is behind: records, told apart from what nobody has to deal with."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay.live.cutover import CutoverRefused, CutoverRequest, cut_over
from replay.runs.lag import MAX_LAG, lag_by_group, records_behind
from scoring.score_stage import score_key
from stream.log.contract import Log, Output
from stream.processing.heartbeat import HEADER, KEY
from stream.schema.control import Control
from stream.schema.records import ScoreRequest
from stream.schema.topics import FEATURES, HITS, SCORES
from tests.support.replay_world import (
    DETECTOR,
    OTHER_DETECTOR,
    LiveWorld,
    features_of_pages,
    live_world,
    output,
    score_of,
)


def beats(log: Log, topic: str, number: int) -> None:
    log.append([Output(topic, 0, KEY, b"", {HEADER: "1"})] * number)


@pytest.fixture
def world(tmp_path: Path) -> LiveWorld:
    """A log with a live run, and another one, `mine`, that is done."""
    made = live_world(tmp_path, 2, 3)
    made.replay(ruleset=made.rules, name="mine")
    return made


def lag(world: LiveWorld, limit: int = MAX_LAG) -> dict[str, int]:
    return lag_by_group(world.log, Control(world.log), world.row("mine"), limit)


def test_an_idle_night_leaves_nothing_behind(world: LiveWorld) -> None:
    """Heartbeats of a night make no done run late: the lag is 0, and a cutover takes it with --max-lag 0."""
    for topic in (HITS, FEATURES, SCORES):
        beats(world.log, topic, 600)
    assert lag(world) == {"judge.mine": 0, "tally.mine": 0}
    moved = cut_over(world.log, CutoverRequest("mine", "me", max_lag=0))
    assert moved.cutover is not None and moved.cutover.lag == 0


def test_records_between_heartbeats_are_counted(world: LiveWorld) -> None:
    """Of each group what it has to deal with; a cutover that takes one record fewer is refused with these numbers."""
    beats(world.log, FEATURES, 30)
    world.feed(features_of_pages(2, 2, world.epoch, seed=2))  # 4 hits, 4 features, 3 heartbeats
    beats(world.log, HITS, 30)
    assert lag(world) == {"judge.mine": 4, "tally.mine": 4}
    with pytest.raises(CutoverRefused, match=r"8 records behind \(judge.mine 4, tally.mine 4\)"):
        cut_over(world.log, CutoverRequest("mine", "me", max_lag=7))


def test_reading_ends_where_a_cutover_is_refused_anyway(world: LiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind by more than a cutover takes, the rest counts by offsets: never fewer than there are, and not read."""
    monkeypatch.setattr("replay.runs.lag.MAX_LAG", 2)
    world.feed(features_of_pages(2, 2, world.epoch, seed=2))
    beats(world.log, HITS, 30)
    beats(world.log, FEATURES, 30)
    found = sum(lag(world, 2).values())
    assert 8 < found <= 8 + 63


def scores(world: LiveWorld, number: int, detector: str) -> None:
    for text in range(number):
        site, digest = f"s{text % 7}.example", f"{text:032x}"
        request = ScoreRequest(id="r", site=site, page_id="p", url=f"https://{site}/", text_digest=digest, text="t")
        made = score_of(request, detector)
        world.log.append([output(SCORES, made, score_key(made))])


def test_scores_of_other_detectors_are_no_lag(world: LiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run has nothing to do with them: they are read past, also where those of its own stand behind them.

    Beyond so many that reading them would take long, the rest counts by offsets: never fewer than there are.
    """
    monkeypatch.setattr("replay.runs.lag.MAX_LAG", 5)
    scores(world, 40, OTHER_DETECTOR)
    scores(world, 3, DETECTOR)
    assert lag(world, 5) == {"judge.mine": 0, "tally.mine": 3}
    moved = cut_over(world.log, CutoverRequest("mine", "me", max_lag=3))
    assert moved.cutover is not None and moved.cutover.lag == 3
    monkeypatch.setattr("replay.runs.lag.PASSED_OVER", 10)
    assert 3 <= lag(world, 5)["tally.mine"] <= 3 + 40 - 10


def test_what_a_group_waits_for_is_no_heartbeat(world: LiveWorld) -> None:
    """A crawler that is down has the hits to read, not the heartbeats that came among them since."""
    before = records_behind(world.log, {"crawl": (HITS,)})
    beats(world.log, HITS, 40)
    assert records_behind(world.log, {"crawl": (HITS,)}) == before == {"crawl": 6}
