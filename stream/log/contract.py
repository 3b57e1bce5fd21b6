"""The Log contract: topics of partitions, consumer groups, and one atomic commit of outputs + state + offsets.

Two logs implement it: `EmbeddedLog` (one machine, no server) and `KafkaLog`. Stages do not depend on the choice.
The same test suite (tests/integration) runs against both.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import msgspec
import xxhash

from stream.log.errors import RecordTooLarge, StreamError, TopicMismatch

Clock = Callable[[], int]  # milliseconds since 1970 UTC; a parameter wherever time matters, so that tests can set it
Headers = Mapping[str, str]
NO_HEADERS: Headers = {}
NONE_REFUSED: Mapping[str, RecordTooLarge] = {}
RECORD_CAP_BYTES = 4 * 1024 * 1024  # spec: record <= 4 MiB


def partition_of(key: str | bytes, partitions: int) -> int:
    """Stable partition of a site: xxh3-64 modulo the number of partitions. The same in every log and process."""
    data = key.encode() if isinstance(key, str) else key
    return xxhash.xxh3_64_intdigest(data) % partitions


def wall_ms() -> int:
    """Milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


class CleanupPolicy(enum.Enum):
    """How retention treats the old records of a topic."""

    DELETE = "delete"  # after `retention_ms`, or beyond `retention_bytes` a partition
    COMPACT = "compact"  # the newest of each key stays; a None value (tombstone) removes the key


@dataclass(frozen=True, slots=True)
class Topic:
    """The definition of a topic. `name` is without the log's prefix."""

    name: str
    partitions: int
    cleanup: CleanupPolicy = CleanupPolicy.DELETE
    retention_ms: int | None = None  # None = for ever
    retention_bytes: int | None = None  # per partition; None = no cap


class At(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


class TopicSize(NamedTuple):
    """The size of a topic, all partitions together. For the changelog of a store: the size of the store."""

    records: int  # offsets from beginning to end, with those of compacted records and transaction markers
    bytes: int  # of one replica


NONE_NEEDED: Mapping[str, Sequence[int]] = {}


class Message(msgspec.Struct, frozen=True):
    """A record as read. `value` is None for a tombstone, and b"" for a damaged record, see `damage`.

    A message with `expired` > 0 is not a record: it stands for that many expired offsets, see `Member.poll`.
    """

    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes | None
    headers: Headers
    timestamp_ms: int
    damage: str = ""  # place and fault of corrupt stored bytes; "" = none
    expired: int = 0  # number of offsets up to this one that retention removed unread
    may_return: bool = False  # the file of a damaged record is missing and may be restored


class Output(msgspec.Struct, frozen=True):
    """A record to append. The partition is explicit: of the record's site, see `partition_of`."""

    topic: str
    partition: int
    key: bytes
    value: bytes | None
    headers: Headers = msgspec.field(default_factory=lambda: NO_HEADERS)
    timestamp_ms: int | None = None  # None = now, by the log's clock


class StateChange(msgspec.Struct, frozen=True):
    """One change of keyed state: value None deletes the key. `due_at` (ms) enters the due index; None leaves it out."""

    key: bytes
    value: bytes | None
    due_at: int | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """Changes that become visible together. `offsets`: the next to read; `state`: partition -> changes, in order."""

    outputs: Sequence[Output] = ()
    offsets: Mapping[At, int] = field(default_factory=dict)
    state: Mapping[int, Sequence[StateChange]] = field(default_factory=dict)


class Erased(NamedTuple):
    """The outcome of `Log.erase`."""

    records: int  # existing records
    gone_at_ms: int = 0  # when the last leaves; 0 = all have left; a compacted topic on Kafka has no date


class StateReader(Protocol):
    """Committed keyed state of one partition. Keys order as bytes."""

    def get(self, key: bytes) -> bytes | None:
        """The value of key, or None."""

    def scan(self, prefix: bytes, limit: int, after: bytes | None = None) -> list[tuple[bytes, bytes]]:
        """Up to `limit` (key, value) whose key starts with prefix, in key order, keys > `after` if given."""

    def due(self, now_ms: int, limit: int) -> list[tuple[bytes, bytes, int]]:
        """Up to `limit` (key, value, due_at) with due_at <= now_ms, oldest due first (ties by key); O(limit)."""

    def next_due(self) -> int | None:
        """The earliest due_at, or None; O(1)."""


class Member(Protocol):
    """One member of a consumer group, held by a stage's loop. Used from one thread only.

    Of a group's topics with the same number of partitions, a member owns partition p of all of them or of none.
    """

    def poll(self, timeout_s: float, max_records: int, max_bytes: int) -> list[Message]:
        """Next records of the owned, unpaused partitions; waits up to timeout_s for the first.

        May change the assignment. Records are ordered within (topic, partition). Positions advance in memory; `commit`
        makes them durable, `rewind` resets them. If records are available, at least one is returned, even above
        max_bytes; records of background topics only while no record of another topic waits for this member.
        A group begins at its committed offset, or at 0 without one; if the offset is beyond the end, at the first
        retained record. One message with `expired` replaces each span that retention removed unread, even beyond
        max_records; records removed by compaction are skipped.
        Raises LogUnavailable; Fenced while another process has this member's name.
        """

    def assignment(self) -> Mapping[int, int]:
        """Owned, restored partitions -> ownership epoch. After a change of the epoch, drop caches."""

    def state(self, partition: int) -> StateReader:
        """Committed state of an owned partition; the group joined with a store. Raises Fenced if not owned."""

    def commit(self, commit: Commit) -> None:
        """Make outputs, offsets and state visible together; durable on return.

        Raises Fenced (ownership of a named partition was lost), LogUnavailable, UnknownTopic, RecordTooLarge;
        after any of them nothing is visible and the caller rewinds.
        """

    def rewind(self) -> None:
        """Set the positions back to the committed offsets, see `poll`."""

    def pause(self, partitions: Iterable[int] | None = None) -> None:
        """Pause these partitions (None: all, including later ones); poll still keeps the membership alive."""

    def resume(self) -> None:
        """End all pauses."""

    def lag(self) -> Mapping[At, int]:
        """Records between committed offset and end, per owned partition (Kafka: transaction markers included)."""

    def close(self) -> None:
        """Leave the group, so that others take over at once."""


class Log(Protocol):
    """A log: created once a process, closed at its end. Methods are safe to call from several threads."""

    @property
    def forgets_offsets(self) -> bool:
        """Whether offsets of long idle groups expire; those set by `reset` never do."""

    def create(self, topics: Sequence[Topic]) -> None:
        """Create missing topics; existing ones stay as they are. Raises TopicMismatch if a partition count differs."""

    def definitions(self) -> Mapping[str, Topic]:
        """Existing topics as they are defined now; a limit that is lifted for a run counts as in force."""

    def set_limits(self, topics: Sequence[Topic]) -> None:
        """Give existing topics these retention limits. Embedded: the next `expire` applies them, Kafka: the broker."""

    def topics(self) -> Mapping[str, int]:
        """Existing topics (without the prefix) -> number of partitions."""

    def append(self, outputs: Sequence[Output]) -> list[int]:
        """Append atomically, outside of any group; durable on return. Returns offsets, raises as `Member.commit`."""

    def join(
        self,
        group: str,
        topics: Sequence[str],
        *,
        member: str,
        store: str | None = None,
        background: Collection[str] = (),
    ) -> Member:
        """Join a consumer group under a stable member name. A second live member of that name fences the first.

        `background` topics are read only while no record of another topic waits, see `Member.poll`.
        `store` names the group's keyed state ("frontier", …): per partition, written by `commit` only. On Kafka its
        changelog is the compacted topic "state.<store>", which must exist.
        """

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        """Records with start <= offset < stop (default: the end when the call began), outside of any group."""

    def read_all(self, ranges: Mapping[At, tuple[int, int]]) -> Iterator[Message]:
        """Records of several partitions, below the end when the call began; on Kafka the partitions are mixed."""

    def beginning(self, topic: str) -> list[int]:
        """First retained offset, per partition."""

    def end(self, topic: str) -> list[int]:
        """Offset after the last visible record, per partition."""

    def in_flight(self, topic: str) -> list[bool]:
        """Whether a partition holds records that are not visible yet.

        On Kafka the offsets of a commit may be visible before its records: a reader that takes offsets first must not
        conclude from a missing record while its partition is in flight.
        """

    def offset_at(self, topic: str, time_ms: int) -> list[int]:
        """First offset with a timestamp >= time_ms, per partition (the end if none); timestamps may be out of order."""

    def committed(self, group: str, topic: str) -> list[int | None]:
        """Committed offsets of a group, per partition."""

    def reset(self, group: str, topic: str, offsets: Sequence[int]) -> None:
        """Set a group's committed offsets. Raises StreamError while the group has live members."""

    def members(self, group: str) -> list[str]:
        """Sorted names of a group's live members; a dead member counts until its lease or session ends."""

    def groups(self) -> list[str]:
        """Sorted names of the groups that have or had members or offsets."""

    def scan_state(self, store: str, partition: int) -> Iterator[tuple[bytes, bytes]]:
        """Committed state of a store in key order, outside of any group (audit)."""

    def state_values(self, store: str, partitions: int, key: bytes) -> list[bytes]:
        """The committed values of a key in so many partitions, cheaply; on Kafka the last commit may be missing."""

    def dump_state(self, store: str, partition: int) -> Iterator[StateChange]:
        """Committed state of a store with its due times, in key order."""

    def load_state(self, store: str, partition: int, changes: Sequence[StateChange]) -> None:
        """Change the state of a store that no group uses; on Kafka its changelog must exist."""

    def read_state(self, store: str, partition: int) -> AbstractContextManager[StateReader]:
        """A snapshot of a store's committed state, for one thread; Kafka reads the changelog for it."""

    def sizes(self, topics: Sequence[str]) -> dict[str, TopicSize]:
        """The sizes of these topics, without missing ones."""

    def expire(self, now_ms: int, needed: Mapping[str, Sequence[int]] = NONE_NEEDED, most: float = 1.0) -> int:
        """Apply retention and compaction; returns the bytes freed (0 on Kafka, whose broker does it).

        A record dated after `now_ms` has no known age: it expires with the next too old record after it.

        `needed`: topic -> first offset to keep, per partition; it holds until a later call omits the topic. Missing
        topics are skipped. On Kafka a needed topic keeps all records. Raises StreamError for a wrong number of offsets.
        `most`: largest share of a topic's records that may expire by age. A topic that would lose more keeps its old
        records; TooMuchExpired names it after all other work (Kafka ignores `most`).
        """

    def erase(self, sites: Collection[str], rows: Collection[bytes] = ()) -> Erased:
        """Remove all records of these sites, and the records of `control` with the keys `rows` but current values.

        May be repeated. A site's records have its name as key, or before a space. Embedded: their bytes are removed
        from all files, and their offsets read as tombstones without a key. Kafka: tombstones in compacted topics;
        records of other topics leave with retention. State is not touched: its owners remove it.
        """

    def truncate(self, topic: str, offsets: Sequence[int]) -> None:
        """Remove the records below these offsets, one per partition, of a topic that is not compacted."""

    def remove(self, topics: Sequence[str] = (), groups: Sequence[str] = (), stores: Sequence[str] = ()) -> int:
        """Delete topics with their records, groups with their offsets, stores with state and changelog.

        Returns the freed bytes, as far as known; missing ones are skipped. A recreated topic begins at offset 0; a
        member that reads the old topic gets UnknownTopic. Raises StreamError, and removes nothing, while a group has
        live members.
        """

    def close(self) -> None:
        """Release files and connections."""


def check_size(output: Output, kind: str = "record", refused: Mapping[str, RecordTooLarge] = NONE_REFUSED) -> None:
    """Raises RecordTooLarge if a record's value exceeds the log's cap; the message names its `kind`.

    `refused`: topic -> the log's refusal of a record that is no larger.
    """
    size = 0 if output.value is None else len(output.value)
    known = refused.get(output.topic)
    if size > RECORD_CAP_BYTES:
        said = f"a {kind} of {size} bytes for topic {output.topic!r} is above the cap of {RECORD_CAP_BYTES} bytes"
        raise RecordTooLarge(said, output.topic, size)
    if known is not None and size >= known.size_bytes:
        raise RecordTooLarge(str(known), output.topic, size)


def check_partitions(topics: Sequence[Topic], existing: Mapping[str, int]) -> None:
    """Raises TopicMismatch if a topic exists with another number of partitions."""
    for topic in topics:
        if existing.get(topic.name, topic.partitions) != topic.partitions:
            raise TopicMismatch(
                f"topic {topic.name!r} has {existing[topic.name]} partitions, {topic.partitions} are configured"
            )


def check_offsets(topic: str, offsets: Sequence[int], partitions: int) -> None:
    """Raises StreamError unless there is one offset per partition."""
    if len(offsets) != partitions:
        raise StreamError(f"topic {topic!r} has {partitions} partitions, {len(offsets)} offsets were given")


def check_idle(group: str, members: Sequence[str], doing: str) -> None:
    """Raises StreamError while a group has live members; `doing` names the refused action."""
    if members:
        raise StreamError(f"group {group!r} has live members ({', '.join(members)}): stop them before {doing}")
