"""A member of a consumer group on the embedded log."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from stream.embedded.commit import Insertion, Records, check_leases, check_partitions, write_offsets, write_state
from stream.embedded.database import translated_errors
from stream.embedded.groups import Moment, leave, take_step
from stream.embedded.reader import EmbeddedState, RecordReader, StoredRow
from stream.embedded.topics import StoredTopic, Topics
from stream.embedded.writer import Writer
from stream.log.contract import At, Commit, Message, StateReader
from stream.log.errors import Fenced, StreamError, UnknownTopic
from stream.log.offsets import expired, log_beyond_end, next_offset
from stream.log.shares import Pauses, fair_part

PROBE_S = 0.02  # interval at which an idle poll looks for commits of other processes
_GROUP_CHECK_S = 0.25  # interval of checks for expired leases


class EmbeddedMember:
    """See `Member`. The log's heartbeat keeps the membership alive between polls."""

    def __init__(
        self,
        identity: tuple[str, str, int],
        subscribed: list[StoredTopic],
        store: str | None,
        background: Collection[str],
        *,
        topics: Topics,
        writer: Writer,
        reader: RecordReader,
        moment: Callable[[], Moment],
    ) -> None:
        """`identity` = group, name and epoch of the membership. Group and `store` include the log's prefix."""
        self.identity = identity
        self.closed = False
        self._subscribed = subscribed
        self._compacted = {topic.name for topic in subscribed if topic.compact}
        self._store = store
        self._background = background
        self._topics = topics
        self._writer = writer
        self._reader = reader
        self._moment = moment
        self._partitions = max(topic.partitions for topic in subscribed)
        self._leases: Mapping[int, int] = {}
        self._positions: dict[At, int] = {}
        self._bounds: dict[At, tuple[int, int]] = {}
        self._states: dict[int, EmbeddedState] = {}
        self._pauses = Pauses()
        self._turn = 0
        self._seen = -1  # data version at the last look
        self._version = -1  # of the group
        self._renewed_at: int | None = None
        self._checked_s = 0.0

    def poll(self, timeout_s: float, max_records: int, max_bytes: int) -> list[Message]:
        """See `Member.poll`. Raises Fenced if another process joined under this name, LogDamaged, LogUnavailable."""
        deadline = time.monotonic() + timeout_s
        messages: list[Message] = []
        is_first = True
        while True:
            known = self._writer.committed
            with translated_errors(self._reader.folder):
                if self._look() or is_first:
                    messages = self._fetch(max_records, max_bytes)
            is_first = False
            left = deadline - time.monotonic()
            if messages or left <= 0:
                return messages
            self._writer.wait(known, min(left, PROBE_S))

    def assignment(self) -> Mapping[int, int]:
        return dict(self._leases)

    def state(self, partition: int) -> StateReader:
        self._require([partition], state=True)
        if partition not in self._states:
            self._states[partition] = self._reader.state(self._store or "", partition)
        return self._states[partition]

    def commit(self, commit: Commit) -> None:
        """See `Member.commit`. Threads that commit at the same time share one transaction."""
        if not (commit.outputs or commit.offsets or commit.state):
            return
        named = {at.partition for at in commit.offsets} | set(commit.state)
        self._require(named, state=bool(commit.state))
        try:
            self._write(commit, named)
        except UnknownTopic:  # another process may have removed and recreated it
            self._topics.forget()
            self._write(commit, named)

    def _write(self, commit: Commit, named: Collection[int]) -> None:
        with translated_errors(self._reader.folder):
            known = self._topics.known
            database = self._reader.database
            outputs = [(known(database, output.topic), output) for output in commit.outputs]
            records = Records(outputs, self._moment().now_ms)
            joined = {topic.name: topic for topic in self._subscribed}
            offsets = {
                (joined.get(at.topic) or known(database, at.topic)).partition_id(at.partition): offset
                for at, offset in commit.offsets.items()
            }
        leases = {partition: self._leases[partition] for partition in named}

        def apply(database: sqlite3.Connection, insertion: Insertion) -> None:
            check_leases(database, *self.identity, leases)
            check_partitions(database, offsets)
            insertion.add(records)
            write_offsets(database, self.identity[0], offsets)
            for partition, changes in commit.state.items():
                write_state(database, self._store or "", partition, changes)

        self._writer.run(apply, records)

    def rewind(self) -> None:
        self._positions.clear()

    def pause(self, partitions: Iterable[int] | None = None) -> None:
        self._pauses.add(partitions)

    def resume(self) -> None:
        self._pauses.clear()

    def lag(self) -> Mapping[At, int]:
        with translated_errors(self._reader.folder):
            bounds = self._reader.bounds(self._subscribed)
            committed = self._reader.committed(self.identity[0], self._subscribed)
        return {
            at: end - max(first, next_offset(committed.get(at), end))
            for at, (first, end) in bounds.items()
            if at.partition in self._leases
        }

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._leases = {}
        try:
            self._writer.run(lambda database, _: leave(database, *self.identity))
        finally:
            self._reader.close()

    def _require(self, partitions: Collection[int], *, state: bool) -> None:
        group, name, _ = self.identity
        if state and self._store is None:
            raise StreamError(f"group {group!r} was joined without a store")
        for partition in partitions:
            if partition not in self._leases:
                raise Fenced(f"member {name!r} of group {group!r} does not own partition {partition}")

    def _look(self) -> bool:
        """Refresh members, leases and the ends of the partitions; False if nothing changed."""
        if self.closed:
            raise StreamError(f"member {self.identity[1]!r} of group {self.identity[0]!r} is closed")
        changes = self._reader.changes()
        now_s = time.monotonic()
        if changes == self._seen and now_s < self._checked_s + _GROUP_CHECK_S:
            return False
        self._checked_s = now_s
        if self._must_step():
            began_ms = self._moment().now_ms
            try:
                self._version, leases = self._writer.run(
                    lambda database, _: take_step(database, *self.identity, self._partitions, self._moment())
                )
            except Fenced:
                self._leases = {}
                raise
            self._renewed_at = began_ms
            for at in list(self._positions):
                if leases.get(at.partition) != self._leases.get(at.partition):
                    del self._positions[at]
            self._leases = leases
        if changes != self._seen:
            self._bounds = self._reader.bounds(self._subscribed)
            self._seen = changes
        return True

    def _must_step(self) -> bool:
        """Whether the group has changed, a member has expired, or the own lease is old."""
        alive = self._moment()
        if self._renewed_at is None or not 0 <= alive.now_ms - self._renewed_at < alive.lease_ms // 2:
            return True
        row = self._reader.database.execute(
            "SELECT g.version, min(m.expires_at), max(m.expires_at) FROM groups g LEFT JOIN members m ON m.grp = g.name"
            " WHERE g.name = ?",
            self.identity[:1],
        ).fetchone()
        return bool(row[0] != self._version or row[1] is None or row[1] < alive.now_ms or row[2] > alive.latest)

    def _ready(self) -> list[tuple[StoredTopic, int, int, int]]:
        """(topic, partition, start, stop) of the records to read. Each poll begins with another partition."""
        owned = self._pauses.flowing(self._leases)
        names = [(topic, At(topic.name, p)) for p in owned for topic in self._subscribed if p < topic.partitions]
        if new := [at for _, at in names if at not in self._positions]:
            committed = self._reader.committed(self.identity[0], self._subscribed)
            if any(committed.get(at, 0) > self._bounds[at][1] for at in new):
                self._bounds = self._reader.bounds(self._subscribed)  # other processes may have written since
            for at in new:
                first, end = self._bounds[at]
                self._positions[at] = next_offset(committed.get(at), end, first)
                if committed.get(at, 0) > end:
                    log_beyond_end(at, committed[at], end, self.identity[0])
        places = [(topic, at.partition, self._positions[at], self._bounds[at][1]) for topic, at in names]
        ready = [place for place in places if place[2] < place[3]]
        ready = [place for place in ready if place[0].name not in self._background] or ready
        self._turn += 1
        shift = self._turn % len(ready) if ready else 0
        return ready[shift:] + ready[:shift]

    def _fetch(self, max_records: int, max_bytes: int) -> list[Message]:
        taken: list[StoredRow] = []
        positions: dict[At, int] = {}
        records_left, bytes_left = max_records, max_bytes
        ready = self._ready()
        for place, (topic, partition, start, end) in enumerate(ready):
            if taken and (records_left <= 0 or bytes_left <= 0):
                break
            turns = len(ready) - place
            cap = fair_part(max(1, bytes_left), turns)
            rows = self._reader.rows(topic, partition, start, end, fair_part(records_left, turns), cap)
            used, reached = 0, start if rows else end  # no rows: compaction or retention removed all
            for row in rows:
                room = bytes_left if used == 0 else cap  # the first record may use the budget of later turns
                if taken and used + row.size > room:
                    break
                taken.append(row)
                used += row.size
                records_left -= 1
                reached = row.offset + 1
            positions[At(topic.name, partition)] = reached
            bytes_left -= used
        messages = self._with_expired(self._reader.messages(taken), positions)
        self._positions.update(positions)
        return messages

    def _with_expired(self, read: Sequence[Message], reached: Mapping[At, int]) -> list[Message]:
        """The messages, and one for each expired span, so that the offsets up to the positions have no gap."""
        following = {at: self._positions[at] for at in reached}
        messages: list[Message] = []

        def follow(at: At, offset: int) -> None:
            if following[at] < offset and at.topic not in self._compacted:
                messages.append(expired(at, following[at], offset, self.identity[0], self._moment().now_ms))

        for message in read:
            at = At(message.topic, message.partition)
            follow(at, message.offset)
            messages.append(message)
            following[at] = message.offset + 1
        for at, position in reached.items():
            follow(at, position)
        return messages
