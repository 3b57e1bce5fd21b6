"""Cutover: moves the alias `live` to another run, in one commit with a row of the audit trail.

Only one process at a time may change `control`, so the alias always names the old run or the new one. The live stages
see it within a second (`replay.live.handover`).

The run is checked before the commit, because counting its lag takes seconds. The audit trail has the lag of that time;
the live stages start at the run's offsets in any case. The commit checks again for changes by other processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from filters.rules.ruleset import Ruleset
from replay.rows.gaps import missing_records
from replay.rows.site_table import Counts, counts_of, read_rows
from replay.runs.control_update import ControlUpdate, update_control
from replay.runs.lookup import ever_live, find_run, names_of_live, run_named
from replay.runs.run_rules import rules_of
from replay.runs.topology import MAX_LAG, lag_by_group
from stream.log.contract import Clock, Log, wall_ms
from stream.log.errors import Fenced
from stream.schema.control import Control
from stream.schema.runs import Alias, Cutover, Run, RunStatus, shown_run
from stream.text.user_errors import Exit, FarmwatchError, RunRefused
from stream.text.wording import counted, moment, one_line


class CutoverRefused(RunRefused):
    """The run cannot become live in its present state."""


class OtherCutover(FarmwatchError):
    """Another process moved the alias or changed the runs at the same time; this process changed nothing.

    The operator reads `farmwatch cutover` and decides again.
    """

    exit = Exit.PROBLEM


@dataclass(frozen=True, slots=True)
class CutoverResult:
    """The result of a cutover. `cutover` is None if the run was live already."""

    run: Run
    cutover: Cutover | None
    left: Run | None = None  # the run that was live before
    lag: Mapping[str, int] = field(default_factory=dict)  # group -> records that the live stages still have to process


@dataclass(frozen=True, slots=True)
class CutoverRequest:
    """The request of the operator. `to` = "" goes back to the previous live run, whatever its lag."""

    to: str
    by: str
    why: str = ""
    max_lag: int = MAX_LAG
    partial: bool = False  # accept a run that lacks records, most of its scores, or any article
    seen: int | None = None  # number of the last cutover that the operator saw; None = it does not matter


def cut_over(
    log: Log,
    request: CutoverRequest,
    *,
    clock: Clock = wall_ms,
    sleep: Callable[[float], None] = time.sleep,
    check_run: Callable[[Ruleset, Run], None] = lambda _, __: None,
) -> CutoverResult:
    """Move the alias. `check_run` raises if the live stages cannot process the run."""
    looked = Control(log)
    seen = looked.alias
    if request.seen not in (None, seen.number):
        raise OtherCutover("another run became live since this page was shown: look at the runs again")
    moved = _decide(log, looked, request, clock(), check_run)
    if moved.cutover is None:
        return moved
    alias = Alias(run=moved.run.name, before=seen.run, at=moved.cutover.at, number=moved.cutover.number)
    move = (alias, moved.cutover)

    def make_update(control: Control) -> ControlUpdate:
        if control.alias != seen:
            last = control.cutovers[-1]
            raise OtherCutover(
                one_line(
                    f"{last.by} moved live from {shown_run(last.from_run)} to {shown_run(last.to_run)} at"
                    f" {moment(last.at)}: nothing was changed here"
                )
            )
        run, now = moved.run, run_named(control, moved.run.name)
        cancelled = now.state == RunStatus.CANCELLED != run.state
        if cancelled or (now.created_at, now.site_method, now.gaps) != (run.created_at, run.site_method, run.gaps):
            raise OtherCutover(
                f"another process has just changed the run {run.shown}: nothing was changed here",
                case="changed",
                run=run,
            )
        return ControlUpdate(move=move)

    try:
        update_control(log, make_update, sleep)
    except Fenced:
        raise OtherCutover(
            "other processes keep changing the runs of this log: nothing was changed; try again"
        ) from None
    return moved


def _decide(
    log: Log, control: Control, request: CutoverRequest, now_ms: int, check_run: Callable[[Ruleset, Run], None]
) -> CutoverResult:
    alias = control.alias
    back = not request.to
    if back and not alias.before:
        raise CutoverRefused(f"no run was live before {shown_run(alias.run)}: there is nothing to go back to")
    run = find_run(control, request.to) if request.to else run_named(control, alias.before)
    if control.live is None:
        raise CutoverRefused("no live stage has begun on this log yet", case="no live stage")
    if run.name == alias.run:
        return CutoverResult(run, None)
    if run.state == RunStatus.CANCELLED and run.name not in ever_live(control):
        raise CutoverRefused(f"run {run.shown} was cancelled: replay it again under another name")
    missing = [topic for topic in (run.features, run.names().verdicts, run.names().sites) if topic not in log.topics()]
    if missing:
        raise CutoverRefused(f"run {run.shown} has no topic {missing[0]}", case="no topic", run=run)
    ruleset = rules_of(control, run).ruleset
    if ruleset.digest != run.digest and not back:
        raise CutoverRefused(
            f"run {run.shown} was judged by {run.ruleset} {run.digest}, which this version of farmwatch reads as"
            f" {ruleset.digest}: replay it again under another name"
        )
    check_run(ruleset, run)
    lacks = missing_records(log, run, control.runs)
    if lacks and not request.partial:
        missing_text = ", ".join(f"{records} of {topic}" for topic, records in lacks.items())
        raise CutoverRefused(
            f"run {run.shown} lacks records, at most {missing_text}: its window begins after them, or they expired"
            " unread",
            case="lacks records",
        )
    if not (back or request.partial):
        _require_scores(log, control, run)
    lag = lag_by_group(log, control, run, request.max_lag)
    behind = sum(lag.values())
    if behind > request.max_lag and not back:
        lags = ", ".join(f"{group} {records}" for group, records in lag.items())
        raise CutoverRefused(
            f"run {run.shown} is {counted(behind, 'record')} behind ({lags}); the limit is {request.max_lag}",
            case="still behind" if run.state == RunStatus.RUNNING else "behind",
            run=run,
        )
    cutover = Cutover(
        number=alias.number + 1,
        at=now_ms,
        by=request.by,
        from_run=alias.run,
        to_run=run.name,
        from_digest=control.live.digest,
        to_digest=run.digest,
        why=request.why,
        lag=behind,
        back=back,
    )
    return CutoverResult(run, cutover, control.live, lag)


def _require_scores(log: Log, control: Control, run: Run) -> None:
    """Refuse a run with scores for few of its articles, or without articles, if the live run has scores for most."""
    if run.name in ever_live(control):
        return
    if run.state == RunStatus.DONE and run.articles is not None and run.unscored is not None:
        counts = Counts(articles=run.articles, unscored=run.unscored)
    else:
        counts = counts_of(read_rows(log, run.names().sites))
    if counts.articles and not counts.mostly_unscored:
        return
    live = counts_of(read_rows(log, names_of_live(control).sites))
    if not counts.articles and live.articles:
        raise CutoverRefused(
            f"run {run.shown} has no article, so it would have no rate; the live run {shown_run(control.alias.run)} has"
            f" {live.articles:,}",
            case="no article",
            run=run,
        )
    if 2 * live.unscored >= live.articles:
        return
    raise CutoverRefused(
        f"run {run.shown} has no score yet for {counts.unscored:,} of {counted(counts.articles, 'article')}, and the"
        f" live run {shown_run(control.alias.run)} for {live.unscored:,} of {live.articles:,}: the rate would use"
        " the few scored ones",
        case="few scores",
        run=run,
    )
