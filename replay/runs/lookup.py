"""Finds runs by name, and the topics and groups of a run."""

from __future__ import annotations

from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.runs import BEFORE, FIRST, LIVE, Run, RunNames, RunStatus, shown_run
from stream.schema.topics import FEATURES
from stream.text.user_errors import NotFound
from stream.text.wording import nearest, one_line

_NAMES_SHOWN = 20
FIRST_RUN = Run(name=LIVE, ruleset="", digest="", detector="", epoch="")  # before the first live stage


def find_run(control: Control, name: str) -> Run:
    """The run with this name or alias, see `resolve_name`. Raises NotFound with the names of the existing runs."""
    return run_named(control, resolve_name(control, name))


def resolve_name(control: Control, name: str) -> str:
    """The run name for a name on the command line; other text is returned unchanged.

    `live` is the run that is live, `before` the run that was live before it, `first` the first run of the log. Raises
    NotFound for `before` if there was no cutover.
    """
    if name == LIVE:
        return control.alias.run
    if name == BEFORE:
        if not control.alias.before:
            raise NotFound(
                f"{BEFORE}: there was no cutover yet, so no run was live before {shown_run(control.alias.run)}"
            )
        return control.alias.before
    return LIVE if name == FIRST else name


def run_named(control: Control, name: str) -> Run:
    """The run with this name. Raises NotFound with the names of the existing runs."""
    run = control.runs.get(name)
    if run is not None and run.state != RunStatus.REMOVED:
        return run
    there = sorted(known.shown for known in control.runs.values() if known.state != RunStatus.REMOVED)
    if not there:
        raise NotFound("this log has no runs yet", case="no run")
    meant = f"did you mean {near}? " if (near := nearest(name, there)) else ""
    more = f" and {len(there) - _NAMES_SHOWN} more" if len(there) > _NAMES_SHOWN else ""
    raise NotFound(
        f"there is no run {one_line(name)[:60]!r}; {meant}the runs of this log: {', '.join(there[:_NAMES_SHOWN])}{more}"
    )


def measuring_run(features: str) -> str:
    """Name of the run whose MEASURE writes this features topic, whichever runs judge the features."""
    return features.removeprefix(FEATURES).removeprefix(".") or LIVE


def ever_live(control: Control) -> set[str]:
    """Names of the runs that are or were live."""
    moves = control.cutovers
    return {LIVE, control.alias.run, *(move.from_run for move in moves), *(move.to_run for move in moves)}


def names_of_live(control: Control) -> RunNames:
    """Topics and groups of the live run; before the first live stage, the plain names."""
    return (control.live or FIRST_RUN).names(is_live=True)


def names_to_read(log: Log, run: str = "") -> RunNames:
    """Topics and groups of a run (default: the live run). Raises NotFound."""
    control = Control(log)
    if not run:
        return names_of_live(control)
    row = find_run(control, run)
    return row.names(is_live=row.name == control.alias.run)


def second_runs(control: Control) -> list[Run]:
    """The runs that follow the live one under its ruleset, for another detector, by name."""
    live = control.live
    return (
        []
        if live is None
        else [
            run
            for _, run in sorted(control.runs.items())
            if run.follows
            and run.state == RunStatus.RUNNING
            and run.name != live.name
            and run.digest == live.digest
            and run.detector != live.detector
        ]
    )
