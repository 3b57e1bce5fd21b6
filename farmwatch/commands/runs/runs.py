"""The commands `runs`: list the runs of a log, show one, cancel, remove."""

from __future__ import annotations

import json as json_text
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import App, Parameter

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.opening import opened
from farmwatch.runs.summary_lines import lines_of
from farmwatch.share.review_labels import read_review
from farmwatch.terminal.messages import message, put, put_columns, put_json, put_wrapped
from farmwatch.terminal.remedies import in_full, resume_command
from farmwatch.upkeep.disk_forecast import held_for
from replay.engine.lifecycle import RunNeeded, cancel, removal_obstacle, remove, topic_sizes
from replay.engine.summary import summary_of
from replay.live.epoch_change import seams
from replay.rows.gaps import count_dead_letters
from replay.rows.site_table import short_ruleset
from replay.runs.lookup import find_run, resolve_name, run_named
from replay.runs.overview import STOPPED, RunState, run_state, run_states
from replay.runs.run_rules import method_name
from stream.log.contract import wall_ms
from stream.schema.control import Control
from stream.text.user_errors import Exit, NotFound
from stream.text.wording import counted, lasting, moment, one_line, size

Name = Annotated[str, Parameter(help="Name of a run, or `live`, `before` or `first`.")]
runs = App(name="runs")
# JSON fields taken from the run, and from its state
_RUN_FIELDS = (
    *("ruleset", "digest", "detector", "epoch", "measured_by", "source", "why_source", "from_at"),
    *("created_at", "created_by", "why", "error"),
)
_STATE_FIELDS = ("state", "to_at", "ended_at", "phase", "rate", "eta_s", "lag")


@runs.default
def list_runs(*, json: AsJson = False, common: Common = DEFAULTS) -> int:
    """List the runs of the log: rules, progress, results, and which one is live.

    The numbers of articles and unscored articles are from the end of the replay, which adds later scores again. JSON:
    one object a line.
    """
    config = common.load().config
    with opened(config) as log:
        states = run_states(log, Control(log), wall_ms())
    if json:
        for state in states:
            put_json(_fields(state))
        return Exit.OK
    if not states:
        message("no run yet: `farmwatch up` begins the live one, `farmwatch replay` another")
        return Exit.OK
    columns: dict[str, str | Callable[[RunState], Any]] = {
        "run": lambda state: state.run.shown,
        "state": "state",
        "ruleset": lambda state: short_ruleset(state.run.ruleset, state.run.digest),
        "detector": lambda state: state.run.detector,
        "source": lambda state: state.run.source,
        "window": "window",
        "phase": "phase",
        "done": "done",
        "rate": lambda state: "" if state.rate is None else f"{state.rate:.0f}/s",
        "left": lambda state: "" if state.eta_s is None else lasting(state.eta_s),
        "lag": "lag",
        "articles": lambda state: "" if state.tallied is None else state.tallied[0],
        "unscored": lambda state: "" if state.tallied is None else state.tallied[1],
    }
    put_columns(states, columns, less=("detector", "source", "window", "rate", "articles", "phase"))
    for state in states:
        if resume := _resume(state):
            why = f" by an error ({state.run.error})" if state.run.error else ""
            message(one_line(f"{state.run.shown} is stopped{why}: `{resume}` resumes it{held_for(state.holds)}"))
    return Exit.OK


@runs.command(name="show")
def show_run(
    run: Name,
    /,
    *,
    ruleset_text: Annotated[
        bool, Parameter(negative="", help="Print only the text of its ruleset, unchanged.")
    ] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Show a run: its parameters, operator and reason, its progress and its results."""
    config = common.load().config
    with opened(config) as log:
        control = Control(log)
        row = find_run(control, run)
        if ruleset_text:
            text = control.ruleset_text(row)
            if not text:
                raise NotFound(f"the text of the ruleset {row.ruleset} {row.digest} is not in this log")
            if json:
                put_json({"run": row.shown, "ruleset": row.ruleset, "digest": row.digest, "text": text})
            else:
                sys.stdout.write(text)
            return Exit.OK
        state = run_state(log, control, row, wall_ms())
        summary = summary_of(log, control, config, row, wall_ms(), read_review(config.rate, wall_ms()))
        dead = count_dead_letters(log, row)
    if json:
        result_fields = ("sites", "pages", "articles", "unscored", "lost", "lost_said", "verdicts")
        put_json(_fields(state) | {field: getattr(summary, field) for field in result_fields} | {"dead_letters": dead})
        return Exit.OK
    for name, value in _facts(state):
        put_wrapped(one_line(f"{name}: {value}"), "  ")
    if dead:
        put_wrapped(f"dead letters: {counted(dead, 'record')}", "  ")
    for line in lines_of(summary, row):
        put_wrapped(line, "    ")
    return Exit.OK


def _facts(state: RunState) -> Iterator[tuple[str, str]]:
    run, resume = state.run, _resume(state)
    yield "state", f"{state.state}{f'; `{resume}` resumes it' if resume else ''}"
    if run.error:
        yield "last error", run.error
    yield "ruleset", f"{run.ruleset} {run.digest}"
    yield "detector", run.detector
    yield "site method", method_name(run.site_method) or "as configured"
    settings = ", ".join(f"{name}={value}" for name, value in run.measured_by.items())
    yield "feature epoch", f"{run.epoch}{f', measured with {settings}' if settings else ''}"
    for seam in seams(run):
        yield "seam", seam
    yield "source", f"{run.source}{f', because {run.why_source}' if run.why_source else ''}"
    yield "window", state.window
    yield "created", f"{moment(run.created_at)} by {run.created_by or '-'}{f': {run.why}' if run.why else ''}"
    if not state.is_live:
        yield "ended", moment(state.ended_at) if state.ended_at else "-"
    yield "at work", ", ".join(state.members) or "no process"
    for step in () if run.follows else state.phases:
        yield f"phase {step.phase}", f"{step.done} of {step.total}"
    behind = ", ".join(f"{group} {records}" for group, records in state.lags.items() if records)
    yield "lag", f"{counted(state.lag, 'record')} behind the live topics{f' ({behind})' if behind else ''}"


@runs.command(name="cancel")
def cancel_run(run: Name, /, *, json: AsJson = False, common: Common = DEFAULTS) -> int:
    """Cancel a run: its processes end within seconds. Its verdicts stay until `runs rm`.

    Exit code 1 when there is nothing to cancel: the run is unknown or done, or it is or was live.
    JSON: one object with the run's name.
    """
    config = common.load().config
    with opened(config, write=True) as log:
        name = cancel(log, find_run(Control(log), run).name).shown
    if json:
        put_json({"run": name, "cancelled": True})
    else:
        message(f"the run {name} is cancelled; `farmwatch runs rm {name}` frees its space")
    return Exit.OK


@runs.command(name="rm")
def remove_runs(
    runs: Annotated[list[str], Parameter(help="Names of the runs.", negative="")],
    /,
    *,
    force: Annotated[
        bool, Parameter(negative="", help="Also remove the previous live run, which `cutover --back` needs.")
    ] = False,
    dry_run: Annotated[bool, Parameter(negative="", help="Only print the space to be freed.")] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Remove runs with their topics, groups and state, and print the freed space of each.

    Removes nothing, with exit code 1, if one of them is live, if a process works on one, or if another run judges the
    features of one. JSON: one object a line, for each run.
    """
    config = common.load().config
    with opened(config, write=not dry_run) as log:
        control = Control(log)
        names = dict.fromkeys(resolve_name(control, run) for run in runs)
        rows = [control.runs.get(name) or run_named(control, name) for name in names]  # also partly removed runs
        rows.sort(key=lambda row: row.remeasures)  # runs that judge the features of another go first
        obstacles = [removal_obstacle(log, control, row, force=force, leaving=names) for row in rows]
        if any(obstacles):
            raise RunNeeded("; ".join(in_full(obstacle) for obstacle in obstacles if obstacle is not None))
        for row in rows:
            sizes = topic_sizes(log, row)
            topics, records = sorted(sizes), sum(held.records for held in sizes.values())
            freed_bytes = sum(held.bytes for held in sizes.values())
            if not dry_run:
                remove(log, row.name, force=force)
            if json:
                freed = {"topics": topics, "records": records, "bytes": freed_bytes}
                put_json({"run": row.shown, "removed": not dry_run, **freed})
                continue
            held_text = f"{counted(len(topics), 'topic')}, {counted(records, 'record')}, {size(freed_bytes)}"
            put_wrapped(f"{row.shown}: {'would free' if dry_run else 'freed'} {held_text}", "  ")
            for topic in topics:
                put(f"  {topic}")
    return Exit.OK


def _resume(state: RunState) -> str:
    return resume_command(state.run) if state.state == STOPPED else ""


def _fields(state: RunState) -> dict[str, Any]:
    run, tallied = state.run, state.tallied or (None, None)
    return {
        "run": run.shown,
        "live": state.is_live,
        **{name: getattr(run, name) for name in _RUN_FIELDS},
        **{name: getattr(state, name) for name in _STATE_FIELDS},
        "resume": _resume(state),
        "site_method": json_text.loads(run.site_method or "null"),
        "phases": [asdict(step) for step in state.phases],
        "share": state.progress.share,
        "lags": dict(state.lags),
        "members": list(state.members),
        "articles": tallied[0],
        "unscored": tallied[1],
    }
