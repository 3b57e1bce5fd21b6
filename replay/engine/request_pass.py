"""The second pass of a run that goes on: which texts nobody has asked for, and where the pass begins.

It is found from the log alone: articles by the run's verdicts, of them those without a score and without a request that
SCORE has still to read. So a pass that was killed asks for no text that it had asked for before; it goes on where it
was, and what became unasked behind it meanwhile is left to another one, from the start.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from replay.runs.offsets import dealt_with, reached
from replay.runs.phases import ask_phase
from replay.runs.scored_texts import known_texts, unasked_of
from stream.log.contract import Log
from stream.log.errors import LogUnavailable, StreamError
from stream.schema.runs import Run


class PassBegin(enum.Enum):
    """Where a pass begins."""

    START = "start"
    MIDST = "midst"  # one that another process is at, or that was broken off
    HELD = "held"  # nowhere yet: whoever is still in the group has nothing left to do there


def texts_to_ask(log: Log, run: Run, stopped: Callable[[], bool] = lambda: False) -> int:
    """Texts to be asked for, of what the run has judged; 0 where `stopped` says so meanwhile. Raises LogUnavailable."""
    partitions = log.topics()[run.features]
    known = known_texts(log, run.detector)
    unasked = unasked_of(log, run, lambda: known)
    texts = 0
    for partition in range(partitions):
        if stopped():
            return 0
        texts += unasked.count(partition)
        unasked.forget([partition])
    return texts


def begin_pass(log: Log, run: Run, *, goes_on: bool) -> PassBegin:
    """Set the pass's group to where it begins; one that was broken off is gone on with only where it `goes_on`.

    Raises LogUnavailable.
    """
    phase = ask_phase(run)
    stops = phase.stops(log, run)
    if goes_on and None not in log.committed(phase.group, run.features) and not reached(log, phase.group, stops):
        return PassBegin.MIDST
    start = dealt_with(log.beginning(run.features), phase.starts(log, run)[run.features])
    try:
        log.reset(phase.group, run.features, start)
    except LogUnavailable:
        raise
    except StreamError:  # somebody is in the group: who has just begun it, is leaving, or died and counts as there
        return PassBegin.HELD if reached(log, phase.group, stops) else PassBegin.MIDST
    return PassBegin.START


def is_held(log: Log, run: Run) -> bool:
    """Whether there still is who kept a pass from beginning, with nothing to do. Raises LogUnavailable."""
    phase = ask_phase(run)
    return bool(log.members(phase.group)) and reached(log, phase.group, phase.stops(log, run))
