"""Parts of the contract that forward to another log or member: a wrapper overrides what it changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

from stream.log.contract import (
    NONE_NEEDED,
    At,
    Commit,
    Erased,
    Log,
    Member,
    Message,
    Output,
    StateChange,
    StateReader,
    Topic,
    TopicSize,
)


class ForwardingMember:
    """A `Member` that does what `_member` does."""

    def __init__(self, member: Member) -> None:
        self._member = member

    def poll(self, timeout_s: float, max_records: int, max_bytes: int) -> list[Message]:
        return self._member.poll(timeout_s, max_records, max_bytes)

    def assignment(self) -> Mapping[int, int]:
        return self._member.assignment()

    def state(self, partition: int) -> StateReader:
        return self._member.state(partition)

    def commit(self, commit: Commit) -> None:
        self._member.commit(commit)

    def rewind(self) -> None:
        self._member.rewind()

    def pause(self, partitions: Iterable[int] | None = None) -> None:
        self._member.pause(partitions)

    def resume(self) -> None:
        self._member.resume()

    def lag(self) -> Mapping[At, int]:
        return self._member.lag()

    def close(self) -> None:
        self._member.close()


class ForwardingLog:
    """A `Log` that does what `_log` does."""

    def __init__(self, log: Log) -> None:
        self._log = log

    @property
    def forgets_offsets(self) -> bool:
        return self._log.forgets_offsets

    def create(self, topics: Sequence[Topic]) -> None:
        self._log.create(topics)

    def definitions(self) -> Mapping[str, Topic]:
        return self._log.definitions()

    def set_limits(self, topics: Sequence[Topic]) -> None:
        self._log.set_limits(topics)

    def topics(self) -> Mapping[str, int]:
        return self._log.topics()

    def append(self, outputs: Sequence[Output]) -> list[int]:
        return self._log.append(outputs)

    def join(
        self,
        group: str,
        topics: Sequence[str],
        *,
        member: str,
        store: str | None = None,
        background: Collection[str] = (),
    ) -> Member:
        return self._log.join(group, topics, member=member, store=store, background=background)

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        return self._log.read(topic, partition, start, stop)

    def read_all(self, ranges: Mapping[At, tuple[int, int]]) -> Iterator[Message]:
        return self._log.read_all(ranges)

    def beginning(self, topic: str) -> list[int]:
        return self._log.beginning(topic)

    def end(self, topic: str) -> list[int]:
        return self._log.end(topic)

    def in_flight(self, topic: str) -> list[bool]:
        return self._log.in_flight(topic)

    def offset_at(self, topic: str, time_ms: int) -> list[int]:
        return self._log.offset_at(topic, time_ms)

    def committed(self, group: str, topic: str) -> list[int | None]:
        return self._log.committed(group, topic)

    def reset(self, group: str, topic: str, offsets: Sequence[int]) -> None:
        self._log.reset(group, topic, offsets)

    def members(self, group: str) -> list[str]:
        return self._log.members(group)

    def groups(self) -> list[str]:
        return self._log.groups()

    def scan_state(self, store: str, partition: int) -> Iterator[tuple[bytes, bytes]]:
        return self._log.scan_state(store, partition)

    def state_values(self, store: str, partitions: int, key: bytes) -> list[bytes]:
        return self._log.state_values(store, partitions, key)

    def dump_state(self, store: str, partition: int) -> Iterator[StateChange]:
        return self._log.dump_state(store, partition)

    def load_state(self, store: str, partition: int, changes: Sequence[StateChange]) -> None:
        self._log.load_state(store, partition, changes)

    def read_state(self, store: str, partition: int) -> AbstractContextManager[StateReader]:
        return self._log.read_state(store, partition)

    def sizes(self, topics: Sequence[str]) -> dict[str, TopicSize]:
        return self._log.sizes(topics)

    def expire(self, now_ms: int, needed: Mapping[str, Sequence[int]] = NONE_NEEDED, most: float = 1.0) -> int:
        return self._log.expire(now_ms, needed, most)

    def erase(self, sites: Collection[str], rows: Collection[bytes] = ()) -> Erased:
        return self._log.erase(sites, rows)

    def truncate(self, topic: str, offsets: Sequence[int]) -> None:
        self._log.truncate(topic, offsets)

    def remove(self, topics: Sequence[str] = (), groups: Sequence[str] = (), stores: Sequence[str] = ()) -> int:
        return self._log.remove(topics, groups, stores)

    def close(self) -> None:
        self._log.close()


def innermost(log: Log) -> Log:
    """The log below its wrappers, for what only one kind of log can do."""
    while isinstance(log, ForwardingLog):
        log = log._log
    return log
