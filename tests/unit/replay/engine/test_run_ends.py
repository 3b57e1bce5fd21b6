"""The end of a replay: what its row says then, also where several processes and other runs change `control` at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from replay.engine.lifecycle import finish, record_error
from replay.engine.runner import Ending
from replay.runs.site_table import read_rows
from stream.log.contract import Log
from stream.schema.records import SiteState
from stream.schema.runs import RunStatus
from tests.support.replay_world import (
    LiveWorld,
    count_writers,
    features_of_pages,
    live_world,
    put_rows,
)


@pytest.fixture
def world(tmp_path: Path) -> LiveWorld:
    """A log on which live has judged some pages, and a ruleset file beside it."""
    return live_world(tmp_path, 3, 8)


def _through(world: LiveWorld, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run `mine`, of which all is judged and tallied, and whose row does not say so yet."""
    run, ruleset = world.begin(ruleset=world.rules, name="mine")
    with monkeypatch.context() as patched:
        patched.setattr("replay.engine.runner.finish", lambda *_: msgspec.structs.replace(run, state=RunStatus.DONE))
        assert world.resume(run, ruleset) == Ending.DONE
    assert world.row("mine").state == RunStatus.RUNNING


def _while_counting(monkeypatch: pytest.MonkeyPatch, happen: Callable[[], object]) -> None:
    """Let something happen each time the rows of a run are counted."""

    def counted(log: Log, topic: str) -> list[SiteState]:
        happen()
        return read_rows(log, topic)

    monkeypatch.setattr("replay.engine.lifecycle.read_rows", counted)


def test_a_count_of_rows_is_not_undone_by_who_changes_runs_meanwhile(
    world: LiveWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long counting takes, nobody is kept out of `control`, and nobody who comes in ends the process."""
    _through(world, tmp_path, monkeypatch)

    def change_another() -> None:
        put_rows(world.log, world.row("live"))

    _while_counting(monkeypatch, change_another)
    writers = count_writers(monkeypatch)
    done = finish(world.log, "mine", lambda: 9_000)
    assert (done.state, done.ended_at) == (RunStatus.DONE, 9_000)
    assert done == world.row("mine")
    articles = sum(row.articles for row in world.outcome("mine")[1].values())
    assert done.articles == articles > 0
    assert len(writers) == 1, "nobody has undone it"


def test_processes_of_a_run_that_end_together_all_end(
    world: LiveWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has counted when the first one writes: one row says `done`, and it is what all of them return."""
    _through(world, tmp_path, monkeypatch)
    together = threading.Barrier(3, timeout=30)
    _while_counting(monkeypatch, together.wait)
    ends: list[object] = []

    def end() -> None:
        try:
            ends.append(finish(world.log, "mine"))
        except Exception as error:  # noqa: BLE001 - what ended the process is what is looked for
            ends.append(error)

    threads = [threading.Thread(target=end) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ends == [world.row("mine")] * 3
    assert world.row("mine").state == RunStatus.DONE


def test_a_run_that_got_a_later_end_meanwhile_is_not_done(
    world: LiveWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process resumes it while its rows are counted: the count is of the earlier end, and is not written.

    The next attempt finds that not all is dealt with.
    """
    _through(world, tmp_path, monkeypatch)
    more = features_of_pages(4, 12, world.epoch)[24:]

    def go_on() -> None:
        world.feed(more)
        world.begin(name="mine", end="now")

    with monkeypatch.context() as patched:
        _while_counting(patched, go_on)
        left = finish(world.log, "mine")
    assert (left.state, left.articles) == (RunStatus.RUNNING, None)
    assert left == finish(world.log, "mine") == world.row("mine")
    run, ruleset = world.begin(name="mine")
    assert world.resume(run, ruleset) == Ending.DONE


def test_a_run_that_is_done_has_no_error(world: LiveWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of its processes failed, another one ended it: by the failure nothing ended."""
    _through(world, tmp_path, monkeypatch)
    record_error(world.log, "mine", OSError("disk full"))
    assert world.row("mine").error == "OSError: disk full"
    done = finish(world.log, "mine")
    assert (done.state, done.error, world.row("mine").error) == (RunStatus.DONE, "", "")
