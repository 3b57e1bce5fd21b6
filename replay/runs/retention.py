"""What retention must leave: the records that a run has still to read.

Held are the records that the live run and replays have not read, and, for BACK_DAYS after a cutover, those that the run
before has not read. A run that was live longer ago holds nothing: its unread records would grow for ever. Left out are
compacted topics, which lose no key, and topics of which only new records are unread: no retention is that short, and on
Kafka a topic that is named keeps everything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from replay.runs.lookup import ever_live
from replay.runs.topology import reads_of_run
from stream.log.contract import Log
from stream.log.offsets import renew_offsets
from stream.schema.control import Control
from stream.schema.runs import Alias, Run, RunStatus
from stream.schema.topics import SCORES

BACK_DAYS = 30
_DAY_MS = 86_400_000

Committed = Callable[[str, str], Sequence[int | None]]  # (group, topic) -> offsets


def needed(log: Log, control: Control, now_ms: int) -> dict[str, list[int]]:
    """Topic -> offset per partition from which on records are to stay, see `Log.expire`."""
    holding = list(holding_runs(control.runs, control.alias, ever_live(control), now_ms))
    unread = needed_by(holding, log.topics(), log.committed)
    return {topic: offsets for topic, offsets in unread.items() if _some_are_old(log, topic, offsets, now_ms)}


def _some_are_old(log: Log, topic: str, offsets: Sequence[int], now_ms: int) -> bool:
    """Whether a record that is kept, from these offsets on, is older than a day."""
    first_new = log.offset_at(topic, now_ms - _DAY_MS)
    return any(
        max(offset, kept) < new for offset, kept, new in zip(offsets, log.beginning(topic), first_new, strict=True)
    )


def holding_runs(runs: Mapping[str, Run], alias: Alias, were_live: Collection[str], now_ms: int) -> Iterator[Run]:
    """The runs that have still to read something; `were_live` names those that are live or were."""
    for name, run in runs.items():
        if run.state == RunStatus.REMOVED:
            continue
        if name == alias.run:
            yield run
        elif name == alias.before:
            if now_ms < alias.at + BACK_DAYS * _DAY_MS:
                yield run
        elif name not in were_live and run.state == RunStatus.RUNNING:
            yield run


def renew_idle(log: Log, control: Control) -> None:
    """Keep the offsets of runs that nobody is at work on: a broker would forget them within days."""
    for name, run in control.runs.items():
        if name != control.alias.run and run.state != RunStatus.REMOVED:
            for group, topics in reads_of_run(run.names()).items():
                renew_offsets(log, group, topics)


def needed_by(runs: Sequence[Run], partitions: Mapping[str, int], committed: Committed) -> dict[str, list[int]]:
    """The least offset of each topic and partition that one of the runs has not read. Topics not there are left out."""
    found: dict[str, list[int]] = {}
    for run in runs:
        for group, topics in reads_of_run(run.names()).items():
            for topic in topics:
                if topic == SCORES or topic not in partitions:
                    continue
                none = [0] * partitions[topic]
                start = run.start.get(topic, none)
                read = [
                    begun if done is None else done for begun, done in zip(start, committed(group, topic), strict=True)
                ]
                found[topic] = [min(pair) for pair in zip(found.get(topic, read), read, strict=True)]
    return found
