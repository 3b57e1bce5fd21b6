"""Repairs groups that would read a topic again: sets their offsets after the records that they have processed.

A stage commits the results of a partition in the order of its records. So the last record of the input with a result in
the output is the last processed one; later records without a result (refused pages, dead letters) are processed again.
CRAWL and TALLY need no repair of lost offsets: reading a hit, verdict or score again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from farmwatch.upkeep.deleted_groups import find_rereading_groups
from replay.runs.lookup import names_of_live
from replay.runs.topology import between
from scoring.stages.site_pages import JudgedPage
from stream.log.contract import Log, Message
from stream.log.errors import BadRecord
from stream.processing.heartbeat import is_heartbeat
from stream.schema.control import Control
from stream.schema.records import Features, Record, Score, kind_of, read
from stream.schema.runs import RunNames
from stream.schema.topics import RETRIES, SCORES
from stream.text.wording import counted


class _Results(NamedTuple):
    """The output of a group: its topic, its records, and their field with the id of the input record."""

    topic: str
    kind: type[Record]
    field: str


def repair_groups(log: Log) -> Iterator[str]:
    """Set the offsets of the groups that lost them; yields a line for each. Raises StreamError while one has members.

    A group whose store is empty gets the first retained offsets, from which it builds its store again.
    """
    names = names_of_live(Control(log))
    for lost in list(find_rereading_groups(log)):
        if not lost.records:
            for topic in lost.inputs:
                log.reset(lost.group, topic, log.beginning(topic))
            yield f"{lost.group}: it reads {' and '.join(lost.inputs)} from the beginning, to build its store"
        for topic in lost.records if lost.duplicates else ():
            offsets = _processed(log, names, lost.group, topic)
            log.reset(lost.group, topic, offsets)
            yield f"{lost.group}: {counted(between(offsets, log.end(topic)), 'offset')} of {topic} left to read"


def _processed(log: Log, names: RunNames, group: str, topic: str) -> list[int]:
    """The next offset to read of each partition."""
    if topic == RETRIES:
        return log.end(RETRIES)
    results = _results_of(names, group)
    committed, ends = log.committed(group, topic), log.end(topic)
    return [
        done if done is not None and done <= end else _after_last(log, results, topic, partition)
        for partition, (done, end) in enumerate(zip(committed, ends, strict=True))
    ]


def _results_of(names: RunNames, group: str) -> _Results:
    return {
        names.measure_group: _Results(names.features, Features, "id"),
        names.judge_group: _Results(names.verdicts, JudgedPage, "id"),
        "score": _Results(SCORES, Score, "fetch_id"),
    }[group]


def _after_last(log: Log, results: _Results, topic: str, partition: int) -> int:
    made = {getattr(record, results.field) for _, record in _records(results.kind, log.read(results.topic, partition))}
    kind = kind_of(topic) or Features
    first = log.beginning(topic)[partition]
    done = (offset for offset, record in _records(kind, log.read(topic, partition)) if record.id in made)
    return max(done, default=first - 1) + 1


def _records(kind: type[Record], messages: Iterable[Message]) -> Iterable[tuple[int, Record]]:
    for message in messages:
        if message.value is None or is_heartbeat(message):
            continue
        try:
            yield message.offset, read(kind, message)
        except BadRecord:
            continue
