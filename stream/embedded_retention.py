"""Retention and compaction of the embedded log, in small transactions between which others write.

Deleted rows leave free pages in the database, which later records fill; segment files are unlinked when no record
refers to them and no process writes them (`remove_segments`). Committed offsets are never touched.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from stream.embedded_schema import SEGMENTS
from stream.embedded_topics import offset_of, row_id
from stream.embedded_writer import Writer
from stream.segments import remove_if_unused, sync_folder

TOMBSTONE_MS = 86_400_000  # a reader has this long to see a removal, as with Kafka's delete.retention.ms
_UNNAMED_MS = 86_400_000  # so long a segment stays that holds bytes that no commit has named
_ROWS = 2000  # a transaction
_DIRTY_SHARE = 0.1  # compaction reads all keys of a partition once so much of it is new
_SMALL_ROWS = 10_000  # below this it always does
_SIZE = "length(key) + size + coalesce(length(headers), 0)"


class _Rules(NamedTuple):
    """A partition and what is kept of it."""

    id: int
    compact: bool
    retention_ms: int | None
    retention_bytes: int | None
    first: int
    end: int
    bytes: int
    cleaned: int
    tombstone_at: int | None


class Retention:
    """Applies the topics' rules."""

    def __init__(self, folder: Path, writer: Writer, prefix: str) -> None:
        self._folder = folder
        self._writer = writer
        self._prefix = prefix

    def expire(self, database: sqlite3.Connection, now_ms: int, needed: Mapping[int, int]) -> int:
        """Remove what is no longer kept, reading through `database`; returns the bytes freed.

        `needed`: partition id -> offset from which on its records stay, however old or many.
        """
        partitions = database.execute(
            "SELECT p.id, t.compact, t.retention_ms, t.retention_bytes, p.first, p.next, p.bytes, p.cleaned,"
            " p.tombstone_at FROM partitions p JOIN topics t ON t.id = p.topic WHERE substr(t.name, 1, ?) = ?",
            (len(self._prefix), self._prefix),
        ).fetchall()
        freed = 0
        for columns in partitions:
            rules = _Rules(*columns)
            if rules.compact:
                freed += self._compact(database, rules, now_ms)
            else:
                stop = min(rules.end, needed.get(rules.id, rules.end))
                freed += self._shorten(database, rules, now_ms, stop)
        self.remove_segments(database, now_ms)
        return freed

    def _shorten(self, database: sqlite3.Connection, rules: _Rules, now_ms: int, end: int) -> int:
        """Remove the oldest records below `end` while they are too old or the partition is too large."""
        before_ms = None if rules.retention_ms is None else now_ms - rules.retention_ms
        size, freed, start = rules.bytes, 0, rules.first
        while start < end:
            rows = database.execute(
                f"SELECT id, timestamp_ms, {_SIZE} FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
                (row_id(rules.id, start), row_id(rules.id, end), _ROWS),
            ).fetchall()
            stop, cut = start, 0
            for row, timestamp_ms, row_bytes in rows:
                too_old = before_ms is not None and timestamp_ms < before_ms
                too_much = rules.retention_bytes is not None and size - cut > rules.retention_bytes
                if not too_old and not too_much:
                    break
                stop = offset_of(row) + 1
                cut += row_bytes
            if stop > start:
                self._delete_range(rules.id, start, stop)
            size, freed, start = size - cut, freed + cut, stop
            if not rows or stop <= offset_of(rows[-1][0]):
                break
        return freed

    def _delete_range(self, partition: int, start: int, stop: int) -> None:
        where = "id >= ? AND id < ?"
        bounds = (row_id(partition, start), row_id(partition, stop))

        def apply(database: sqlite3.Connection, _: object) -> None:
            forget_records(database, partition, where, bounds)
            database.execute("UPDATE partitions SET first = max(first, ?) WHERE id = ?", (stop, partition))

        self._writer.run(apply)

    def _compact(self, database: sqlite3.Connection, rules: _Rules, now_ms: int) -> int:
        """Keep the newest record of each key; remove tombstones that all had the time to see."""
        dirty = rules.end - rules.cleaned
        old_tombstone = rules.tombstone_at is not None and rules.tombstone_at < now_ms - TOMBSTONE_MS
        if not old_tombstone and (dirty == 0 or self._is_mostly_clean(database, rules, dirty)):
            return 0
        newest: dict[bytes, int] = {}
        superseded: list[int] = []
        tombstones: dict[int, int] = {}  # row id -> timestamp
        start, stop = row_id(rules.id, rules.first), row_id(rules.id, rules.end)
        while True:
            rows = database.execute(
                "SELECT id, key, value IS NULL AND segment IS NULL, timestamp_ms FROM records"
                " WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
                (start, stop, _ROWS),
            ).fetchall()
            for row, key, is_tombstone, timestamp_ms in rows:
                older = newest.get(key)
                if older is not None:
                    superseded.append(older)
                    tombstones.pop(older, None)
                newest[key] = row
                if is_tombstone:
                    tombstones[row] = timestamp_ms
            if len(rows) < _ROWS:
                break
            start = rows[-1][0] + 1
        expired = [row for row, timestamp_ms in tombstones.items() if timestamp_ms < now_ms - TOMBSTONE_MS]
        removed = sorted(superseded + expired)
        waiting = min((time for row, time in tombstones.items() if time >= now_ms - TOMBSTONE_MS), default=None)
        return self._delete_rows(rules, removed, waiting)

    def _is_mostly_clean(self, database: sqlite3.Connection, rules: _Rules, dirty: int) -> bool:
        """True when so little is new that reading all keys of the partition is not worth it yet."""
        span = rules.end - rules.first
        if span <= _SMALL_ROWS or dirty >= span * _DIRTY_SHARE:
            return False
        (kept,) = database.execute(
            "SELECT count(*) FROM records WHERE id >= ? AND id < ?",
            (row_id(rules.id, rules.first), row_id(rules.id, rules.end)),
        ).fetchone()
        return bool(kept > _SMALL_ROWS and dirty < kept * _DIRTY_SHARE)

    def _delete_rows(self, rules: _Rules, rows: Sequence[int], tombstone_at: int | None) -> int:
        """Delete rows by id, then note how far compaction has come and where the partition begins."""
        freed = 0
        for first in range(0, len(rows), 500):
            freed += self._delete_some(rules.id, rows[first : first + 500])

        def note(database: sqlite3.Connection, _: object) -> None:
            (oldest,) = database.execute(
                "SELECT min(id) FROM records WHERE id >= ? AND id < ?",
                (row_id(rules.id, rules.first), row_id(rules.id + 1, 0)),
            ).fetchone()
            database.execute(
                "UPDATE partitions SET cleaned = ?1, tombstone_at = ?2, first = coalesce(?3, next) WHERE id = ?4",
                (rules.end, tombstone_at, None if oldest is None else offset_of(oldest), rules.id),
            )

        self._writer.run(note)
        return freed

    def _delete_some(self, partition: int, rows: Sequence[int]) -> int:
        where = f"id IN ({', '.join('?' * len(rows))})"
        return self._writer.run(lambda database, _: forget_records(database, partition, where, rows))

    def remove_segments(self, database: sqlite3.Connection, now_ms: int) -> None:
        """Unlink segments to which nothing refers: those emptied by retention, and what crashes left.

        A file that the database does not know stays: it belongs to the `log.sqlite` that a backup has replaced. A file
        that holds more than was ever committed stays for a day after its last write: the rest is what a crash left, or
        what the replaced database knew.
        """
        gone = []
        for segment, file in database.execute("SELECT id, file FROM segments WHERE live = 0").fetchall():

            def unused(found: os.stat_result, segment: int = segment) -> bool:
                row = database.execute("SELECT size FROM segments WHERE id = ? AND live = 0", (segment,)).fetchone()
                is_old = found.st_mtime_ns // 1_000_000 < now_ms - _UNNAMED_MS
                return row is not None and (found.st_size <= row[0] or is_old)

            if remove_if_unused(self._folder / SEGMENTS / file, unused):
                gone.append((segment,))
        if gone:
            sync_folder(self._folder / SEGMENTS)  # first the files, then the rows: no file is ever left unknown
            delete = "DELETE FROM segments WHERE id = ? AND live = 0"
            self._writer.run(lambda database, _: database.executemany(delete, gone))


def forget_records(database: sqlite3.Connection, partition: int, where: str, values: Sequence[int]) -> int:
    """Delete records, and count them out of their segments and partition; returns their bytes."""
    segments = database.execute(
        f"SELECT segment, count(*) FROM records WHERE {where} AND segment IS NOT NULL GROUP BY segment", values
    ).fetchall()
    (size,) = database.execute(f"SELECT coalesce(sum({_SIZE}), 0) FROM records WHERE {where}", values).fetchone()
    database.execute(f"DELETE FROM records WHERE {where}", values)
    database.executemany(
        "UPDATE segments SET live = live - ? WHERE id = ?", [(count, segment) for segment, count in segments]
    )
    database.execute("UPDATE partitions SET bytes = bytes - ? WHERE id = ?", (size, partition))
    return int(size)
