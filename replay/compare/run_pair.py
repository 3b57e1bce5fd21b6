"""Finds the two runs of a comparison: names, newest verdict and progress."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from replay.runs.lookup import find_run
from replay.runs.overview import state_of
from replay.runs.phases import JUDGE, MEASURE, TALLY, progress_of
from replay.runs.topology import lag_by_group, last_record
from stream.log.contract import Log
from stream.processing.topic_reader import records_of
from stream.schema.control import Control
from stream.schema.records import Verdict
from stream.schema.runs import Run, RunNames, RunStatus
from stream.text.user_errors import NotFound

_NOTED_LAG_SHARE = 0.01  # of its records; a comparison notes a larger lag of a run that follows
_DONE = {MEASURE: "measured", JUDGE: "judged", TALLY: "tallied"}


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run, its topics, and its newest verdict, whose ruleset is the one compared."""

    run: Run
    names: RunNames
    state: str  # see `state_of`
    newest: Verdict
    progress: str  # unfinished work as text; "" = none


RunPair = tuple[ComparedRun, ComparedRun]


def find_compared_run(log: Log, control: Control, name: str) -> ComparedRun:
    """The run with this name or alias, for a comparison."""
    run = find_run(control, name)
    names = run.names(is_live=run.name == control.alias.run)
    newest = _newest(log, names.verdicts)
    progress = _progress(log, control, run)
    if newest is None:
        so_far = f" ({progress})" if progress else ""
        raise NotFound(f"the run {run.shown} has judged nothing yet{so_far}", case="no verdict")
    return ComparedRun(run, names, state_of(log, control, run), newest, progress)


def _newest(log: Log, topic: str) -> Verdict | None:
    """The newest verdict: its ruleset is the one of the run now."""
    if topic not in log.topics():
        return None
    spans = list(enumerate(zip(log.beginning(topic), log.end(topic), strict=True)))
    last = [last_record(log, topic, partition, first, end) for partition, (first, end) in spans]
    verdicts = list(records_of(Verdict, (message for message in last if message is not None)))
    if not verdicts:  # a live topic may end with hours of heartbeats
        for partition, _ in spans:
            verdicts += deque(records_of(Verdict, log.read(topic, partition)), maxlen=1)
    return max((verdict for _, verdict in verdicts), key=lambda verdict: verdict.judged_at, default=None)


def _progress(log: Log, control: Control, run: Run) -> str:
    """The unfinished work, as text. A small lag of a run that follows is left out."""
    if run.state == RunStatus.DONE or not {run.source, run.names().verdicts} <= log.topics().keys():
        return ""
    advances = progress_of(log, run).phases
    if run.follows:
        behind, done = sum(lag_by_group(log, control, run).values()), sum(advance.done for advance in advances)
        parts = [f"{behind:,} records behind the live topics"] if behind > done * _NOTED_LAG_SHARE else []
    else:
        parts = [
            f"{_DONE[advance.phase]} {advance.done:,} of {advance.total:,} records ({advance.done / advance.total:.0%})"
            for advance in advances
            if not advance.is_done
        ]
    if parts and run.state == RunStatus.CANCELLED:
        parts.insert(0, "cancelled")
    return "; ".join(parts)
