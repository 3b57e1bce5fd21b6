"""Positions and lag of groups: sums and comparisons of committed offsets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from stream.log.contract import At, Log, Message
from stream.processing.heartbeat import is_heartbeat

Stops = Mapping[str, Sequence[int]]  # topic -> offsets per partition
NO_STOPS: Stops = {}
_STEPS = (1, 16, 256)  # offsets searched first, before the rest: markers and compaction leave gaps


def processed_by(log: Log, group: str, topic: str) -> list[int]:
    """The next offset of a group in each partition; expired records count as processed."""
    pairs = zip(log.beginning(topic), log.committed(group, topic), strict=True)
    return [max(first, done or 0) for first, done in pairs]


def is_at_stops(log: Log, group: str, stops: Stops) -> bool:
    """Whether a group has reached its stops, through any of its members. Raises as `Log.committed`."""
    return all(
        done >= stop
        for topic, ends in stops.items()
        for done, stop in zip(processed_by(log, group, topic), ends, strict=True)
    )


def unread_of(log: Log, group: str, topic: str) -> dict[At, tuple[int, int]]:
    """The unprocessed offsets (start, end) of a group, for each partition that has some."""
    spans = zip(processed_by(log, group, topic), log.end(topic), strict=True)
    return {At(topic, partition): span for partition, span in enumerate(spans) if span[0] < span[1]}


def lag_on(log: Log, group: str, topic: str) -> int:
    """Unprocessed records of a group on a topic; on Kafka, transaction markers count too."""
    return between(processed_by(log, group, topic), log.end(topic))


def between(start: Iterable[int], stop: Iterable[int]) -> int:
    """Number of offsets from start to stop, over all partitions."""
    return sum(max(0, last - first) for first, last in zip(start, stop, strict=True))


def is_record(message: Message) -> bool:
    """Whether a stage has to process the message: it is neither a heartbeat nor a tombstone."""
    return message.value is not None and not is_heartbeat(message)


def first_record(
    log: Log,
    topic: str,
    partition: int,
    start: int,
    stop: int,
    is_match: Callable[[Message], bool] = is_record,
) -> Message | None:
    """The first record in [start, stop) that matches `is_match`; the default skips heartbeats and tombstones."""
    for step in (*_STEPS, stop - start):
        found = next(filter(is_match, log.read(topic, partition, start, min(start + step, stop))), None)
        if found is not None or start + step >= stop:
            return found
    return None


def last_record(log: Log, topic: str, partition: int, start: int, stop: int) -> Message | None:
    """The last record in [start, stop); searches only the last few hundred offsets."""
    for step in _STEPS:
        found = deque(filter(is_record, log.read(topic, partition, max(start, stop - step), stop)), maxlen=1)
        if found or stop - step <= start:
            return found[0] if found else None
    return None
