"""Offsets that retention must keep: records that a run still has to read.

These are the unread records of the live run and of unfinished replays, and, for BACK_DAYS after a cutover, those of the
previous live run. Older live runs keep nothing: their unread records would grow without end. Compacted topics are left
out because they lose no key. Topics whose unread records are all new are left out too: no retention is that short, and
on Kafka a topic in this result keeps all its records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from replay.runs.lookup import ever_live
from replay.runs.topology import reads_of_run
from stream.log.contract import Log
from stream.log.offsets import renew_offsets
from stream.schema.control import Control
from stream.schema.runs import Alias, Run, RunStatus
from stream.schema.topics import RETRIES, SCORES
from stream.text.times import DAY_MS

BACK_DAYS = 30

Committed = Callable[[str, str], Sequence[int | None]]  # (group, topic) -> offsets


def offsets_to_keep(log: Log, control: Control, now_ms: int) -> dict[str, list[int]]:
    """Topic -> first offset to keep in each partition, see `Log.expire`."""
    holding = list(holding_runs(control.runs, control.alias, ever_live(control), now_ms))
    unread = oldest_unread(holding, log.topics(), log.committed)
    return {topic: offsets for topic, offsets in unread.items() if _some_are_old(log, topic, offsets, now_ms)}


def topics_held(log: Log, control: Control, run: Run, now_ms: int) -> list[str]:
    """The topics of which old records are kept for this run, and for no other."""
    were_live, existing = ever_live(control), log.topics()

    def unread(runs: Mapping[str, Run]) -> dict[str, list[int]]:
        return oldest_unread(list(holding_runs(runs, control.alias, were_live, now_ms)), existing, log.committed)

    others = unread({name: other for name, other in control.runs.items() if name != run.name})
    return sorted(
        topic
        for topic, offsets in unread(control.runs).items()
        if offsets != others.get(topic) and _some_are_old(log, topic, offsets, now_ms)
    )


def _some_are_old(log: Log, topic: str, offsets: Sequence[int], now_ms: int) -> bool:
    first_new = log.offset_at(topic, now_ms - DAY_MS)
    return any(
        max(offset, kept) < new for offset, kept, new in zip(offsets, log.beginning(topic), first_new, strict=True)
    )


def holding_runs(runs: Mapping[str, Run], alias: Alias, were_live: Collection[str], now_ms: int) -> Iterator[Run]:
    """The runs with unread records; `were_live` names those that are or were live."""
    for name, run in runs.items():
        if run.state == RunStatus.REMOVED:
            continue
        if name == alias.run:
            yield run
        elif name == alias.before:
            if now_ms < alias.at + BACK_DAYS * DAY_MS:
                yield run
        elif name not in were_live and run.state == RunStatus.RUNNING:
            yield run


def renew_idle(log: Log, control: Control) -> None:
    """Renew the offsets of idle runs: a broker would delete them within days."""
    for name, run in control.runs.items():
        if name != control.alias.run and run.state != RunStatus.REMOVED:
            for group, topics in reads_of_run(run.names()).items():
                renew_offsets(log, group, [*topics, RETRIES])


def oldest_unread(runs: Sequence[Run], partitions: Mapping[str, int], committed: Committed) -> dict[str, list[int]]:
    """The lowest unread offset of each topic and partition, over all runs. Missing topics are left out."""
    unread: dict[str, list[int]] = {}
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
                unread[topic] = [min(pair) for pair in zip(unread.get(topic, read), read, strict=True)]
    return unread
