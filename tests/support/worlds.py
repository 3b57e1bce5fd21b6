"""A log under test, of any kind, with the operations that the contract suite needs."""

from __future__ import annotations

import itertools
import tempfile
import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stream.embedded.log import EmbeddedLog
from stream.kafka.settings import KafkaSettings
from stream.log.contract import CleanupPolicy, Log, Member, Message, Output, Topic
from tests.support.limits import with_limits
from tests.support.sizes import LONG
from tests.support.waiting import wait_until

LEASE_MS = 60_000  # of the logs with a clock under the test's control
MEMORY_DISK = "/dev/shm" if Path("/dev/shm").is_dir() else None
NOON = 1_700_000_000_000

on_embedded = pytest.mark.parametrize("world", ["embedded"], indirect=True)  # a broker does it in its own time


class TestClock:
    """A clock in milliseconds that moves only when it is set."""

    __test__ = False

    def __init__(self, now_ms: int = NOON) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms

    def turn(self, ms: int) -> None:
        self.now_ms += ms


class World:
    """A log under test. `log` is one process's view; `again()` opens that of another process."""

    embedded = True  # leases, timestamps and expire() follow `clock`; Kafka's broker has its own clock
    examples = 100 if LONG else 12  # of the state machine

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = TestClock()
        self.opened: list[Any] = []
        self.members: list[Any] = []
        self.log: Log = self.again()

    def again(self) -> Log:
        """Open the log as another process would, without local files."""
        opened = self._open()
        self.opened.append(opened)
        return opened

    def topics(
        self,
        *names: str,
        partitions: int = 2,
        cleanup: CleanupPolicy = CleanupPolicy.DELETE,
        store: str | None = None,
        **keeping: int,
    ) -> None:
        made = [Topic(name, partitions, cleanup, **keeping) for name in names]
        if store is not None:
            made.append(Topic(f"state.{store}", partitions, CleanupPolicy.COMPACT))
        self.log.create(made)

    def join(
        self,
        *topics: str,
        name: str = "m",
        group: str = "g",
        store: str | None = None,
        log: Any = None,
        background: Sequence[str] = (),
    ) -> Member:
        member: Member = (log or self.log).join(group, topics, member=name, store=store, background=background)
        self.members.append(member)
        return member

    def owner(self, partitions: int, *topics: str, **options: Any) -> Member:
        """Join, and poll until all partitions are owned."""
        member = self.join(*topics, **options)
        settle([member], partitions)
        return member

    def lose(self, topic: str, offsets: Sequence[int]) -> None:
        """Remove the records below these offsets (one per partition) of a topic with `retention_ms=1`."""
        self.log.expire(NOON * 2, {topic: offsets})

    def close(self) -> None:
        """Close members and logs, even fenced and closed ones."""
        for member in self.members:
            member.close()
        for log in self.opened:
            log.close()

    def _open(self) -> Log:
        raise NotImplementedError


class EmbeddedWorld(World):
    """The embedded log in a folder, in /dev/shm if possible: visibility does not depend on the disk."""

    def __init__(self, folder: Path) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="farmwatch-", dir=MEMORY_DISK)
        super().__init__(folder)

    def close(self) -> None:
        super().close()
        self._place.cleanup()

    def _open(self) -> Log:
        return EmbeddedLog(Path(self._place.name) / "log", clock=self.clock, lease_ms=LEASE_MS)


class KafkaWorld(World):
    """The Kafka log on a real broker, under its own prefix."""

    embedded = False
    examples = 3

    def __init__(self, folder: Path, settings: KafkaSettings | None = None) -> None:
        self.prefix = f"t{uuid.uuid4().hex[:12]}."
        # a short heartbeat: by it a member learns that another one joins or leaves
        self._settings = settings or with_limits(KafkaSettings(), heartbeat_s=0.1)
        self._states = (folder / f"state-{number}" for number in itertools.count())
        super().__init__(folder)

    def topics(self, *names: str, **options: Any) -> None:
        """Without the shortest retention, which the broker would apply in the middle of a test; `lose` needs none."""
        if options.get("retention_ms") == 1:
            del options["retention_ms"]
        super().topics(*names, **options)

    def lose(self, topic: str, offsets: Sequence[int]) -> None:
        from kafka import KafkaAdminClient, TopicPartition

        from tests.support.kafka_broker import broker

        client = KafkaAdminClient(bootstrap_servers=broker())
        client.delete_records({TopicPartition(self.prefix + topic, p): offset for p, offset in enumerate(offsets)})
        client.close()

    def _open(self) -> Log:
        from stream.kafka.log import KafkaLog
        from tests.support.kafka_broker import broker

        return KafkaLog(broker(), prefix=self.prefix, state_folder=next(self._states), settings=self._settings)


KINDS: dict[str, type[World]] = {"embedded": EmbeddedWorld, "kafka": KafkaWorld}


def gather(
    poll: Callable[[], Iterable[Message]], until: Callable[[Sequence[Message]], bool], what: str
) -> list[Message]:
    """Collect records of `poll` until there are enough."""
    found: list[Message] = []

    def enough() -> bool:
        found.extend(poll())
        return until(found)

    wait_until(enough, what, every_s=0.0)
    return found


def drain(member: Member, count: int, max_records: int = 100, max_bytes: int = 1 << 24) -> list[Message]:
    """Poll until `count` records came, and once more to see that there are no others."""
    poll = partial(member.poll, 0.2, max_records, max_bytes)
    found = gather(poll, lambda found: len(found) >= count, f"{count} records")
    found.extend(member.poll(0.05, max_records, max_bytes))
    assert len(found) == count, [(m.topic, m.partition, m.offset) for m in found]
    return found


def turn_over(members: Iterable[Member]) -> None:
    """Let members see changes of their group, without reading records."""
    for member in members:
        member.pause()
        member.poll(0.02, 1, 1)
        member.resume()


def settle(members: Sequence[Member], partitions: int) -> None:
    """Poll until the members own all partitions, each one once, in fair shares."""

    def settled() -> bool:
        turn_over(members)
        owned = [set(member.assignment()) for member in members]
        sizes = [len(share) for share in owned]
        return sum(sizes) == partitions == len(set().union(*owned)) and max(sizes) - min(sizes) <= 1

    wait_until(settled, f"{len(members)} members to share {partitions} partitions")


def record(topic: str, partition: int, key: str, value: str | bytes | None = "v", **more: Any) -> Output:
    """An output with text instead of bytes."""
    data = value.encode() if isinstance(value, str) else value
    return Output(topic, partition, key.encode(), data, **more)


def values(messages: Iterable[Message]) -> list[str]:
    """The values as text, tombstones as a dash."""
    return ["-" if m.value is None else m.value.decode() for m in messages]
