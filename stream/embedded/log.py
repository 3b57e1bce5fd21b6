"""The embedded log: one folder, no server.

`log.sqlite` holds topics, small records, the places of large ones, offsets, leases and keyed state. `segments/` holds
large values, in one file per writing process and topic.

Several processes of one machine may share a folder (not over a network file system). Every commit is one SQLite
transaction over outputs, state and offsets that also checks the leases. Large values are synced before it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import ClassVar, TypeVar

from stream.embedded import groups
from stream.embedded.commit import Records, write_state
from stream.embedded.database import SEGMENTS, at_rest, how_to_read, prepare, require_readable, translated_errors
from stream.embedded.erasing import clear_unnamed, erase_keys, erasing, rebuild
from stream.embedded.groups import Moment
from stream.embedded.member import EmbeddedMember
from stream.embedded.reader import EmbeddedState, RecordReader, Times
from stream.embedded.removal import clear, take_out, topic_size
from stream.embedded.retention import Retention, cut_off
from stream.embedded.soundness import Presence, require_sound
from stream.embedded.topics import StoredTopic, Topics
from stream.embedded.writer import Writer
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
    check_offsets,
    partition_of,
    wall_ms,
)
from stream.log.errors import StreamError, UnknownTopic
from stream.log.sql_state import all_entries

T = TypeVar("T")
_READ_ROWS, _READ_BYTES = 200, 8 * 1024 * 1024  # per step of `read`


class EmbeddedLog:
    """See `Log`. Thread safe; a forked child must open its own log. A thread renews the leases of the members."""

    forgets_offsets: ClassVar[bool] = False

    def __init__(
        self,
        folder: Path,
        *,
        prefix: str = "",
        clock: Clock = wall_ms,
        lease_ms: int = 10_000,
        segment_bytes: int = 128 * 1024 * 1024,
        lock_timeout_s: float = 5.0,
        read_only: bool = False,
    ) -> None:
        """Open `folder`, creating it if missing. With `read_only` it must exist, and no file in it changes.

        `segment_bytes`: most bytes of a segment; `lock_timeout_s`: longest wait of a write for other processes. All
        processes must use the same `lease_ms`. Raises LogUnavailable, LogDamaged, SchemaTooNew.
        """
        self._folder = folder.absolute()
        self._prefix = prefix
        self._clock = clock
        self._lease_ms = lease_ms
        self._lock_timeout_s = lock_timeout_s
        self._read_only = read_only
        self._presence = None if read_only else Presence(self._folder, lock_timeout_s)
        (require_readable if read_only else prepare)(self._folder, lock_timeout_s)
        self._topics = Topics(prefix)
        self._times = Times()
        self._writer = Writer(
            self._folder, segment_bytes=segment_bytes, lock_timeout_s=lock_timeout_s, read_only=read_only
        )
        self._retention = Retention(self._folder, self._writer, prefix)
        self._idle: list[RecordReader] = []
        self._rest: tuple[int, int, int] | None = None  # database state seen by idle readers of a read-only log
        self._members: weakref.WeakSet[EmbeddedMember] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._heart: threading.Thread | None = None

    def create(self, topics: Sequence[Topic]) -> None:
        self._writer.run(lambda database, _: self._topics.create(database, topics))

    def definitions(self) -> Mapping[str, Topic]:
        with self._reader() as reader:
            return self._topics.definitions(reader.database)

    def set_limits(self, topics: Sequence[Topic]) -> None:
        if topics:
            self._writer.run(lambda database, _: self._topics.set_limits(database, topics))

    def topics(self) -> Mapping[str, int]:
        with self._reader() as reader:
            return {name: topic.partitions for name, topic in self._topics.all(reader.database).items()}

    def append(self, outputs: Sequence[Output]) -> list[int]:
        if not outputs:
            return []
        try:
            return self._append(outputs)
        except UnknownTopic:  # another process may have removed and recreated it
            self._topics.forget()
            return self._append(outputs)

    def _append(self, outputs: Sequence[Output]) -> list[int]:
        names = {output.topic for output in outputs}
        topics = self._topics.cached(names)
        if topics is None:
            with self._reader() as reader:
                topics = {name: self._topics.find(reader.database, name) for name in names}
        records = Records([(topics[output.topic], output) for output in outputs], self._clock())
        return self._writer.run(lambda _, insertion: insertion.add(records), records)

    def join(
        self,
        group: str,
        topics: Sequence[str],
        *,
        member: str,
        store: str | None = None,
        background: Collection[str] = (),
    ) -> EmbeddedMember:
        with self._reader() as reader:
            subscribed = [self._topics.find(reader.database, topic) for topic in topics]
        expires_at = self._moment().expires_at
        epoch = self._writer.run(lambda database, _: groups.join(database, self._prefix + group, member, expires_at))
        with translated_errors(self._folder):
            reader = RecordReader(self._folder, self._lock_timeout_s)
        joined = EmbeddedMember(
            (self._prefix + group, member, epoch),
            subscribed,
            None if store is None else self._prefix + store,
            background,
            topics=self._topics,
            writer=self._writer,
            reader=reader,
            moment=self._moment,
        )
        with self._lock:
            self._members.add(joined)
            if self._heart is None:
                self._heart = threading.Thread(
                    target=_beat,
                    args=(weakref.ref(self), self._stop, self._lease_ms / 3000),
                    daemon=True,
                    name="log-lease",
                )
                self._heart.start()
        return joined

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        with self._reader() as reader:
            stored = self._topics.find(reader.database, topic)
            stored.partition_id(partition)
            _, end = reader.bounds([stored])[At(topic, partition)]
        return self._read(stored, partition, start, end if stop is None else min(stop, end))

    def _read(self, topic: StoredTopic, partition: int, start: int, stop: int) -> Iterator[Message]:
        while start < stop:
            with self._reader() as reader:
                rows = reader.rows(topic, partition, start, stop, _READ_ROWS, _READ_BYTES)
                messages = reader.messages(rows)
            if not rows:
                return
            yield from messages
            start = rows[-1].offset + 1

    def read_all(self, ranges: Mapping[At, tuple[int, int]]) -> Iterator[Message]:
        return chain.from_iterable([self.read(*at, start, stop) for at, (start, stop) in ranges.items()])

    def beginning(self, topic: str) -> list[int]:
        return [first for first, _ in self._bounds(topic)]

    def end(self, topic: str) -> list[int]:
        return [end for _, end in self._bounds(topic)]

    def in_flight(self, topic: str) -> list[bool]:
        """None is: one commit covers records and offsets."""
        return [False for _ in self._bounds(topic)]

    def _bounds(self, topic: str) -> list[tuple[int, int]]:
        with self._reader() as reader:
            bounds = reader.bounds([self._topics.find(reader.database, topic)])
        return [bounds[at] for at in sorted(bounds)]

    def offset_at(self, topic: str, time_ms: int) -> list[int]:
        """The first call of a process reads up to the result, later calls read new records only."""
        with self._reader() as reader:
            stored = self._topics.find(reader.database, topic)
            return [
                self._times.offset_at(reader.database, stored.partition_id(at.partition), *bounds, time_ms)
                for at, bounds in sorted(reader.bounds([stored]).items())
            ]

    def committed(self, group: str, topic: str) -> list[int | None]:
        with self._reader() as reader:
            stored = self._topics.find(reader.database, topic)
            known = reader.committed(self._prefix + group, [stored])
        return [known.get(At(topic, partition)) for partition in range(stored.partitions)]

    def reset(self, group: str, topic: str, offsets: Sequence[int]) -> None:
        with self._reader() as reader:
            stored = self._topics.find(reader.database, topic)
        check_offsets(topic, offsets, stored.partitions)
        wanted = dict(enumerate(offsets, stored.base))
        self._writer.run(lambda database, _: groups.reset(database, self._prefix + group, wanted, self._moment()))

    def members(self, group: str) -> list[str]:
        with self._reader() as reader:
            return groups.members(reader.database, self._prefix + group, self._moment())

    def groups(self) -> list[str]:
        with self._reader() as reader:
            full_names = groups.names(reader.database, self._prefix)
        return [name.removeprefix(self._prefix) for name in full_names]

    def scan_state(self, store: str, partition: int) -> Iterator[tuple[bytes, bytes]]:
        return ((entry.key, entry.value or b"") for entry in self.dump_state(store, partition))

    def state_values(self, store: str, partitions: int, key: bytes) -> list[bytes]:
        with self._reader() as reader:
            values = [reader.state(self._prefix + store, partition).get(key) for partition in range(partitions)]
        return [value for value in values if value is not None]

    def dump_state(self, store: str, partition: int) -> Iterator[StateChange]:
        def entries(limit: int, after: bytes | None) -> list[StateChange]:
            with self._reader() as reader:
                return reader.state(self._prefix + store, partition).entries(limit, after)

        return all_entries(entries)

    def load_state(self, store: str, partition: int, changes: Sequence[StateChange]) -> None:
        self._writer.run(lambda database, _: write_state(database, self._prefix + store, partition, changes))

    @contextlib.contextmanager
    def read_state(self, store: str, partition: int) -> Iterator[EmbeddedState]:
        """State of one read transaction. Raises LogUnavailable."""
        with self._reader() as reader:
            reader.database.execute("BEGIN")
            try:
                yield reader.state(self._prefix + store, partition)
            finally:
                reader.database.execute("ROLLBACK")

    def sizes(self, topics: Sequence[str]) -> dict[str, TopicSize]:
        """See `Log.sizes`. Reads the whole state of a store."""
        with self._reader() as reader:
            sizes = {topic: topic_size(reader.database, self._prefix, topic) for topic in topics}
        return {topic: size for topic, size in sizes.items() if size is not None}

    def expire(self, now_ms: int, needed: Mapping[str, Sequence[int]] = NONE_NEEDED, most: float = 1.0) -> int:
        if self._read_only:
            self._writer.run(lambda *_: None)  # raises
        with self._reader() as reader:
            known = self._topics.all(reader.database)
            stops: dict[int, int] = {}
            for name in needed.keys() & known.keys():
                check_offsets(name, needed[name], known[name].partitions)
                stops |= enumerate(needed[name], known[name].base)
            clear(reader.database, self._writer)  # finish an interrupted removal
            return self._retention.expire(reader.database, now_ms, stops, most)

    def erase(self, sites: Collection[str], rows: Collection[bytes] = ()) -> Erased:
        """See `Log.erase`. Waits for readers and a backup; other processes wait while the database is rebuilt."""
        records = 0
        with erasing(self._folder):
            with self._reader() as reader:
                erase = partial(erase_keys, self._folder, reader.database, self._writer)
                clear(reader.database, self._writer)  # finish an interrupted removal
                for topic in self._topics.all(reader.database).values():
                    of_partitions: dict[int, list[bytes]] = {}
                    for site in sites:
                        of_partitions.setdefault(partition_of(site, topic.partitions), []).append(site.encode())
                    for partition, keys in of_partitions.items():
                        records += erase(topic.partition_id(partition), keys)
                    if topic.partitions == 1 and rows:  # control, and others without such keys
                        records += erase(topic.partition_id(0), list(rows), keep_values=True)
                clear_unnamed(self._folder, reader.database)
                self._retention.remove_segments(reader.database, self._clock())
            with self._lock:
                self._close_idle()  # so that no reader of this process blocks the WAL from being emptied
            rebuild(self._folder, self._lock_timeout_s)
        return Erased(records)

    def truncate(self, topic: str, offsets: Sequence[int]) -> None:
        with self._reader() as reader:
            stored = self._topics.find(reader.database, topic)
        check_offsets(topic, offsets, stored.partitions)
        stops = dict(enumerate(offsets, stored.base))
        self._writer.run(lambda database, _: cut_off(database, stops))

    def remove(self, topics: Sequence[str] = (), groups: Sequence[str] = (), stores: Sequence[str] = ()) -> int:
        """See `Log.remove`. A later `expire` removes segment files that another process still writes."""
        ids, freed = self._writer.run(
            lambda database, _: take_out(database, self._prefix, topics, groups, stores, self._moment())
        )
        self._topics.forget()
        self._writer.drop(ids)
        with self._reader() as reader:
            freed += clear(reader.database, self._writer)
            self._retention.remove_segments(reader.database, self._clock())
        return freed

    def missing_segments(self) -> dict[Path, int]:
        """Missing segment files, with the number of records that refer to each."""
        with self._reader() as reader:
            rows = reader.database.execute("SELECT file, live FROM segments WHERE live > 0 ORDER BY id").fetchall()
        kept = {self._folder / SEGMENTS / file: live for file, live in rows}
        return {path: live for path, live in kept.items() if not path.exists()}

    def require_sound(self) -> None:
        """Read all pages of the database. Raises LogDamaged."""
        with self._reader() as reader:
            require_sound(reader.database, self._folder)

    def close(self) -> None:
        """Close files and connections. Members that were not closed stay until their lease expires."""
        self._stop.set()
        self._writer.close()
        with self._lock:
            self._close_idle()
        if self._presence is not None:
            self._presence.leave()

    @contextlib.contextmanager
    def _reader(self) -> Iterator[RecordReader]:
        self._writer.check_usable()
        with translated_errors(self._folder, read_only=self._read_only):
            rest = at_rest(self._folder) if self._read_only else None
            with self._lock:
                if rest != self._rest:  # a writer opened or closed the log: the readers' caches are stale
                    self._close_idle()
                    self._rest = rest
                reader = self._idle.pop() if self._idle else None
            if reader is None:
                how = how_to_read(rest) if self._read_only else "mode=rw"
                reader = RecordReader(self._folder, self._lock_timeout_s, how)
            try:
                yield reader
            finally:
                with self._lock:
                    self._idle.append(reader)
                    if self._stop.is_set() or rest != self._rest:
                        self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _moment(self) -> Moment:
        return Moment(self._clock(), self._lease_ms)


def _beat(log_of: Callable[[], EmbeddedLog | None], stop: threading.Event, every_s: float) -> None:
    """Run the heartbeat thread until the log closes. A failed beat is ignored: the next one renews."""
    while not stop.wait(every_s):
        log = log_of()
        if log is None:
            return
        with contextlib.suppress(StreamError, sqlite3.Error):
            with log._lock:
                alive = [member.identity for member in log._members if not member.closed]
            if alive:
                log._writer.run(partial(groups.beat, alive, log._moment().expires_at))
        del log
