"""The records of a topic, partition by partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from stream.log.contract import At, Log
from stream.processing.topic_reader import records_of
from stream.schema.records import R


class _Fetch(Protocol):
    @property
    def site(self) -> str: ...
    @property
    def page_id(self) -> str: ...
    @property
    def fetched_at(self) -> int: ...


F = TypeVar("F", bound=_Fetch)


def newest_fetches(fetches: Iterable[F]) -> list[F]:
    """The newest fetch of each page, of several at one time the last."""
    newest: dict[tuple[str, str], F] = {}
    for fetch in fetches:
        known = newest.get(key := (fetch.site, fetch.page_id))
        if known is None or known.fetched_at <= fetch.fetched_at:
            newest[key] = fetch
    return list(newest.values())


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
