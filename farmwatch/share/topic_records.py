"""The records of a topic, partition by partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stream.log.contract import At, Log
from stream.processing.topic_reader import records_of
from stream.schema.records import R


def topic_records(
    log: Log, kind: type[R], topic: str, partitions: Iterable[int] | None = None, since_ms: int = 0
) -> Iterator[R]:
    """The records that the topic has now, of all partitions or of these; none if it does not exist yet.

    Records from before `since_ms` are mostly skipped.
    """
    if topic not in log.topics():
        return
    starts = log.offset_at(topic, since_ms) if since_ms else log.beginning(topic)
    spans = list(zip(starts, log.end(topic), strict=True))
    for partition in range(len(spans)) if partitions is None else partitions:
        first, end = spans[partition]
        if first < end:
            for _, record in records_of(kind, log.read_all({At(topic, partition): (first, end)})):
                yield record
