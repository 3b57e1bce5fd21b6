"""Removing a run: what it frees, why it may not go, and its end. Broken off, it is made again."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from replay.runs.control_update import ControlUpdate, change
from replay.runs.lookup import ever_live
from replay.runs.overview import members_of
from replay.runs.phases import groups_of, stores_of, topics_of
from stream.log.contract import Log, TopicSize
from stream.schema.control import Control, exclusive
from stream.schema.runs import LIVE, Run, RunStatus, shown_run
from stream.text.user_errors import RunRefused


class RunNeeded(RunRefused):
    """A run cannot be removed: it is live, somebody is at work on it, or another run rests on it.

    The operator does what the message says, or keeps the run.
    """


def why_not(log: Log, control: Control, run: Run, *, force: bool = False, leaving: Collection[str] = ()) -> str:
    """Why the run cannot be removed now, and what to do; "" = it can. Those `leaving` go before it."""
    if run.name == control.alias.run:
        return f"the run {run.shown} is live: `farmwatch cutover` puts another one in its place first"
    if run.name == LIVE:
        return f"the run {run.shown} has the plain topics, in which the log began: it stays"
    if run.name == control.alias.before and not force:
        live = shown_run(control.alias.run)
        return f"the run {run.shown} was live before {live}: `farmwatch cutover --back` needs it; or --force"
    members = members_of(log, run)
    if members:
        end = "stop them" if run.name in ever_live(control) else f"`farmwatch runs cancel {run.shown}`"
        return (
            f"{', '.join(members)} {'is' if len(members) == 1 else 'are'} at work on the run {run.shown}:"
            f" {end} first; a process that was killed counts for some seconds more"
        )
    gone = {run.name, *leaving, *(other.name for other in control.runs.values() if other.state == RunStatus.REMOVED)}
    judging = [other for other in control.runs.values() if run.remeasures and other.features == run.features]
    if resting := sorted(other.shown for other in judging if other.name not in gone):
        return f"the features that the run {run.shown} measured are judged by {', '.join(resting)}: remove these first"
    return ""


def what_it_frees(log: Log, run: Run) -> Mapping[str, TopicSize]:
    """Topics of the run's own, changelogs included, and what they hold."""
    return log.sizes([topic.name for topic in topics_of(run, 1)])


def remove(log: Log, name: str, *, force: bool = False) -> None:
    """Remove a run with all that is its own.

    Its row says first that it is being removed, so that nobody resumes it. Raises RunNeeded, StreamError.
    """

    def mark(control: Control) -> ControlUpdate | None:
        run = control.runs.get(name)
        if run is None:
            return None
        reason = why_not(log, control, run, force=force)
        if reason:
            raise RunNeeded(reason)
        return ControlUpdate(msgspec.structs.replace(run, state=RunStatus.REMOVED))

    run = change(log, mark)
    if run is None:
        return
    topics = [topic.name for topic in topics_of(run, 1) if not topic.name.startswith("state.")]
    log.remove(topics, groups_of(run), stores_of(run))
    with exclusive(log) as writer:
        writer.forget(name)
