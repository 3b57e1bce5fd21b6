"""The log on Apache Kafka, for several machines. Needs a broker of version 2.5 or later.

Topics are Kafka topics, groups are consumer groups with static members, commits are transactions, and keyed state is a
compacted changelog topic with a local copy. All reads are read_committed. The broker applies retention; `expire` only
sets the records to keep.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import ClassVar

from kafka import TopicPartition
from kafka import errors as kafka_errors

from stream.kafka.client import RecordRefused, TransactionalProducer, build_producer
from stream.kafka.cluster import KafkaSite
from stream.kafka.configuration import Finding, check_broker, defined_topics, hold, set_limits
from stream.kafka.erasing import erase
from stream.kafka.errors import translated_errors
from stream.kafka.member import KafkaMember
from stream.kafka.reader import read_all
from stream.kafka.settings import KafkaSettings, configs_of, name_of, require_crc32c
from stream.kafka.state import LocalState, decode_change, encode_change
from stream.log.contract import (
    NONE_NEEDED,
    At,
    Clock,
    Erased,
    Message,
    Output,
    StateChange,
    Topic,
    TopicSize,
    check_idle,
    check_offsets,
    check_partitions,
    wall_ms,
)
from stream.log.errors import StreamError
from stream.log.sql_state import all_entries

_TAILS = (64, 4096, sys.maxsize)  # offsets of a changelog in which a key is searched
_MARKERS_AT_END = 8  # so near the end, check whether a record follows


class KafkaLog:
    """See `Log`. Connects at first use; thread safe."""

    forgets_offsets: ClassVar[bool] = True

    def __init__(
        self,
        bootstrap: str,
        *,
        prefix: str = "",
        state_folder: Path,
        settings: KafkaSettings | None = None,
        clock: Clock = wall_ms,
    ) -> None:
        """`bootstrap`: "host:port,host:port"; `state_folder` may be lost. Raises StreamError without crc32c in C."""
        require_crc32c()
        self._site = KafkaSite(bootstrap, prefix, state_folder, settings or KafkaSettings(), clock)
        self._settings = self._site.settings
        self._producer: TransactionalProducer | None = None
        self._append_lock = threading.Lock()

    def create(self, topics: Sequence[Topic]) -> None:
        """See `Log.create`; `check` reports differences of existing topics."""
        existing = self._site.topics()
        check_partitions(topics, existing)
        self._site.admin.create(
            {
                self._site.full(topic.name): {
                    "num_partitions": topic.partitions,
                    "replication_factor": self._settings.replication_factor,
                    "configs": configs_of(topic),
                }
                for topic in topics
                if topic.name not in existing
            }
        )

    def definitions(self) -> Mapping[str, Topic]:
        return defined_topics(self._site)

    def set_limits(self, topics: Sequence[Topic]) -> None:
        set_limits(self._site, topics)

    def topics(self) -> Mapping[str, int]:
        return self._site.topics()

    def append(self, outputs: Sequence[Output]) -> list[int]:
        """After LogUnavailable the records may have been appended: a retry may append twice."""
        if not outputs:
            return []
        records = [self._site.record(output) for output in outputs]
        with self._append_lock:
            if self._producer is None or not self._producer.alive:
                self._producer = build_producer(self._site.producer_options(self._site.full(f"append.{uuid.uuid4()}")))
            with translated_errors("append"):
                try:
                    return self._producer.transact(records, {}, None, self._settings.commit_timeout_s)
                except kafka_errors.ProducerFencedError:  # the broker ended an old transaction
                    self._producer.kill()
                    raise
                except RecordRefused as error:
                    raise self._site.refusal(outputs[error.index]) from error
                except Exception:
                    self._site.forget({record.topic for record in records})  # one topic may have been removed
                    raise

    def join(
        self,
        group: str,
        topics: Sequence[str],
        *,
        member: str,
        store: str | None = None,
        background: Collection[str] = (),
    ) -> KafkaMember:
        if not topics:
            raise StreamError(f"group {group!r} joins without topics")
        return KafkaMember(self._site, group, topics, member, store, background)

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        return self.read_all({At(topic, partition): (start, sys.maxsize if stop is None else stop)})

    def read_all(self, ranges: Mapping[At, tuple[int, int]]) -> Iterator[Message]:
        spans = {self._site.one(*at): span for at, span in ranges.items()}
        ends = self._site.admin.stable_end(list(spans)) if spans else {}
        bounded = {at: (start, min(stop, ends[at])) for at, (start, stop) in spans.items()}
        records = read_all(self._site.reader_options, bounded, self._settings.request_timeout_s)
        return (self._site.message(record) for record in records)

    def beginning(self, topic: str) -> list[int]:
        partitions = self._site.at(topic)
        offsets = self._site.admin.beginning(partitions)
        return [offsets[at] for at in partitions]

    def end(self, topic: str) -> list[int]:
        """The last stable offset per partition. Visible records are below it; the last offset may be a marker's."""
        partitions = self._site.at(topic)
        offsets = self._site.admin.stable_end(partitions)
        return [offsets[at] for at in partitions]

    def in_flight(self, topic: str) -> list[bool]:
        """See `Log.in_flight`: records of a transaction that is open, or whose markers are not all written."""
        partitions = self._site.at(topic)
        written = self._site.admin.written_end(partitions)  # before the end: it may grow meanwhile
        return [end < written[at] for at, end in zip(partitions, self.end(topic), strict=True)]

    def offset_at(self, topic: str, time_ms: int) -> list[int]:
        partitions = self._site.at(topic)
        ends = self.end(topic)
        offsets = self._site.admin.offsets_at(partitions, time_ms)
        return [self._record_from(at, offsets[at], end) for at, end in zip(partitions, ends, strict=True)]

    def _record_from(self, at: TopicPartition, offset: int, end: int) -> int:
        """`offset`, or the end if only transaction markers follow, because markers have timestamps too."""
        if offset < 0 or offset >= end:
            return end
        if end - offset > _MARKERS_AT_END:
            return offset
        records = read_all(self._site.reader_options, {at: (offset, end)}, self._settings.request_timeout_s)
        return next((int(record.offset) for record in records), end)

    def committed(self, group: str, topic: str) -> list[int | None]:
        partitions = self._site.at(topic)
        offsets = self._site.admin.committed(self._site.full(group), partitions)
        return [offsets.get(at) for at in partitions]

    def reset(self, group: str, topic: str, offsets: Sequence[int]) -> None:
        partitions = self._site.at(topic)
        check_offsets(topic, offsets, len(partitions))
        self._site.admin.reset(self._site.full(group), dict(zip(partitions, offsets, strict=True)))

    def members(self, group: str) -> list[str]:
        return sorted(name_of(name) for name in self._site.admin.members(self._site.full(group)))

    def groups(self) -> list[str]:
        return sorted(map(self._site.short, self._site.admin.groups(self._site.prefix)))

    def scan_state(self, store: str, partition: int) -> Iterator[tuple[bytes, bytes]]:
        return ((entry.key, entry.value or b"") for entry in self.dump_state(store, partition))

    def state_values(self, store: str, partitions: int, key: bytes) -> list[bytes]:
        """See `Log.state_values`: searched in the end of the changelog, and further back where it is not there."""
        topic, found = f"state.{store}", dict[int, bytes | None]()
        ends = self.end(topic)[:partitions] if topic in self.topics() else []
        for step in _TAILS:
            left = {At(topic, p): (max(0, end - step), end) for p, end in enumerate(ends) if p not in found}
            changes = (message for message in self.read_all(left) if message.key == key)
            found |= {message.partition: decode_change(key, message.value).value for message in changes}
        return [value for value in found.values() if value is not None]

    def dump_state(self, store: str, partition: int) -> Iterator[StateChange]:
        with self.read_state(store, partition) as state:
            yield from all_entries(state.entries)

    def load_state(self, store: str, partition: int, changes: Sequence[StateChange]) -> None:
        self.append([Output(f"state.{store}", partition, change.key, encode_change(change)) for change in changes])

    @contextmanager
    def read_state(self, store: str, partition: int) -> Iterator[LocalState]:
        """Read the changelog into a temporary file first."""
        at = self._site.one(f"state.{store}", partition)
        with (
            tempfile.TemporaryDirectory(prefix="farmwatch-state-") as folder,
            closing(LocalState(Path(folder) / "state.sqlite", "", now_ms=0, max_age_ms=0)) as state,
            closing(self._site.restore({at: state})) as restore,
        ):
            # an open transaction of a killed process blocks until the broker aborts it
            restore.run(self._settings.request_timeout_s + self._settings.transaction_timeout_s)
            yield state

    def sizes(self, topics: Sequence[str]) -> dict[str, TopicSize]:
        """See `Log.sizes`: bytes on disk of one replica; transaction markers count as records."""
        known = self._site.topics()
        existing = [topic for topic in topics if topic in known]
        sizes = self._site.admin.sizes([self._site.full(topic) for topic in existing])
        at = [one for topic in existing for one in self._site.at(topic)]
        first, end = self._site.admin.beginning(at), self._site.admin.written_end(at)
        return {
            topic: TopicSize(sum(end[one] - first[one] for one in self._site.at(topic)), sizes[self._site.full(topic)])
            for topic in existing
        }

    def expire(self, now_ms: int, needed: Mapping[str, Sequence[int]] = NONE_NEEDED, most: float = 1.0) -> int:  # noqa: ARG002  # the contract's
        """Keep the needed topics, see `stream.kafka.configuration`. The broker applies retention and compaction."""
        hold(self._site, needed)
        return 0

    def erase(self, sites: Collection[str], rows: Collection[bytes] = ()) -> Erased:
        """See `Log.erase`."""
        tombstones, erased = erase(self._site, self.read_all, sites, rows, self._site.clock())
        self.append(tombstones)
        return erased

    def truncate(self, topic: str, offsets: Sequence[int]) -> None:
        partitions = self._site.at(topic)
        check_offsets(topic, offsets, len(partitions))
        self._site.admin.truncate(dict(zip(partitions, offsets, strict=True)))

    def remove(self, topics: Sequence[str] = (), groups: Sequence[str] = (), stores: Sequence[str] = ()) -> int:
        """See `Log.remove`. Obsolete local state on other machines stays."""
        for group in groups:
            check_idle(group, self.members(group), "it is removed")
        names = dict.fromkeys([*topics, *(f"state.{store}" for store in stores)])
        freed = sum(size.bytes for size in self.sizes(list(names)).values())
        self._site.admin.delete_groups([self._site.full(group) for group in groups])
        existing = self._site.topics()
        self._site.admin.delete_topics([self._site.full(name) for name in names if name in existing])
        self._site.forget(self._site.full(name) for name in names)
        for group in groups:
            for store in stores:
                self._site.forget_local_state(group, store)
        return freed

    def check(self, topics: Sequence[Topic] = ()) -> list[Finding]:
        """Findings for `farmwatch doctor`; never raises StreamError. `topics` = the configured topics."""
        return check_broker(self._site, topics)

    def close(self) -> None:
        with self._append_lock:
            producer, self._producer = self._producer, None
        if producer is not None:
            producer.kill()
        self._site.admin.close()
