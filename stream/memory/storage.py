"""What a log in memory holds, and all that needs no member of a group."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import ClassVar

from stream.log.clock import Clock, wall_ms
from stream.log.contract import NONE_NEEDED, At, CleanupPolicy, Message, Output, Topic, TopicSize
from stream.log.errors import Fenced, UnknownTopic
from stream.log.limits import check_idle, check_needed, check_offsets, check_partitions, check_size, too_much_expired
from stream.log.shares import next_step
from stream.memory.state import MemoryState
from stream.memory.topic import MemoryPartition


@dataclass
class Membership:
    """A member as its group knows it. Compare the object, not its name: a name may join again."""

    name: str
    expires_at: int


@dataclass
class ConsumerGroup:
    """Members by name, owners of partitions with their epochs, committed offsets."""

    members: dict[str, Membership] = field(default_factory=dict)
    leases: dict[int, tuple[str, int]] = field(default_factory=dict)
    offsets: dict[At, int] = field(default_factory=dict)
    epoch: int = 0

    def grant(self, partition: int, name: str) -> None:
        """Give a partition to a member under a new epoch."""
        self.epoch += 1
        self.leases[partition] = (name, self.epoch)

    def remove(self, name: str) -> None:
        """Take a member and its leases out."""
        self.members.pop(name, None)
        self.leases = {p: lease for p, lease in self.leases.items() if lease[0] != name}


class MemoryStorage:
    """Topics, groups and states of a log in memory: all of `Log` but `join`."""

    forgets_offsets: ClassVar[bool] = False

    def __init__(self, *, clock: Clock = wall_ms, lease_ms: int = 10_000) -> None:
        self.clock = clock
        self.lease_ms = lease_ms
        self.changed = threading.Condition(threading.RLock())  # guards everything; notified of each commit
        self._topics: dict[str, tuple[Topic, list[MemoryPartition]]] = {}
        self.groups: dict[str, ConsumerGroup] = {}
        self._states: dict[tuple[str, int], MemoryState] = {}

    def create(self, topics: Sequence[Topic]) -> None:
        with self.changed:
            for topic in topics:
                if topic.name in self._topics:
                    check_partitions(topic, len(self._topics[topic.name][1]))
            for topic in topics:
                made = self._topics[topic.name][1] if topic.name in self._topics else None
                self._topics[topic.name] = (topic, made or [MemoryPartition() for _ in range(topic.partitions)])

    def topics(self) -> Mapping[str, int]:
        with self.changed:
            return {name: len(partitions) for name, (_, partitions) in self._topics.items()}

    def append(self, outputs: Sequence[Output]) -> None:
        with self.changed:
            self.check_outputs(outputs)
            self.add(outputs)

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        with self.changed:
            found = self.partition(At(topic, partition))
            return iter(found.range(start, found.end if stop is None else stop))

    def read_all(self, ranges: Mapping[At, tuple[int, int]]) -> Iterator[Message]:
        return chain.from_iterable([self.read(*at, start, stop) for at, (start, stop) in ranges.items()])

    def beginning(self, topic: str) -> list[int]:
        with self.changed:
            return [partition.first for partition in self.partitions(topic)]

    def end(self, topic: str) -> list[int]:
        with self.changed:
            return [partition.end for partition in self.partitions(topic)]

    def offset_at(self, topic: str, time_ms: int) -> list[int]:
        with self.changed:
            return [partition.offset_at(time_ms) for partition in self.partitions(topic)]

    def committed(self, group: str, topic: str) -> list[int | None]:
        with self.changed:
            offsets = self.groups[group].offsets if group in self.groups else {}
            return [offsets.get(At(topic, partition)) for partition in range(len(self.partitions(topic)))]

    def reset(self, group: str, topic: str, offsets: Sequence[int]) -> None:
        with self.changed:
            check_offsets(topic, offsets, len(self.partitions(topic)))
            check_idle(group, self.members(group), "its offsets are reset")
            found = self.groups.setdefault(group, ConsumerGroup())
            found.offsets.update({At(topic, partition): offset for partition, offset in enumerate(offsets)})

    def members(self, group: str) -> list[str]:
        with self.changed:
            if group not in self.groups:
                return []
            self._remove_expired(self.groups[group])
            return sorted(self.groups[group].members)

    def scan_state(self, store: str, partition: int) -> Iterator[tuple[bytes, bytes]]:
        with self.changed:
            state = self.state(store, partition)
            return iter(state.scan(b"", sys.maxsize))

    @contextmanager
    def read_state(self, store: str, partition: int) -> Iterator[MemoryState]:
        """Committed state of a store as it stands now: a copy."""
        with self.changed:
            copied = self.state(store, partition).copy()
        yield copied

    def sizes(self, topics: Sequence[str]) -> dict[str, TopicSize]:
        with self.changed:
            return {topic: self._size(topic) for topic in topics if topic in self._topics}

    def expire(self, now_ms: int, needed: Mapping[str, Sequence[int]] = NONE_NEEDED, most: float = 1.0) -> int:
        with self.changed:
            check_needed(needed, self.topics())
            deleted = {name: found for name, found in self._topics.items() if found[0].kept is CleanupPolicy.DELETE}
            stops = {name: needed.get(name) or [p.end for p in found[1]] for name, found in deleted.items()}
            held: dict[str, tuple[int, int]] = {}
            for name, (topic, partitions) in deleted.items():
                places = zip(partitions, stops[name], strict=True)
                old = sum(partition.outlived(now_ms, topic.retention_ms, None, stop) for partition, stop in places)
                if old > (records := sum(partition.size.records for partition in partitions)) * most:
                    held[name] = (old, records)
            freed = 0
            for name, (topic, partitions) in self._topics.items():
                if topic.kept is CleanupPolicy.COMPACT:
                    freed += sum(partition.compact(now_ms) for partition in partitions)
                    continue
                for partition, stop in zip(partitions, stops[name], strict=True):
                    age_ms = None if name in held else topic.retention_ms
                    count = partition.outlived(now_ms, age_ms, topic.retention_bytes, stop)
                    freed += partition.shorten(count)
            if held:
                raise too_much_expired(held)
            return freed

    def remove(self, topics: Sequence[str] = (), groups: Sequence[str] = (), stores: Sequence[str] = ()) -> int:
        with self.changed:
            for group in groups:
                check_idle(group, self.members(group), "it is removed")
            names = {*topics, *(f"state.{store}" for store in stores)} & self._topics.keys()
            freed = sum(partition.size.bytes for name in names for partition in self._topics[name][1])
            for name in names:
                del self._topics[name]
            for known in self.groups.values():
                known.offsets = {at: offset for at, offset in known.offsets.items() if at.topic not in names}
            for group in groups:
                if group in self.groups:  # its epochs stay: none is given twice
                    self.groups[group].offsets.clear()
            for at in [at for at in self._states if at[0] in stores]:
                freed += self._states.pop(at).size.bytes
            self.changed.notify_all()
            return freed

    def close(self) -> None:
        """Nothing is held; the records stay, so that a test may look at them."""

    # What members use, with the lock held.

    def group(self, name: str) -> ConsumerGroup:
        """A group that was joined."""
        return self.groups[name]

    def partitions(self, topic: str) -> list[MemoryPartition]:
        """Raises UnknownTopic."""
        if topic not in self._topics:
            raise UnknownTopic(f"there is no topic {topic!r}: create it first")
        return self._topics[topic][1]

    def partition(self, at: At) -> MemoryPartition:
        """Raises UnknownTopic."""
        partitions = self.partitions(at.topic)
        if not 0 <= at.partition < len(partitions):
            raise UnknownTopic(
                f"topic {at.topic!r} has {len(partitions)} partitions, there is no partition {at.partition}"
            )
        return partitions[at.partition]

    def expires(self, topic: str) -> bool:
        """Whether retention removes records of a topic."""
        return self._topics[topic][0].kept is CleanupPolicy.DELETE

    def state(self, store: str, partition: int) -> MemoryState:
        """State of a partition, empty at first."""
        return self._states.setdefault((store, partition), MemoryState())

    def check_outputs(self, outputs: Sequence[Output]) -> None:
        """Raises UnknownTopic or RecordTooLarge."""
        for output in outputs:
            self.partition(At(output.topic, output.partition))
            check_size(output)

    def add(self, outputs: Sequence[Output]) -> None:
        """Append checked outputs, and wake those who wait."""
        now_ms = self.clock()
        for output in outputs:
            self.partition(At(output.topic, output.partition)).append(output, now_ms)
        self.changed.notify_all()

    def take_step(self, group: str, membership: Membership, partitions: int) -> dict[int, int]:
        """Renew a membership and take one step towards a fair share; returns partition -> epoch. Raises Fenced."""
        found = self.groups[group]
        current = found.members.setdefault(membership.name, membership)
        if current is not membership:
            raise Fenced(f"another member joined group {group!r} as {membership.name!r}: give each a name of its own")
        membership.expires_at = self.clock() + self.lease_ms
        self._remove_expired(found)
        owners = {partition: owner for partition, (owner, _) in found.leases.items()}
        step = next_step(membership.name, found.members, owners, partitions)
        for partition in step.give_up:
            del found.leases[partition]
        for partition in step.take:
            found.grant(partition, membership.name)
        return {p: epoch for p, (owner, epoch) in sorted(found.leases.items()) if owner == membership.name}

    def _size(self, topic: str) -> TopicSize:
        sizes = [partition.size for partition in self._topics[topic][1]]
        sizes += [state.size for (store, _), state in self._states.items() if f"state.{store}" == topic]
        return TopicSize(sum(size.records for size in sizes), sum(size.bytes for size in sizes))

    def _remove_expired(self, group: ConsumerGroup) -> None:
        now_ms = self.clock()
        for membership in list(group.members.values()):
            if not now_ms <= membership.expires_at <= now_ms + 2 * self.lease_ms:  # further ahead: by a wrong clock
                group.remove(membership.name)
