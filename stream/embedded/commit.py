"""Writes a commit in one transaction: checks the leases, then writes records, state and offsets."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence

import msgspec

from stream.embedded.database import content_checksum, fresh_id, row_checksum
from stream.embedded.topics import StoredTopic, offset_of, row_id
from stream.embedded.writer import Placed
from stream.log.contract import Output, StateChange, check_size
from stream.log.errors import Fenced, UnknownTopic

INLINE_BYTES = 2048  # larger values go to a segment file
_Columns = tuple[bytes, bytes | None, bytes | None, int]  # key, value (None: a tombstone, or a blob), headers, time


class Records:
    """Outputs prepared outside of the transaction, to be inserted in it."""

    def __init__(self, outputs: Sequence[tuple[StoredTopic, Output]], now_ms: int) -> None:
        """Raises UnknownTopic (partition out of range) or RecordTooLarge."""
        self.blobs: list[tuple[int, bytes]] = []
        # partition id, columns, index of the value in the blobs, its size, checksum of the content
        self._rows: list[tuple[int, _Columns, int | None, int, int]] = []
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
            self._rows.append((topic.partition_id(output.partition), columns, blob, size, digest))

    def insert(self, database: sqlite3.Connection, places: Sequence[Placed]) -> list[int]:
        """Insert the records; returns their offsets. Raises UnknownTopic before it writes anything."""
        following: dict[int, int] = {}
        added: dict[int, int] = {}
        named: dict[int, tuple[int, int]] = {}  # segment -> number of records, end of the last one
        rows = []
        for partition, columns, blob, size, digest in self._rows:
            offset = following.get(partition)
            if offset is None:
                row = database.execute("SELECT next FROM partitions WHERE id = ?", (partition,)).fetchone()
                if row is None:
                    raise UnknownTopic("a topic of these records was removed")
                offset = int(row[0])
                added[partition] = 0
            following[partition] = offset + 1
            added[partition] += size + len(columns[0]) + len(columns[2] or b"")
            segment = position = None
            if blob is not None:
                placed, position = places[blob]
                segment = placed.row
                records, end = named.get(segment, (0, 0))
                named[segment] = (records + 1, max(end, position + size))
            id = row_id(partition, offset)
            rows.append((id, *columns, segment, position, size, row_checksum(digest, id)))
        database.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        database.executemany(
            "UPDATE partitions SET next = ?, bytes = bytes + ? WHERE id = ?",
            [(offset, added[partition], partition) for partition, offset in following.items()],
        )
        database.executemany(
            "UPDATE segments SET live = live + ?, size = max(size, ?) WHERE id = ?",
            [(records, end, segment) for segment, (records, end) in named.items()],
        )
        return [offset_of(row[0]) for row in rows]


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
