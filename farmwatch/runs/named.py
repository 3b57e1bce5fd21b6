"""Runs by name: which there are, and where one reads and writes."""

from __future__ import annotations

from farmwatch.errors import NotFound
from farmwatch.messages import one_line
from stream.control import Control
from stream.log import Log
from stream.runs import LIVE, Run, RunNames, State

FIRST = Run(name=LIVE, ruleset="", digest="", detector="", epoch="")  # of a log on which no live stage ever began


def run_named(control: Control, name: str) -> Run:
    """A run by its name, or by run/NAME as `compare` has it. Raises NotFound, which names those that are there."""
    run = control.runs.get(name.removeprefix("run/"))
    if run is None or run.state == State.REMOVED:
        there = sorted(known.name for known in control.runs.values() if known.state != State.REMOVED)
        said = (
            f"the runs of this log: {', '.join(there)}" if there else "this log has none yet, `farmwatch up` begins one"
        )
        raise NotFound(f"there is no run {one_line(name)[:60]!r}; {said}")
    return run


def ever_live(control: Control) -> set[str]:
    """Names of the runs that are live or were."""
    moves = control.cutovers
    return {LIVE, control.alias.run, *(move.from_run for move in moves), *(move.to_run for move in moves)}


def names_of_live(control: Control) -> RunNames:
    """Where the live run reads and writes; the plain names while no live stage has ever begun."""
    return (control.live or FIRST).names(is_live=True)


def names_to_read(log: Log, run: str = "") -> RunNames:
    """Where `run` reads and writes, or the run that is live where none is named. Raises NotFound."""
    control = Control(log)
    if not run:
        return names_of_live(control)
    found = run_named(control, run)
    return found.names(is_live=found.name == control.alias.run)
