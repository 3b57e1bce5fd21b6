"""Records that a run will never read are reported: at a resume, in its summary, and to a cutover."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec
import pytest

from farmwatch.runs.summary_lines import lines_of
from replay.engine.lifecycle import cancel, record_gap
from replay.engine.runner import Ending
from replay.engine.summary import summary_of
from replay.live.cutover import CutoverRefused, CutoverRequest, cut_over
from replay.rows.gaps import merge_gaps, missing_records, records_in
from replay.runs.phases import topics_of
from stream.schema.control import Control
from stream.schema.runs import Gap
from stream.schema.topics import FEATURES, PAGES
from tests.support.runs.replay_world import PARTITIONS, LiveWorld, live_world, pages_later

more_pages = partial(pages_later, sites=8, pages=10)


@pytest.fixture
def world(tmp_path: Path) -> LiveWorld:
    """A log where live judged 80 pages of 8 sites."""
    return live_world(tmp_path, 8, 10)


def expire(world: LiveWorld, features: list[int]) -> None:
    """Expire the features before these offsets, and nothing else."""
    world.log.expire(2**44, {FEATURES: features, **{topic: [0] * PARTITIONS for topic in ("hits", "verdicts.r1")}})


def lacks(world: LiveWorld, name: str) -> dict[str, int]:
    """The missing records that a cutover would report."""
    return missing_records(world.log, world.row(name), Control(world.log).runs)


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_gap_is_reported_after_every_resume(world: LiveWorld, cancelled: bool) -> None:
    """Done or cancelled, overtaken by retention and resumed, it is done again, and a cutover is refused."""
    world.begin(ruleset=world.rules_file(20), name="r1")
    if cancelled:
        cancel(world.log, "r1")
    else:
        world.replay(name="r1")
    world.feed(more_pages(world))
    world.carry_on()
    ends = world.log.end(FEATURES)
    read = [0 if done is None else done for done in world.log.committed("judge.r1", FEATURES)]
    expire(world, [(done + end) // 2 for done, end in zip(read, ends, strict=True)])
    gone = sum((done + end) // 2 - done for done, end in zip(read, ends, strict=True))
    assert lacks(world, "r1") == {FEATURES: gone}
    begun, _ = world.begin(name="r1", end="now")
    assert records_in(begun.gaps) == {FEATURES: gone}
    assert world.replay(name="r1", end="now") is Ending.DONE  # begun twice before it read on: counted once
    assert 0 < len(world.outcome("r1")[0]) < 160
    assert lacks(world, "r1") == {FEATURES: gone}
    with pytest.raises(CutoverRefused, match=rf"{gone} of features"):
        cut_over(world.log, CutoverRequest("r1", "me", max_lag=10**6))
    summary = summary_of(world.log, Control(world.log), world.config, world.row("r1"), 1)
    assert summary.lost == {FEATURES: gone}
    assert f"{gone} records expired before it read them" in "\n".join(lines_of(summary, world.row("r1")))
    assert cut_over(world.log, CutoverRequest("r1", "me", max_lag=10**6, partial=True)).run.name == "r1"


def test_a_running_run_records_its_gaps(world: LiveWorld) -> None:
    """Records that expire while a process works are in the row when it is done."""
    run, ruleset = world.begin(ruleset=world.rules_file(20), name="r1")
    expire(world, [5] * PARTITIONS)
    assert world.resume(run, ruleset) is Ending.DONE
    assert lacks(world, "r1") == {FEATURES: 5 * PARTITIONS}


def test_a_run_shares_the_gaps_of_its_features(world: LiveWorld) -> None:
    """Pages that were never measured are missing in every run that judges those features."""
    run, _ = world.begin(ruleset=world.rules_file(20), name="r1")
    other = msgspec.structs.replace(
        run, name="r2", features=FEATURES, remeasures=True, gaps=[Gap(PAGES, 0, 3, 7), Gap("hits", 0, 0, 9)]
    )
    world.log.create(topics_of(other, PARTITIONS))
    assert missing_records(world.log, run, {"r1": run}) == {}
    assert missing_records(world.log, run, {"r1": run, "r2": other}) == {PAGES: 4}


def test_a_growing_gap_counts_once(world: LiveWorld) -> None:
    """A gap that grew before it was passed counts once, at its largest; another gap counts separately."""
    world.begin(ruleset=world.rules_file(20), name="r1")
    for gap in (Gap("a", 0, 1, 4), Gap("a", 0, 1, 6), Gap("a", 0, 1, 4), Gap("a", 1, 1, 2)):
        record_gap(world.log, "r1", gap)
    assert world.row("r1").gaps == [Gap("a", 0, 1, 6), Gap("a", 1, 1, 2)]
    assert merge_gaps([]) == []
