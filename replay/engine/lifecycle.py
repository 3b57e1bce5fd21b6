"""Updates the row of a run: begun, resumed, finished, cancelled, removed.

Topics and first offsets are written before the row, so a row is always complete. A process that dies in between leaves
topics that the next attempt reuses.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from replay.engine.plan import Plan, with_later_end
from replay.rows.gaps import gaps_of, merge_gaps
from replay.rows.site_table import counts_of, read_rows
from replay.runs.control_update import ControlUpdate, update_control, update_run
from replay.runs.lookup import ever_live, run_named
from replay.runs.overview import members_of
from replay.runs.phases import groups_of, is_done, phases_of, progress_of, stores_of, topics_of
from replay.runs.topology import is_at_stops
from stream.log.contract import Clock, Log, TopicSize, wall_ms
from stream.schema.control import Control, exclusive
from stream.schema.runs import LIVE, Gap, Run, RunStatus, shown_run
from stream.schema.topics import FEATURES, SCORES
from stream.text.user_errors import RunRefused
from stream.text.wording import one_line

_ERROR_CHARS = 300


class RunAlreadyBegun(RunRefused):
    """Another process began a run of this name at the same time. Plan again to join it."""


class RunNeeded(RunRefused):
    """A run cannot be removed: it is live, a process works on it, or another run judges its features.

    The operator follows the message, or keeps the run.
    """


def begin(log: Log, plan: Plan, clock: Clock = wall_ms) -> Run:
    """Write the row of a new or a resumed run; returns it.

    A resumed run uses the scores that arrived since, and the requested end if that is later. Its row gets the gaps of
    expired records. Raises RunRefused if another process removed the run or made it live in the meantime,
    RunAlreadyBegun if another process began it; Fenced, LogUnavailable.
    """

    def make_update(control: Control) -> ControlUpdate:
        name, existing = plan.run.name, log.definitions()
        if control.alias.run == name:
            raise RunRefused(f"the run {name} has become live: the daemon continues it")
        if plan.is_new:
            if name in control.runs:
                raise RunAlreadyBegun(f"another process has just begun the run {name}: repeat the command to join it")
            log.create(topics_of(plan.run, existing[FEATURES].partitions, existing))
            for phase in phases_of(plan.run):
                for topic in set(phase.topics) & plan.run.start.keys():
                    log.reset(phase.group, topic, plan.run.start[topic])
            row = msgspec.structs.replace(plan.run, began_at=clock())
            return ControlUpdate(row, [(plan.ruleset.digest, plan.ruleset.stored)])
        run = run_named(control, name)
        run = with_later_end(log, run, plan.later_window)
        stop = {} if run.follows else {**run.stop, SCORES: log.end(SCORES)}
        row = msgspec.structs.replace(
            run, stop=stop, state=RunStatus.RUNNING, began_at=clock(), ended_at=0, gaps=gaps_of(log, run), error=""
        )
        done = progress_of(log, row)
        return ControlUpdate(msgspec.structs.replace(row, began_done=done.done, began_effort=done.effort))

    row = update_control(log, make_update)
    assert row is not None
    return row


def record_features_end(log: Log, name: str) -> Run:
    """Write the end of the measured features to the run's row, once MEASURE is at its stops; returns the row.

    The topic may grow later: another run that judges it may follow, or become live. Raises as `finish`.
    """

    def make_update(_: Control, run: Run) -> Run:
        measure = phases_of(run)[0]
        if run.follows or run.features in run.stop or not is_at_stops(log, measure.group, measure.stops(log, run)):
            return run
        return msgspec.structs.replace(run, stop={**run.stop, run.features: log.end(run.features)})

    return update_run(log, name, make_update)


def record_error(log: Log, name: str, error: Exception) -> None:
    """Write the error that ended a process to the run's row. Raises as `finish`."""
    text = one_line(f"{type(error).__name__}: {error}")[:_ERROR_CHARS]

    def make_update(_: Control, run: Run) -> Run:
        return msgspec.structs.replace(run, error=text) if run.state == RunStatus.RUNNING else run

    update_run(log, name, make_update)


def record_gap(log: Log, name: str, gap: Gap) -> None:
    """Write records that expired before the run read them to the run's row. Raises as `finish`."""
    update_run(log, name, lambda _, run: msgspec.structs.replace(run, gaps=merge_gaps([*run.gaps, gap])))


def finish(log: Log, name: str, clock: Clock = wall_ms) -> Run:
    """Mark a run as done if it is, with its counts; returns the row."""
    run = run_named(Control(log), name)
    if run.state != RunStatus.RUNNING or run.follows or not is_done(log, run):
        return run
    # Counted before the update of `control`: counting is slow, and the processes of a run end together.
    counts = counts_of(read_rows(log, run.names().sites))

    def make_update(_: Control, now: Run) -> Run:
        # A run that was resumed in the meantime has another end and other counts.
        if now.state != RunStatus.RUNNING or (now.created_at, now.stop) != (run.created_at, run.stop):
            return now
        ended = msgspec.structs.replace(now, state=RunStatus.DONE, ended_at=clock(), error="")
        return msgspec.structs.replace(ended, articles=counts.articles, unscored=counts.unscored)

    return update_run(log, name, make_update)


def cancel(log: Log, name: str, clock: Clock = wall_ms) -> Run:
    """Cancel a run: its processes end within seconds. Raises NotFound; RunRefused if it is or was live, or ended."""

    def make_update(control: Control, run: Run) -> Run:
        if control.alias.run == name:
            raise RunRefused(f"the run {run.shown} is live", case="live")
        if name in ever_live(control):
            raise RunRefused(f"the run {run.shown} was live and can become live again", case="was live", run=run)
        if run.state != RunStatus.RUNNING:
            raise RunRefused(f"the run {run.shown} is {run.state}: there is nothing to cancel")
        return msgspec.structs.replace(run, state=RunStatus.CANCELLED, ended_at=clock())

    return update_run(log, name, make_update)


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
    """Remove a run with its topics, groups and state; first its row, so that none resumes it. Raises RunNeeded."""

    def make_update(control: Control) -> ControlUpdate | None:
        run = control.runs.get(name)
        if run is None:
            return None
        if obstacle := removal_obstacle(log, control, run, force=force):
            raise obstacle
        return ControlUpdate(msgspec.structs.replace(run, state=RunStatus.REMOVED))

    run = update_control(log, make_update)
    if run is None:
        return
    topics = [topic.name for topic in topics_of(run, 1) if not topic.name.startswith("state.")]
    log.remove(topics, groups_of(run), stores_of(run))
    with exclusive(log) as writer:
        writer.forget(name)
