"""Writes a commit in one transaction: checks the leases, then writes records, state and offsets."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from stream.embedded.database import content_checksum, fresh_id, row_checksum
from stream.embedded.segments import Placed
from stream.embedded.topics import StoredTopic, row_id
from stream.log.contract import Output, StateChange, check_size
from stream.log.errors import Fenced, UnknownTopic

INLINE_BYTES = 2048  # larger values go to a segment file
_Columns = tuple[bytes, bytes | None, bytes | None, int]  # key, value (None: a tombstone, or a blob), headers, time


class Records:
    """Outputs prepared outside of the transaction, see `Insertion`."""

    def __init__(self, outputs: Sequence[tuple[StoredTopic, Output]], now_ms: int) -> None:
        """Raises UnknownTopic (partition out of range) or RecordTooLarge."""
        self.blobs: list[tuple[int, bytes]] = []  # topic id, value
        self.places: Sequence[Placed] = ()  # of the blobs, once they are written
        # partition id, columns, index of the value in the blobs, its size, checksum of the content
        self.rows: list[tuple[int, _Columns, int | None, int, int]] = []
        for topic, output in outputs:
            check_size(output)
            value, blob = output.value, None
            size = 0 if value is None else len(value)
            headers = msgspec.msgpack.encode(dict(output.headers)) if output.headers else None
            time_ms = now_ms if output.timestamp_ms is None else output.timestamp_ms
            digest = content_checksum(time_ms, output.key, headers, value)
            # Compacted topics keep values inline: otherwise one newest value would keep a whole segment.
            if value is not None and size > INLINE_BYTES and not topic.compact:
                blob = len(self.blobs)
                self.blobs.append((topic.id, value))
                value = None
            columns = (output.key, value, headers, time_ms)
            self.rows.append((topic.partition_id(output.partition), columns, blob, size, digest))


class Insertion:
    """The records of one transaction: its callers add theirs, and `insert` writes all so far at once."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._rows: list[tuple[object, ...]] = []
        self._following: dict[int, int] = {}  # partition id -> next offset
        self._added: Counter[int] = Counter()  # partition id -> bytes
        self._named: dict[int, tuple[int, int]] = {}  # segment -> number of records, end of the last one

    def add(self, records: Records) -> list[int]:
        """Give the records their offsets, and return these. Raises UnknownTopic before it adds anything."""
        following = self._following
        for partition in {row[0] for row in records.rows} - following.keys():
            row = self._database.execute("SELECT next FROM partitions WHERE id = ?", (partition,)).fetchone()
            if row is None:
                raise UnknownTopic("a topic of these records was removed")
            following[partition] = int(row[0])
        offsets = []
        for partition, columns, blob, size, digest in records.rows:
            offset = following[partition]
            following[partition] = offset + 1
            self._added[partition] += size + len(columns[0]) + len(columns[2] or b"")
            segment = position = None
            if blob is not None:
                placed, position = records.places[blob]
                segment = placed.row
                count, end = self._named.get(segment, (0, 0))
                self._named[segment] = (count + 1, max(end, position + size))
            id = row_id(partition, offset)
            self._rows.append((id, *columns, segment, position, size, row_checksum(digest, id)))
            offsets.append(offset)
        return offsets

    def insert(self) -> None:
        """Insert the records added since the last call, and update their partitions and segments."""
        self._database.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", self._rows)
        self._database.executemany(
            "UPDATE partitions SET next = ?, bytes = bytes + ? WHERE id = ?",
            [(self._following[partition], size, partition) for partition, size in self._added.items()],
        )
        self._database.executemany(
            "UPDATE segments SET live = live + ?, size = max(size, ?) WHERE id = ?",
            [(count, end, segment) for segment, (count, end) in self._named.items()],
        )
        for done in (self._rows, self._following, self._added, self._named):
            done.clear()


def check_leases(database: sqlite3.Connection, group: str, member: str, epoch: int, leases: Mapping[int, int]) -> None:
    """Check the membership and these leases (partition -> epoch) in this transaction. Raises Fenced."""
    row = database.execute("SELECT epoch FROM members WHERE grp = ? AND name = ?", (group, member)).fetchone()
    if row is not None and row[0] != epoch:
        raise Fenced(f"another process joined group {group!r} as member {member!r}")
    for partition, lease in leases.items():
        owner = database.execute(
            "SELECT member, epoch FROM leases WHERE grp = ? AND partition = ?", (group, partition)
        ).fetchone()
        if owner is None or owner[1] != lease:
            now = "nobody" if owner is None else f"member {owner[0]!r}"
            raise Fenced(f"member {member!r} of group {group!r} no longer owns partition {partition}: {now} does")
    if row is None:
        raise Fenced(f"the lease of member {member!r} in group {group!r} expired")


def check_partitions(database: sqlite3.Connection, ids: Collection[int]) -> None:
    """Check that all of these partitions still exist. Raises UnknownTopic."""
    marks = ", ".join("?" * len(ids))
    (known,) = database.execute(f"SELECT count(*) FROM partitions WHERE id IN ({marks})", tuple(ids)).fetchone()
    if known < len(ids):
        raise UnknownTopic("a topic of these offsets was removed: join the group again")


def write_offsets(database: sqlite3.Connection, group: str, offsets: Mapping[int, int]) -> None:
    """Set committed offsets, by partition id."""
    database.executemany(
        "INSERT INTO offsets VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET next = excluded.next",
        [(group, partition, offset) for partition, offset in offsets.items()],
    )


def write_state(database: sqlite3.Connection, store: str, partition: int, changes: Sequence[StateChange]) -> None:
    """Apply changes of keyed state in order."""
    last = {change.key: change for change in changes}
    if not last:
        return
    slot_row = database.execute("SELECT id FROM slots WHERE store = ? AND partition = ?", (store, partition)).fetchone()
    if slot_row is None:
        slot = fresh_id(database, "slots")
        database.execute("INSERT INTO slots (id, store, partition) VALUES (?, ?, ?)", (slot, store, partition))
    else:
        slot = slot_row[0]
    puts = [(slot, c.key, c.value, c.due_at) for c in last.values() if c.value is not None]
    deletes = [(slot, c.key) for c in last.values() if c.value is None]
    database.executemany(
        "INSERT INTO state VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET value = excluded.value, due_at = excluded.due_at"
        " WHERE value IS NOT excluded.value OR due_at IS NOT excluded.due_at",
        puts,
    )
    database.executemany("DELETE FROM state WHERE slot = ? AND key = ?", deletes)
