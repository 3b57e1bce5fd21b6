"""Cutover: the alias `live` is moved to another run, in one commit with the row of the audit trail.

One process at a time may change `control`, so the alias always names the old run or the new one. The live stages see
it within a second (`replay.live.handover`).

The checks of the run come before, since counting its lag takes seconds. The lag in the audit trail is from then; the
live stages go on from the run's offsets in any case. The commit checks again what others may have changed of the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from replay.runs.control_update import ControlUpdate, change
from replay.runs.lookup import ever_live, find_run, names_of_live, run_named
from replay.runs.missing import missing_records
from replay.runs.run_rules import rules_of
from replay.runs.site_table import Counts, counts_of, read_rows
from replay.runs.topology import MAX_LAG, lag_by_group
from stream.log.contract import Clock, Log, wall_ms
from stream.log.errors import Fenced
from stream.schema.control import Control
from stream.schema.runs import Alias, Cutover, Run, RunStatus, shown_run
from stream.text.user_errors import Exit, FarmwatchError, RunRefused
from stream.text.wording import counted, moment, one_line


class CutoverRefused(RunRefused):
    """The run cannot become live as it stands."""


class OtherCutover(FarmwatchError):
    """Another process moved the alias, or changes the runs, at this moment; this one changed nothing.

    The operator looks at `farmwatch cutover` and decides anew.
    """

    exit = Exit.PROBLEM


@dataclass(frozen=True, slots=True)
class Moved:
    """What a cutover did. `cutover` is None where the run was live already."""

    run: Run
    cutover: Cutover | None
    left: Run | None = None  # that was live till then
    lag: Mapping[str, int] = field(default_factory=dict)  # group -> records that the live stages have to catch up with


@dataclass(frozen=True, slots=True)
class CutoverRequest:
    """What the operator asks for. `to` = "" goes back to the run that was live before, however far behind it is."""

    to: str
    by: str
    why: str = ""
    max_lag: int = MAX_LAG
    partial: bool = False  # also a run that lacks records that are there, or were, most of its scores, or any article


def cut_over(
    log: Log,
    wanted: CutoverRequest,
    *,
    clock: Clock = wall_ms,
    sleep: Callable[[float], None] = time.sleep,
    fit: Callable[[Run], None] = lambda _: None,
) -> Moved:
    """Move the alias. `fit` raises where the live stages could not carry the run on.

    Raises NotFound for an unknown run, CutoverRefused, OtherCutover, BadRuleset, LogUnavailable, and as `fit`.
    """
    looked = Control(log)
    seen = looked.alias
    moved, alias = _decided(log, looked, wanted, clock(), fit)
    if moved.cutover is None:
        return moved
    move = (alias, moved.cutover)

    def decide(control: Control) -> ControlUpdate:
        if control.alias != seen:
            raise OtherCutover(_overtaken(control))
        _refuse_changed(moved.run, control)
        return ControlUpdate(move=move)

    try:
        change(log, decide, sleep)
    except Fenced:
        raise OtherCutover("others change the runs of this log all the time: nothing was changed, try again") from None
    return moved


def _refuse_changed(run: Run, control: Control) -> None:
    """Raises OtherCutover where another process has done to the run what might have had it refused; NotFound, too."""
    now = run_named(control, run.name)
    cancelled = now.state == RunStatus.CANCELLED != run.state
    if cancelled or (now.created_at, now.site_method, now.gaps) != (run.created_at, run.site_method, run.gaps):
        raise OtherCutover(
            f"another process has changed the run {run.shown} meanwhile: nothing was changed here; look at it by"
            f" `farmwatch runs show {run.shown}`, and try again"
        )


def _decided(
    log: Log, control: Control, wanted: CutoverRequest, now_ms: int, fit: Callable[[Run], None]
) -> tuple[Moved, Alias]:
    alias = control.alias
    back = not wanted.to
    if back and not alias.before:
        raise CutoverRefused(f"no run was live before {shown_run(alias.run)}: there is nothing to go back to")
    run = find_run(control, wanted.to) if wanted.to else run_named(control, alias.before)
    if control.live is None:
        raise CutoverRefused("no live stage has begun on this log yet: start `farmwatch up` first")
    if run.name == alias.run:
        return Moved(run, None), alias
    if run.state == RunStatus.CANCELLED and run.name not in ever_live(control):
        raise CutoverRefused(f"run {run.shown} was cancelled: `farmwatch replay` it anew, under another name")
    missing = [topic for topic in (run.features, run.names().verdicts, run.names().sites) if topic not in log.topics()]
    if missing:
        raise CutoverRefused(f"run {run.shown} has no topic {missing[0]}: `farmwatch replay --name {run.shown}` first")
    ruleset = rules_of(control, run).ruleset
    if ruleset.digest != run.digest and not back:
        raise CutoverRefused(
            f"run {run.shown} was judged by {run.ruleset} {run.digest}, which this version of farmwatch reads as"
            f" {ruleset.digest}: replay it anew, under another name"
        )
    fit(run)
    lacks = missing_records(log, run, control.runs)
    if lacks and not wanted.partial:
        said = ", ".join(f"{records} of {topic}" for topic, records in lacks.items())
        raise CutoverRefused(
            f"run {run.shown} does not have all records: at most {said} are not in it, since its window begins after"
            " them, or they left the log before it read them. Its sites and rates rest on the rest: --partial takes it"
            " all the same"
        )
    if not (back or wanted.partial):
        _require_scores(log, control, run)
    lag = lag_by_group(log, control, run, wanted.max_lag)
    behind = sum(lag.values())
    if behind > wanted.max_lag and not back:
        raise CutoverRefused(_lagging(run, lag, wanted.max_lag))
    number = alias.number + 1
    cutover = Cutover(
        number=number,
        at=now_ms,
        by=wanted.by,
        from_run=alias.run,
        to_run=run.name,
        from_digest=control.live.digest,
        to_digest=run.digest,
        why=wanted.why,
        lag=behind,
        back=back,
    )
    return Moved(run, cutover, control.live, lag), Alias(run=run.name, before=alias.run, at=now_ms, number=number)


def _require_scores(log: Log, control: Control, run: Run) -> None:
    """Refuse a run whose rate would rest on few scored articles, or none, in place of the many of the live run."""
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
            f" {live.articles:,}: look at `farmwatch compare live {run.shown}`; --partial takes it all the same"
        )
    if 2 * live.unscored >= live.articles:
        return
    raise CutoverRefused(
        f"run {run.shown} has no score yet for {counts.unscored:,} of {counted(counts.articles, 'article')}, and the"
        f" live run {shown_run(control.alias.run)} for {live.unscored:,} of {live.articles:,}: the rate would rest on"
        " the rest."
        f" `farmwatch replay --name {run.shown}` takes in the scores that came since, and asks for what is missing;"
        " --partial takes it all the same"
    )


def _lagging(run: Run, lag: Mapping[str, int], max_lag: int) -> str:
    said = ", ".join(f"{group} {records}" for group, records in lag.items())
    resume = f"`farmwatch replay --name {run.shown}"
    if run.state == RunStatus.RUNNING:
        then = f"{resume}` resumes it where no process is at work, `farmwatch runs` shows it"
    else:
        then = f"{resume} --to now` takes in what came since, or --max-lag N has the live stages catch up"
    behind = counted(sum(lag.values()), "record")
    return f"run {run.shown} is {behind} behind ({said}), and at most {max_lag} are taken: {then}"


def _overtaken(control: Control) -> str:
    last = control.cutovers[-1]
    return one_line(
        f"{last.by} moved live from {shown_run(last.from_run)} to {shown_run(last.to_run)} meanwhile, at"
        f" {moment(last.at)}: nothing was changed here"
    )
