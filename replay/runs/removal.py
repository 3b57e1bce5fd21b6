"""Removes a run with its topics, groups and state. An interrupted removal can be repeated."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from replay.runs.control_update import ControlUpdate, update_control
from replay.runs.lookup import ever_live
from replay.runs.overview import members_of
from replay.runs.phases import groups_of, stores_of, topics_of
from stream.log.contract import Log, TopicSize
from stream.schema.control import Control, exclusive
from stream.schema.runs import LIVE, Run, RunStatus, shown_run
from stream.text.user_errors import RunRefused


class RunNeeded(RunRefused):
    """A run cannot be removed: it is live, a process works on it, or another run judges its features.

    The operator follows the message, or keeps the run.
    """


def removal_obstacle(
    log: Log, control: Control, run: Run, *, force: bool = False, leaving: Collection[str] = ()
) -> RunNeeded | None:
    """Why the run cannot be removed now; None = it can. The runs in `leaving` are removed before it."""
    if run.name == control.alias.run:
        return RunNeeded(f"the run {run.shown} is live", case="live")
    if run.name == LIVE:
        return RunNeeded(f"the run {run.shown} is the first run of the log and cannot be removed")
    if run.name == control.alias.before and not force:
        return RunNeeded(f"the run {run.shown} was live before {shown_run(control.alias.run)}", case="before")
    members = members_of(log, run)
    if members:
        return RunNeeded(
            f"{', '.join(members)} {'is' if len(members) == 1 else 'are'} at work on the run {run.shown}",
            case="at work, was live" if run.name in ever_live(control) else "at work",
            run=run,
        )
    gone = {run.name, *leaving, *(other.name for other in control.runs.values() if other.state == RunStatus.REMOVED)}
    judging = [other for other in control.runs.values() if run.remeasures and other.features == run.features]
    if resting := sorted(other.shown for other in judging if other.name not in gone):
        return RunNeeded(
            f"the features that the run {run.shown} measured are judged by {', '.join(resting)}: remove these first"
        )
    return None


def topic_sizes(log: Log, run: Run) -> Mapping[str, TopicSize]:
    """The sizes of the topics that belong to the run, changelogs included."""
    return log.sizes([topic.name for topic in topics_of(run, 1)])


def remove(log: Log, name: str, *, force: bool = False) -> None:
    """Remove a run with its topics, groups and state.

    Its row is marked as removed first, so that no process resumes it. Raises RunNeeded, StreamError.
    """

    def mark(control: Control) -> ControlUpdate | None:
        run = control.runs.get(name)
        if run is None:
            return None
        if obstacle := removal_obstacle(log, control, run, force=force):
            raise obstacle
        return ControlUpdate(msgspec.structs.replace(run, state=RunStatus.REMOVED))

    run = update_control(log, mark)
    if run is None:
        return
    topics = [topic.name for topic in topics_of(run, 1) if not topic.name.startswith("state.")]
    log.remove(topics, groups_of(run), stores_of(run))
    with exclusive(log) as writer:
        writer.forget(name)
