"""The commands `runs`: list the runs of a log, show one, cancel, remove."""

from __future__ import annotations

import json as json_text
import sys
from dataclasses import asdict
from operator import attrgetter
from typing import Annotated, Any

from cyclopts import App, Parameter

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.opening import opened
from farmwatch.runs.summary_lines import lines_of
from farmwatch.share.review_labels import read_review
from farmwatch.tables.columns import Column, Kind, fields_of
from farmwatch.tables.listing import LISTING, Listing, shown_cell
from farmwatch.terminal.messages import message, put, put_json, put_wrapped
from farmwatch.terminal.remedies import flags_of, in_full, resume_command
from farmwatch.upkeep.disk_forecast import held_for
from replay.engine.lifecycle import RunNeeded, cancel, removal_obstacle, remove, topic_sizes
from replay.engine.summary import summary_of
from replay.live.epoch_change import seams
from replay.rows.gaps import count_dead_letters
from replay.runs.lookup import find_run, resolve_name, run_named
from replay.runs.overview import STOPPED, RunState, run_state, run_states
from replay.runs.run_rules import method_name
from stream.log.contract import wall_ms
from stream.schema.control import Control
from stream.text.user_errors import Exit, NotFound
from stream.text.wording import counted, lasting, one_line, size

Name = Annotated[str, Parameter(help="Name of a run, or `live`, `before` or `first`.")]
runs = App(name="runs")


def _of_run(name: str, kind: Kind = "text", **fields: Any) -> Column[RunState]:
    return Column(name, kind, attrgetter(f"run.{name}"), **fields)


def _tallied(state: RunState, place: int) -> int | None:
    return None if state.tallied is None else state.tallied[place]


def _phases(state: RunState) -> str:
    steps = () if state.run.follows else state.phases
    return ", ".join(f"{step.phase}: {step.done} of {step.total}" for step in steps)


def _lags(state: RunState) -> str:
    return ", ".join(f"{group} {records}" for group, records in state.lags.items() if records)


_COLUMNS: list[Column[RunState]] = [
    Column("run", "text", attrgetter("run.shown")),
    Column("state", "text", attrgetter("state"), "count"),
    _of_run("ruleset"),
    _of_run("digest"),
    _of_run("detector"),
    Column("done", "share", attrgetter("progress.share"), said=attrgetter("done"), meaning="of a replay"),
    Column("left_s", "number", attrgetter("eta_s"), said=lambda e: "" if e.eta_s is None else lasting(e.eta_s)),
    Column("lag", "integer", attrgetter("lag"), meaning="new records that it has not processed"),
    Column("articles", "integer", lambda state: _tallied(state, 0)),
    Column("unscored", "integer", lambda state: _tallied(state, 1), meaning="articles without a score"),
    Column("window", "text", attrgetter("window"), meaning="when its pages were fetched"),
    _of_run("why"),
    _of_run("created_at", "time"),
    _of_run("created_by"),
    Column("ended_at", "time", attrgetter("ended_at")),
    _of_run("from_at", "time"),
    Column("to_at", "time", attrgetter("to_at")),
    _of_run("error", meaning="that ended its last process"),
    Column("resume", "text", lambda state: _resume(state), meaning="the command that resumes it"),
    Column("phase", "text", attrgetter("phase")),
    Column("phases", "json", lambda state: [asdict(step) for step in state.phases], said=_phases),
    Column("per_s", "number", attrgetter("rate"), meaning="records that it processes"),
    Column("lags", "json", lambda state: dict(state.lags), said=_lags, meaning="by group of processes"),
    Column("members", "json", lambda state: list(state.members), meaning="processes at work"),
    _of_run("source", meaning="the topic that it begins at"),
    _of_run("why_source"),
    _of_run("epoch", meaning="of the features"),
    Column("measured_by", "json", attrgetter("run.measured_by"), said=lambda e: flags_of(e.run.measured_by)),
    Column(
        "site_method",
        "json",
        lambda state: json_text.loads(state.run.site_method or "null"),
        said=lambda state: method_name(state.run.site_method) or "as configured",
    ),
]
_SHOWN = ("run", "state", "ruleset", "done", "left_s", "lag", "articles", "unscored", "why", "window", "detector")


@runs.default
def list_runs(*, listing: Listing = LISTING, common: Common = DEFAULTS) -> int:
    """One row per run of the log: rules, progress, results, and which one is live.

    The numbers of articles and unscored articles are from the end of the replay, which adds later scores again.
    """
    selection = listing.of(_COLUMNS)
    config = common.load().config
    with opened(config) as log:
        states = run_states(log, Control(log), wall_ms())
    selection.put(states, "run", _SHOWN)
    for state in states if listing.is_table else ():
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
            sys.stdout.write(text)
            return Exit.OK
        state = run_state(log, control, row, wall_ms())
        summary = summary_of(log, control, config, row, wall_ms(), read_review(config.rate, wall_ms()))
        dead = count_dead_letters(log, row)
    if json:
        result_fields = ("sites", "pages", "articles", "unscored", "lost", "lost_said", "verdicts")
        results = {field: getattr(summary, field) for field in result_fields}
        put_json(fields_of(_COLUMNS, state) | results | {"dead_letters": dead})
        return Exit.OK
    for column in _COLUMNS:
        if shown := str(shown_cell(column, state)):
            put_wrapped(one_line(f"{column.name}: {shown}"), "  ")
    for seam in seams(row):
        put_wrapped(one_line(seam), "  ")
    if dead:
        put_wrapped(f"dead letters: {counted(dead, 'record')}", "  ")
    for line in lines_of(summary, row):
        put_wrapped(line, "    ")
    return Exit.OK


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
