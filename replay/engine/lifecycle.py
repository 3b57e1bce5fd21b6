"""A run's row: begun, resumed, ended, cancelled.

Topics and first offsets are written before the row, so a row has all that its run needs. A process that died before
has left only topics, which the next attempt finds.
"""

from __future__ import annotations

import msgspec

from replay.engine.plan import Plan, with_later_end
from replay.runs.control_update import ControlUpdate, change, change_run
from replay.runs.lookup import ever_live, run_named
from replay.runs.missing import gaps_of, merge_gaps
from replay.runs.offsets import reached
from replay.runs.phases import is_done, phases_of, progress_of, topics_of
from replay.runs.site_table import counts_of, read_rows
from stream.log.contract import Clock, Log, wall_ms
from stream.schema.control import Control
from stream.schema.runs import Gap, Run, RunStatus
from stream.schema.topics import FEATURES, SCORES
from stream.text.user_errors import RunRefused
from stream.text.wording import one_line

_ERROR_CHARS = 300


class RunAlreadyBegun(RunRefused):
    """Another process began a run of this name at the same time. Plan again: that resumes it, or is refused."""


def begin(log: Log, plan: Plan, clock: Clock = wall_ms) -> Run:
    """Write the row of a new or a resumed run; returns it.

    A resumed run takes in the scores that came since, and gets the end that is asked for, if that is later. What left
    the log unread is written to the row. Raises RunRefused where another process has removed the run or put it live
    meanwhile, RunAlreadyBegun where it has begun one of the name; Fenced, LogUnavailable.
    """

    def decide(control: Control) -> ControlUpdate:
        name = plan.run.name
        if control.alias.run == name:
            raise RunRefused(f"the run {name} has become live meanwhile: the daemon continues it")
        if plan.is_new:
            if name in control.runs:
                raise RunAlreadyBegun(
                    f"another process has begun a run {name} meanwhile: run it again to share its work"
                )
            log.create(topics_of(plan.run, log.topics()[FEATURES]))
            for phase in phases_of(plan.run):
                for topic in set(phase.topics) & plan.run.start.keys():
                    log.reset(phase.group, topic, plan.run.start[topic])
            row = msgspec.structs.replace(plan.run, began_at=clock())
            return ControlUpdate(row, [(plan.ruleset.digest, plan.ruleset.source)])
        run = run_named(control, name)
        run = with_later_end(log, run, plan.later_window)
        stop = {} if run.follows else {**run.stop, SCORES: log.end(SCORES)}
        row = msgspec.structs.replace(
            run, stop=stop, state=RunStatus.RUNNING, began_at=clock(), ended_at=0, gaps=gaps_of(log, run), error=""
        )
        done = progress_of(log, row)
        return ControlUpdate(msgspec.structs.replace(row, began_done=done.done, began_effort=done.effort))

    row = change(log, decide)
    assert row is not None
    return row


def record_features_end(log: Log, name: str) -> Run:
    """Write the end of the features that a run has measured to its row, once MEASURE is at its stops; returns the row.

    More may come on their topic: another run that judges them may follow, or become live. Raises as `finish`.
    """

    def decide(_: Control, run: Run) -> Run:
        measure = phases_of(run)[0]
        if run.follows or run.features in run.stop or not reached(log, measure.group, measure.stops(log, run)):
            return run
        return msgspec.structs.replace(run, stop={**run.stop, run.features: log.end(run.features)})

    return change_run(log, name, decide)


def record_error(log: Log, name: str, error: Exception) -> None:
    """Write down the error that ended a process at work on a run. Raises as `finish`."""
    said = one_line(f"{type(error).__name__}: {error}")[:_ERROR_CHARS]

    def decide(_: Control, run: Run) -> Run:
        return msgspec.structs.replace(run, error=said) if run.state == RunStatus.RUNNING else run

    change_run(log, name, decide)


def record_gap(log: Log, name: str, gap: Gap) -> None:
    """Write down records that left the log before a run had read them. Raises as `finish`."""
    change_run(log, name, lambda _, run: msgspec.structs.replace(run, gaps=merge_gaps([*run.gaps, gap])))


def finish(log: Log, name: str, clock: Clock = wall_ms) -> Run:
    """Mark a run as done if it is, with its counts; returns the row.

    Raises NotFound where it was removed; Fenced, LogUnavailable.
    """
    run = run_named(Control(log), name)
    if run.state != RunStatus.RUNNING or run.follows or not is_done(log, run):
        return run
    # Counted before `control` is changed: it takes as long as there are rows, and the processes of a run end together.
    counts = counts_of(read_rows(log, run.names().sites))

    def decide(_: Control, now: Run) -> Run:
        # One that was resumed meanwhile has another end, of which these are not the counts.
        if now.state != RunStatus.RUNNING or (now.created_at, now.stop) != (run.created_at, run.stop):
            return now
        ended = msgspec.structs.replace(now, state=RunStatus.DONE, ended_at=clock(), error="")
        return msgspec.structs.replace(ended, articles=counts.articles, unscored=counts.unscored)

    return change_run(log, name, decide)


def cancel(log: Log, name: str, clock: Clock = wall_ms) -> Run:
    """Mark a run as cancelled: processes at work on it end within seconds.

    Raises NotFound, and RunRefused where there is nothing to cancel: also for a run that was live, which holds what a
    cutover back to it needs.
    """

    def decide(control: Control, run: Run) -> Run:
        if control.alias.run == name:
            raise RunRefused(f"the run {run.shown} is live: `farmwatch cutover` puts another one in its place")
        if name in ever_live(control):
            raise RunRefused(
                f"the run {run.shown} was live and `farmwatch cutover {run.shown}` can make it live again, so it is"
                " not cancelled. To stop a process that replays it, press Ctrl-C or send SIGTERM"
            )
        if run.state != RunStatus.RUNNING:
            raise RunRefused(f"the run {run.shown} is {run.state}: there is nothing to cancel")
        return msgspec.structs.replace(run, state=RunStatus.CANCELLED, ended_at=clock())

    return change_run(log, name, decide)
