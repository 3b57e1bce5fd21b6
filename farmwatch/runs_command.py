"""The commands `runs`: which runs a log has, one of them in full, cancelling, removing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from farmwatch.errors import Exit
from farmwatch.messages import counted, message, one_line, put, put_json, put_table
from farmwatch.options import DEFAULTS, AsJson, Common, opened

if TYPE_CHECKING:
    from farmwatch.runs.overview import RunState

Name = Annotated[str, Parameter(help="Name of the run.")]
_DETECTOR_SHOWN = 28  # characters


def list_runs(*, json: AsJson = False, common: Common = DEFAULTS) -> int:
    """The runs of the log: what each judges by, how far it is, what it came to, and which one is live.

    JSON: one object a line.
    """
    from farmwatch.runs.overview import run_states
    from stream.control import Control

    config = common.load().config
    with opened(config) as log:
        states = run_states(log, Control(log), _now_ms())
    if json:
        for state in states:
            put_json(_fields(state))
        return Exit.OK
    put_table(
        (
            *("run", "live", "ruleset", "detector", "source", "window", "state", "phase"),
            *("done", "rate", "left", "lag", "articles", "unscored"),
        ),
        (_row(state) for state in states),
        less=("source", "rate", "window", "articles", "phase"),
        same=("detector", "source", "window"),
    )
    for state in states:
        if state.resume:
            message(f"{state.run.name} broke off: resume with `{state.resume}`")
    if not states:
        message("no run yet: `farmwatch up` begins the live one, `farmwatch replay` another")
    return Exit.OK


def show_run(run: Name, /, *, json: AsJson = False, common: Common = DEFAULTS) -> int:
    """One run in full: what was asked for, by whom and why, how far it is, and what it came to."""
    from farmwatch.runs.named import run_meant
    from farmwatch.runs.overview import run_state
    from farmwatch.runs.summary import lines_of, summary_of
    from farmwatch.spans import moment
    from stream.control import Control

    config = common.load().config
    with opened(config) as log:
        control = Control(log)
        row = run_meant(control, run)
        state = run_state(log, control, row, _now_ms())
        summary = summary_of(log, control, config, row, _now_ms())
    if json:
        put_json(_fields(state))
        return Exit.OK
    facts: list[tuple[str, Any]] = [
        ("state", f"{state.state}{f'; resume with `{state.resume}`' if state.resume else ''}"),
        ("ruleset", f"{row.ruleset} {row.digest}"),
        ("detector", row.detector),
        ("feature epoch", row.epoch),
        ("source", f"{row.source}{f': {row.why_source}' if row.why_source else ''}"),
        ("window", _window(state)),
        ("created", f"{moment(row.created_at)} by {row.created_by or '-'}{f': {row.why}' if row.why else ''}"),
        ("ended", moment(row.ended_at) if row.ended_at else "-"),
        ("at work", ", ".join(state.members) or "nobody"),
        ("lag", f"{counted(state.lag, 'record')} behind the live topics"),
        *((f"phase {step.phase}", f"{step.done} of {step.total}") for step in state.progress.advances),
    ]
    for name, value in facts:
        put(one_line(f"{name}: {value}"))
    for line in lines_of(summary):
        put(line)
    return Exit.OK


def cancel_run(run: Name, /, *, common: Common = DEFAULTS) -> int:
    """Cancel a run: processes at work on it end within seconds. What it has judged stays until `runs rm`."""
    from farmwatch.runs.beginning import cancel
    from farmwatch.runs.named import run_meant
    from stream.control import Control

    config = common.load().config
    with opened(config) as log:
        name = cancel(log, run_meant(Control(log), run).name).name
    message(f"the run {name} is cancelled; `farmwatch runs rm {name}` frees what it holds")
    return Exit.OK


def remove_run(
    run: Name,
    /,
    *,
    force: Annotated[
        bool, Parameter(negative="", help="Also the run that was live before, which `cutover --back` needs.")
    ] = False,
    dry_run: Annotated[bool, Parameter(negative="", help="Only say what would be freed.")] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Remove a run with its topics, groups and state, and say what that frees.

    Refused for the run that is live, while somebody is at work on the run, and while another run judges its features.
    """
    from farmwatch.runs.named import name_meant, run_named
    from farmwatch.runs.removal import RunNeeded, remove, what_it_frees, why_not
    from farmwatch.spans import size
    from stream.control import Control

    config = common.load().config
    with opened(config) as log:
        control = Control(log)
        name = name_meant(control, run)
        row = control.runs.get(name) or run_named(control, name)  # also one whose removal broke off
        reason = why_not(log, control, row, force=force)
        if reason:
            raise RunNeeded(reason)
        freed = what_it_frees(log, row)
        if not dry_run:
            remove(log, name, force=force)
    if json:
        put_json(
            {
                "run": name,
                "removed": not dry_run,
                "topics": freed.topics,
                "records": freed.records,
                "bytes": freed.bytes,
            }
        )
        return Exit.OK
    put(
        f"{'would free' if dry_run else 'freed'}: {counted(len(freed.topics), 'topic')},"
        f" {counted(freed.records, 'record')}, {size(freed.bytes)}"
    )
    for topic in freed.topics:
        put(f"  {topic}")
    return Exit.OK


def _row(state: RunState) -> tuple[Any, ...]:
    from farmwatch.site_table import short_ruleset
    from farmwatch.spans import lasting

    run = state.run
    return (
        run.name,
        "live" if state.is_live else "",
        short_ruleset(run.ruleset, run.digest),
        run.detector if len(run.detector) <= _DETECTOR_SHOWN else f"{run.detector[: _DETECTOR_SHOWN - 1]}…",
        run.source,
        _window(state),
        state.state,
        "" if state.is_live else state.progress.phase,
        "" if run.follows else f"{state.progress.share:.0%}",
        "" if state.rate is None else f"{state.rate:.0f}/s",
        "" if state.eta_s is None else lasting(state.eta_s),
        state.lag,
        state.counts.articles,
        state.counts.unscored,
    )


def _fields(state: RunState) -> dict[str, Any]:
    run = state.run
    return {
        "run": run.name,
        "live": state.is_live,
        "state": state.state,
        "resume": state.resume,
        "ruleset": run.ruleset,
        "digest": run.digest,
        "detector": run.detector,
        "epoch": run.epoch,
        "source": run.source,
        "why_source": run.why_source,
        "from_at": run.from_at,
        "to_at": run.to_at,
        "created_at": run.created_at,
        "created_by": run.created_by,
        "why": run.why,
        "ended_at": run.ended_at,
        "phase": state.progress.phase,
        "phases": [{"phase": step.phase, "done": step.done, "total": step.total} for step in state.progress.advances],
        "share": state.progress.share,
        "rate": state.rate,
        "eta_s": state.eta_s,
        "lag": state.lag,
        "members": list(state.members),
        "sites": state.counts.sites,
        "pages": state.counts.pages,
        "articles": state.counts.articles,
        "unscored": state.counts.unscored,
    }


def _window(state: RunState) -> str:
    from farmwatch.runs.window import window_text

    return window_text(state.run.from_at, state.run.to_at)


def _now_ms() -> int:
    return int(time.time() * 1000)
