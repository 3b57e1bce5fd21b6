"""A member of a consumer group on the in-memory log."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from stream.log.contract import At, Commit, Message, StateReader
from stream.log.errors import Fenced, StreamError, UnknownTopic
from stream.log.pauses import Pauses
from stream.log.shares import fair_part
from stream.log.unread import expired, log_beyond_end, next_offset

if TYPE_CHECKING:
    from stream.memory.storage import Membership, MemoryStorage
    from stream.memory.topic import MemoryPartition

_LOOK_S = 0.02  # a waiting poll looks this often at the clock, which tests may turn


class MemoryMember:
    """See `Member`."""

    def __init__(
        self,
        log: MemoryStorage,
        group: str,
        membership: Membership,
        topics: Mapping[str, int],
        store: str | None,
        background: Collection[str],
    ) -> None:
        self._log = log
        self._group = group
        self._membership = membership
        self._topics = topics
        self._made = {topic: log.partitions(topic) for topic in topics}
        self._store = store
        self._background = background
        self._partitions = max(topics.values())
        self._leases: dict[int, int] = {}
        self._positions: dict[At, int] = {}
        self._pauses = Pauses()
        self._turn = 0
        self._closed = False

    def poll(self, timeout_s: float, max_records: int, max_bytes: int) -> list[Message]:
        deadline = time.monotonic() + timeout_s
        with self._log.changed:
            while True:
                self._step()
                messages = self._fetch(max_records, max_bytes)
                left = deadline - time.monotonic()
                if messages or left <= 0:
                    return messages
                self._log.changed.wait(min(left, _LOOK_S))

    def assignment(self) -> Mapping[int, int]:
        return dict(self._leases)

    def state(self, partition: int) -> StateReader:
        if self._store is None:
            raise StreamError(f"group {self._group!r} was joined without a store")
        if partition not in self._leases:
            raise self._not_owned(partition)
        with self._log.changed:
            return self._log.state(self._store, partition)

    def commit(self, commit: Commit) -> None:
        if not (commit.outputs or commit.offsets or commit.state):
            return
        if commit.state and self._store is None:
            raise StreamError(f"group {self._group!r} was joined without a store")
        with self._log.changed:
            group = self._log.group(self._group)
            if group.members.get(self._name) is not self._membership:
                raise Fenced(f"member {self._name!r} of group {self._group!r} was replaced or its lease expired")
            for partition in {at.partition for at in commit.offsets} | set(commit.state):
                if partition not in self._leases or group.leases.get(partition) != (
                    self._name,
                    self._leases[partition],
                ):
                    raise self._not_owned(partition)
            for at in commit.offsets:
                self._partition(at)
            self._log.check_outputs(commit.outputs)
            self._membership.expires_at = self._log.clock() + self._log.lease_ms
            for partition, changes in commit.state.items():
                self._log.state(self._store or "", partition).apply(changes)
            group.offsets.update(commit.offsets)
            self._log.add(commit.outputs)

    def rewind(self) -> None:
        self._positions.clear()

    def pause(self, partitions: Iterable[int] | None = None) -> None:
        self._pauses.add(partitions)

    def resume(self) -> None:
        self._pauses.clear()

    def lag(self) -> Mapping[At, int]:
        with self._log.changed:
            offsets = self._log.group(self._group).offsets
            found = {at: self._partition(at) for at in self._owned()}
            begun = {at: next_offset(offsets.get(at), part.end) for at, part in found.items()}
            return {at: part.end - max(part.first, begun[at]) for at, part in found.items()}

    def close(self) -> None:
        self._closed = True
        self._leases = {}
        with self._log.changed:
            group = self._log.group(self._group)
            if group.members.get(self._name) is self._membership:
                group.remove(self._name)
                self._log.changed.notify_all()

    @property
    def _name(self) -> str:
        return self._membership.name

    def _not_owned(self, partition: int) -> Fenced:
        return Fenced(f"member {self._name!r} of group {self._group!r} does not own partition {partition}")

    def _step(self) -> None:
        if self._closed:
            raise StreamError(f"member {self._name!r} of group {self._group!r} is closed")
        try:
            leases = self._log.take_step(self._group, self._membership, self._partitions)
        except Fenced:
            self._leases = {}
            raise
        for at in list(self._positions):
            if leases.get(at.partition) != self._leases.get(at.partition):
                del self._positions[at]
        self._leases = leases

    def _partition(self, at: At) -> MemoryPartition:
        """Raises UnknownTopic, also where the topic was removed and made again."""
        if self._made.get(at.topic) is not self._log.partitions(at.topic):
            raise UnknownTopic(f"topic {at.topic!r} was removed, or is none of group {self._group!r}: join again")
        return self._log.partition(at)

    def _owned(self) -> list[At]:
        return [At(topic, p) for p in self._leases for topic, partitions in self._topics.items() if p < partitions]

    def _fetch(self, max_records: int, max_bytes: int) -> list[Message]:
        """A fair part of each partition that has records, beginning with another one in each poll."""
        committed = self._log.group(self._group).offsets
        flowing = self._pauses.flowing(self._leases)
        ready = []
        for at in self._owned():
            first, end = self._partition(at).first, self._partition(at).end
            if at not in self._positions:
                self._positions[at] = next_offset(committed.get(at), end, first)
                if committed.get(at, 0) > end:
                    log_beyond_end(at, committed[at], end, self._group)
            if self._positions[at] < end and at.partition in flowing:
                ready.append(at)
        ready = [at for at in ready if at.topic not in self._background] or ready
        self._turn += 1
        shift = self._turn % len(ready) if ready else 0
        taken: list[Message] = []
        bytes_left = max_bytes
        for place, at in enumerate(ready[shift:] + ready[:shift]):
            records_left = max_records - len(taken)
            if taken and (records_left <= 0 or bytes_left <= 0):
                break
            turns = len(ready) - place
            bytes_left -= self._take(
                at, fair_part(records_left, turns), fair_part(max(1, bytes_left), turns), bytes_left, taken
            )
        return taken

    def _take(self, at: At, max_records: int, max_bytes: int, bytes_left: int, taken: list[Message]) -> int:
        """Move records of one partition to `taken`; returns their bytes."""
        partition = self._partition(at)
        first, position = partition.first, self._positions[at]
        if position < first and self._log.expires(at.topic):
            taken.append(expired(at, position, first, self._group, self._log.clock()))
            self._positions[at] = first
            return 0
        records = partition.range(self._positions[at], partition.end, max_records)
        if not records:
            self._positions[at] = partition.end
        used = 0
        for record in records:
            size = len(record.value or b"")
            room = bytes_left if used == 0 else max_bytes  # the first record of a turn may use up the turns to come
            if taken and used + size > room:
                break
            taken.append(record)
            used += size
            self._positions[at] = record.offset + 1
        return used
