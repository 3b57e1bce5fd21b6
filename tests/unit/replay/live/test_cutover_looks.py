"""What others do between the look of a cutover and its write: only what concerns the run itself keeps it back."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from replay.engine.lifecycle import record_error, record_gap
from replay.live.cutover import CutoverRequest, OtherCutover, cut_over
from replay.runs.topology import lag_by_group
from stream.log.contract import Log
from stream.schema.control import exclusive
from stream.schema.runs import Gap, RunStatus
from stream.text.user_errors import FarmwatchError, NotFound
from tests.support.cutover_world import CutoverWorld
from tests.support.replay_world import count_writers, put_rows


@pytest.fixture(autouse=True)
def _begun(world: CutoverWorld) -> None:
    """The run `r1` is through, beside the live one."""
    world.begin_live()
    world.features(9)
    world.replay(world.begin("r1", created_at=1))


def _while_looking(monkeypatch: pytest.MonkeyPatch, happen: Callable[[], object]) -> list[Log]:
    """The logs whose `control` is taken for an update after that."""
    taken = count_writers(monkeypatch)

    def looked(*arguments: object) -> dict[str, int]:
        happen()
        taken.clear()
        return lag_by_group(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("replay.live.cutover.lag_by_group", looked)
    return taken


def _write(world: CutoverWorld, **changes: object) -> None:
    put_rows(world.log, msgspec.structs.replace(world.control().runs["r1"], **changes))


def _forget(world: CutoverWorld) -> None:
    with exclusive(world.log) as writer:
        writer.forget("r1")


@pytest.mark.parametrize(
    "happen",
    [
        lambda world: world.begin("r2"),
        lambda world: record_error(world.log, "r1", OSError("disk full")),
        lambda world: _write(world, state=RunStatus.DONE, ended_at=5),
    ],
    ids=["another run begins", "a process of it fails", "its replay ends"],
)
def test_others_change_runs_while_it_looks(
    world: CutoverWorld, monkeypatch: pytest.MonkeyPatch, happen: Callable[[CutoverWorld], object]
) -> None:
    """However long the look takes, it keeps nobody out, and nobody undoes it: the first attempt to write succeeds."""
    taken = _while_looking(monkeypatch, lambda: happen(world))
    moved = cut_over(world.log, CutoverRequest("r1", "me"))
    assert moved.cutover is not None
    assert len(taken) == 1
    assert (world.control().alias.run, world.control().alias.number) == ("r1", 1)


@pytest.mark.parametrize(
    ("happen", "error", "said"),
    [
        (_forget, NotFound, "there is no run 'r1'"),
        (lambda world: _write(world, state=RunStatus.REMOVED), NotFound, "there is no run 'r1'"),
        (lambda world: _write(world, state=RunStatus.CANCELLED), OtherCutover, "has changed the run r1.*show r1"),
        (lambda world: _write(world, created_at=2), OtherCutover, "has changed the run r1 meanwhile: nothing was"),
        (lambda world: record_gap(world.log, "r1", Gap("features", 0, 0, 1)), OtherCutover, "try again"),
    ],
    ids=["removed", "being removed", "cancelled", "begun anew", "lacks records"],
)
def test_what_was_done_to_the_run_meanwhile_is_not_passed_over(
    world: CutoverWorld,
    monkeypatch: pytest.MonkeyPatch,
    happen: Callable[[CutoverWorld], object],
    error: type[FarmwatchError],
    said: str,
) -> None:
    """A run that would be refused by now does not become live, though the look had found nothing against it."""
    _while_looking(monkeypatch, lambda: happen(world))
    with pytest.raises(error, match=said):
        cut_over(world.log, CutoverRequest("r1", "me"))
    assert (world.control().alias.run, world.control().cutovers) == ("live", [])
