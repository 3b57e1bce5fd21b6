"""How a run stands, in one word: the same one wherever a run is shown."""

from __future__ import annotations

from collections.abc import Sequence

from replay.runs.lookup import ever_live
from replay.runs.phases import groups_of
from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.runs import Run, RunStatus

LIVE_NOW, WAS_LIVE = "live", "was live"
STOPPED = "stopped"  # nobody is at work on it, after a signal, a kill or an error


def members_of(log: Log, run: Run) -> list[str]:
    """Processes at work on a run, by name; one that was killed counts until its lease or session ends."""
    return sorted({member for group in groups_of(run) for member in log.members(group)})


def live_until(control: Control, run: Run) -> int:
    """When a cutover put another run in its place last, ms UTC; 0 where none did."""
    return max((move.at for move in control.cutovers if move.from_run == run.name), default=0)


def state_of(log: Log, control: Control, run: Run, members: Sequence[str] | None = None) -> str:
    """The word: that of its row, but for the run that is live, those that were, and those that nobody is at work on.

    A run that was live and that a replay is at work on is running; a live stage that is still leaving it is none.
    `members` are those of `members_of`, where they were asked for already. Raises LogUnavailable.
    """
    if run.name == control.alias.run:
        return LIVE_NOW
    replayed = run.name not in ever_live(control) or run.began_at > live_until(control, run)
    if run.state == RunStatus.RUNNING and replayed and (members_of(log, run) if members is None else members):
        return RunStatus.RUNNING
    if run.state in (RunStatus.RUNNING, RunStatus.DONE) and run.name in ever_live(control):
        return WAS_LIVE
    return STOPPED if run.state == RunStatus.RUNNING else run.state
