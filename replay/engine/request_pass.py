"""The request pass of a resumed run: which texts lack a request, and where the pass begins.

The log alone decides: articles by the run's verdicts that have no score and no request that SCORE has still to read. A
killed pass therefore requests no text twice. It resumes at its offset; texts before that offset wait for the next pass.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from replay.runs.offsets import processed_offsets, reached
from replay.runs.phases import ask_phase
from replay.runs.scored_texts import known_texts, unrequested_texts
from stream.log.contract import Log
from stream.log.errors import LogUnavailable, StreamError
from stream.schema.runs import Run


class PassBegin(enum.Enum):
    """Where a pass begins."""

    START = "start"
    RESUMED = "midst"  # in a pass of another process, or an interrupted one
    HELD = "held"  # not yet: idle members are still in the group


def count_unrequested(log: Log, run: Run, stopped: Callable[[], bool] = lambda: False) -> int:
    """Texts of the run to request scores for; 0 once `stopped` is true. Raises LogUnavailable."""
    partitions = log.topics()[run.features]
    known = known_texts(log, run.detector)
    unasked = unrequested_texts(log, run, lambda: known)
    texts = 0
    for partition in range(partitions):
        if stopped():
            return 0
        texts += unasked.count(partition)
        unasked.forget([partition])
    return texts


def begin_pass(log: Log, run: Run, *, resumes: bool) -> PassBegin:
    """Set the offsets of the pass's group; an interrupted pass is continued only with `resumes`.

    Raises LogUnavailable.
    """
    phase = ask_phase(run)
    stops = phase.stops(log, run)
    if resumes and None not in log.committed(phase.group, run.features) and not reached(log, phase.group, stops):
        return PassBegin.RESUMED
    start = processed_offsets(log.beginning(run.features), phase.starts(log, run)[run.features])
    try:
        log.reset(phase.group, run.features, start)
    except LogUnavailable:
        raise
    except StreamError:  # the group has members: just begun, leaving, or killed and not yet expired
        return PassBegin.HELD if reached(log, phase.group, stops) else PassBegin.RESUMED
    return PassBegin.START


def is_held(log: Log, run: Run) -> bool:
    """Whether idle members still keep a pass from beginning. Raises LogUnavailable."""
    phase = ask_phase(run)
    return bool(log.members(phase.group)) and reached(log, phase.group, phase.stops(log, run))
