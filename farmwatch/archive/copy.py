"""Copies a log into an empty one of either kind: records, the offsets of its groups, and keyed state.

Records keep key, value, headers, timestamp, partition and order. Their offsets change, so the offsets of groups, runs
and dead letters are translated. If retention has removed records, the copy begins with a removed record too, so that
readers get a report of the gap.

The topic UNFINISHED exists until all is done, and nothing opens such a log. An interrupted copy starts again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from farmwatch.archive.offset_map import OffsetMap
from stream.log.contract import At, CleanupPolicy, Log, Message, Output, Topic, check_idle
from stream.log.errors import StreamError
from stream.schema.control import Control
from stream.schema.topics import CONTROL, DEAD_LETTERS, UNFINISHED, all_topics
from stream.text.user_errors import NotFound, RunRefused

Advance = Callable[[int], None]
_BATCH_RECORDS, _BATCH_BYTES = 1000, 4 * 1024 * 1024  # per transaction
_STATE = "state."
_NAMING_OFFSETS = (CONTROL, DEAD_LETTERS)  # copied last, because their records have offsets of others
_FAMILIES = frozenset(topic.name.partition(".")[0] for topic in all_topics(1, ""))


@dataclass(slots=True)
class Copied:
    """Counts of a copy. Damaged records are left out."""

    records: int = 0
    damaged: int = 0
    state: int = 0


def records_in(log: Log) -> int:
    """Offsets in farmwatch's topics of a log."""
    return sum(sum(log.end(topic)) - sum(log.beginning(topic)) for topic in _topics_of(log))


def copy_log(source: Log, target: Log, advance: Advance = lambda _: None) -> Copied:
    """Copy all of `source`. `advance` gets the number of records copied since.

    Raises NotFound without a log to copy; RunRefused if `target` is used; StreamError if stages work on `source`, or if
    it changes meanwhile.
    """
    topics = _topics_of(source)
    if not topics:
        raise NotFound("there is no log to copy")
    if UNFINISHED in source.topics():
        raise StreamError("the log to copy is an unfinished copy itself: copy from where it came")
    ends = {topic: source.end(topic) for topic in topics}
    Control(source)  # raises if the runs cannot be read
    positions = [
        (group, topic, committed)
        for group in source.groups()
        for topic in topics
        if set(committed := source.committed(group, topic)) != {None}
    ]
    groups = list(dict.fromkeys(group for group, _, _ in positions))
    _require_idle(source, groups)
    _make_empty(target, groups)
    target.create([_rules_of(topic, partitions) for topic, partitions in topics.items()])
    offsets = OffsetMap()
    for _, topic, committed in positions:
        offsets.note(topic, committed)
    for topic in (topic for topic in _NAMING_OFFSETS if topic in topics):
        for message in _records(source, topic, ends[topic]):
            if not message.damage:
                offsets.note_message(message)
    copied = Copied()
    begins = {}
    for topic in sorted(topics, key=lambda topic: (topic in _NAMING_OFFSETS, topic)):
        if topic.startswith(_STATE):
            copied.state += _copy_state(source, target, topic.removeprefix(_STATE), topics[topic])
        else:
            begins[topic] = _copy_topic(source, target, topic, ends[topic], offsets, copied, advance)
    for group, topic, committed in positions:
        target.reset(group, topic, offsets.offsets(topic, committed))
    for topic, below in begins.items():  # last: a broker sets no offset below its first record
        if any(below):
            target.truncate(topic, below)
    _require_idle(source, groups)
    if any(source.end(topic) != end for topic, end in ends.items()):
        raise StreamError("the log grew while it was copied: stop everything that writes to it, and copy it again")
    target.remove([UNFINISHED])
    return copied


def _topics_of(log: Log) -> Mapping[str, int]:
    """farmwatch's topics; if log.prefix is empty, a broker may have others."""
    return {name: count for name, count in sorted(log.topics().items()) if name.partition(".")[0] in _FAMILIES}


def _rules_of(topic: str, partitions: int) -> Topic:
    """The definition of a topic; those of runs are like those of the live run."""
    if topic.startswith(_STATE):
        return Topic(topic, partitions, CleanupPolicy.COMPACT)
    rules = {rule.name: rule for rule in all_topics(partitions, "")}  # a limit by size is that of all partitions
    return replace(rules.get(topic) or rules[topic.partition(".")[0]], name=topic, partitions=partitions)


def _require_idle(log: Log, groups: Iterable[str]) -> None:
    for group in groups:
        check_idle(group, log.members(group), "the log is copied")


def _make_empty(target: Log, groups: Iterable[str]) -> None:
    """Mark the target, and remove the rest of an interrupted copy. Raises RunRefused for any other log."""
    there = _topics_of(target)
    if UNFINISHED in target.topics():
        stores = [topic.removeprefix(_STATE) for topic in there if topic.startswith(_STATE)]
        known = set(target.groups())
        target.remove(list(there), [group for group in groups if group in known], stores)
    elif there:
        raise RunRefused(
            f"the target holds topics of farmwatch ({next(iter(there))}, …): copy into an empty log, or on Kafka under"
            " another prefix, such as --to-prefix copy."
        )
    else:
        target.create([Topic(UNFINISHED, 1)])


def _records(log: Log, topic: str, ends: list[int]) -> Iterable[Message]:
    return log.read_all({At(topic, partition): (0, end) for partition, end in enumerate(ends)})


def _copy_topic(
    source: Log, target: Log, topic: str, ends: list[int], offsets: OffsetMap, copied: Copied, advance: Advance
) -> list[int]:
    """Copy the records; returns the offsets of the copy below which nothing was copied, for `Log.truncate`."""
    first = source.beginning(topic)
    if any(first) and _rules_of(topic, 1).cleanup is CleanupPolicy.DELETE:
        target.append([Output(topic, partition, b"", b"") for partition, offset in enumerate(first) if offset])
    begins = target.end(topic)
    batch: list[Message] = []
    size = 0
    for message in _records(source, topic, ends):
        advance(1)
        if message.damage:
            copied.damaged += 1
            continue
        batch.append(offsets.message(message))
        size += len(message.value or b"")
        if len(batch) >= _BATCH_RECORDS or size >= _BATCH_BYTES:
            copied.records += _append(target, batch, offsets)
            batch, size = [], 0
    copied.records += _append(target, batch, offsets)
    for partition, end in enumerate(target.end(topic)):
        offsets.end(At(topic, partition), first[partition], end)
    return begins


def _append(target: Log, batch: list[Message], offsets: OffsetMap) -> int:
    placed: dict[At, tuple[list[int], list[int]]] = {}
    outputs = [Output(m.topic, m.partition, m.key, m.value, m.headers, m.timestamp_ms) for m in batch]
    for message, offset in zip(batch, target.append(outputs), strict=True):
        here, there = placed.setdefault(At(message.topic, message.partition), ([], []))
        here.append(message.offset)
        there.append(offset)
    for at, (here, there) in placed.items():
        offsets.add(at, here, there)
    return len(batch)


def _copy_state(source: Log, target: Log, store: str, partitions: int) -> int:
    entries_copied = 0
    for partition in range(partitions):
        entries = source.dump_state(store, partition)
        while page := list(islice(entries, _BATCH_RECORDS)):
            target.load_state(store, partition, page)
            entries_copied += len(page)
    return entries_copied
