"""The second pass of a run that goes on: which texts nobody has asked for, and where the pass begins.

It is found from the log alone: articles by the run's verdicts, of them those without a score and without a request that
SCORE has still to read. So a pass that was killed asks for no text that it had asked for before; it goes on where it
was, and what became unasked behind it meanwhile is left to another one, from the start.
"""

from __future__ import annotations

from typing import NamedTuple

from farmwatch.runs.counts import counts_of, rows_of
from farmwatch.runs.offsets import dealt_with, reached
from farmwatch.runs.phases import Phase, ask_phase
from farmwatch.runs.scored import unasked_of
from stream.errors import LogUnavailable, StreamError
from stream.log import Log
from stream.runs import Run


class Pass(NamedTuple):
    """A pass to be made."""

    texts: int  # to ask for
    from_start: bool  # else one that is under way, or was


def pass_to_make(log: Log, run: Run) -> Pass | None:
    """What is to be asked for of a run that is judged and tallied, its group set to where the pass begins.

    None where nothing is. Raises LogUnavailable.
    """
    if not counts_of(rows_of(log, run.names().sites)).unscored:
        return None
    unasked = unasked_of(log, run)
    texts = 0
    for partition in range(log.topics()[run.features]):
        texts += unasked.count(partition)
        unasked.forget([partition])
    if not texts:
        return None
    phase = ask_phase(run)
    if _is_under_way(log, run, phase):
        return Pass(texts, from_start=False)
    start = dealt_with(log.beginning(run.features), phase.starts(log, run)[run.features])
    try:
        log.reset(phase.group, run.features, start)
    except LogUnavailable:
        raise
    except StreamError:  # another process of the run has just begun it
        return Pass(texts, from_start=False)
    return Pass(texts, from_start=True)


def _is_under_way(log: Log, run: Run, phase: Phase) -> bool:
    begun = None not in log.committed(phase.group, run.features)
    return begun and not reached(log, phase.group, phase.stops(log, run))
