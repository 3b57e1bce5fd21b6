"""The records of a topic, partition by partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from stream.log.contract import At, Log
from stream.processing.topic_reader import records_of, rows_of
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


class NewestRecords(Generic[R]):
    """The newest record of each site of a topic, for a process that looks again and again: it reads what is new."""

    def __init__(self, log: Log, kind: type[R], topic: str) -> None:
        self._log, self._kind, self._topic = log, kind, topic
        self._ends: list[int] = []
        self._newest: dict[str, R] = {}

    def refresh(self) -> Mapping[str, R]:
        """Site -> its record. Raises as `Log.read_all`."""
        if self._topic not in self._log.topics():
            return self._newest
        ends = self._log.end(self._topic)
        spans = enumerate(zip(self._ends or self._log.beginning(self._topic), ends, strict=True))
        unread = {At(self._topic, partition): span for partition, span in spans if span[0] < span[1]}
        for message, record in rows_of(self._kind, self._log.read_all(unread) if unread else ()):
            site = message.key.decode(errors="replace")
            if record is None:
                self._newest.pop(site, None)
            else:
                self._newest[site] = record
        self._ends = ends
        return self._newest
