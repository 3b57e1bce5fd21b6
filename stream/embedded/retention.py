"""Retention and compaction of the embedded log, in small transactions so that others can write in between.

Later records reuse the database pages of deleted rows; of many free pages, most return to the file system
(`stream.embedded.vacuum`). `remove_segments` unlinks segment files that no record refers to
and no process writes. Committed offsets never change.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import structlog

from stream.embedded.database import SEGMENTS, TIME_MS, translate
from stream.embedded.segments import remove_if_unused, sync_folder
from stream.embedded.topics import offset_of, row_id
from stream.embedded.vacuum import give_back
from stream.embedded.writer import Writer
from stream.log.contract import RECORD_CAP_BYTES
from stream.log.errors import LogUnavailable, TooMuchExpired
from stream.text.times import DAY_MS

_log = structlog.get_logger()
TOMBSTONE_MS = DAY_MS  # readers have this long to see a tombstone, like Kafka's delete.retention.ms
_UNNAMED_MS = DAY_MS  # age at which a segment with uncommitted bytes is removed
_ROWS = 2000  # per transaction
_DIRTY_SHARE = 0.1  # share of new records from which a partition is compacted
_SMALL_ROWS = 10_000  # smaller partitions are always compacted
# A flipped bit may change the type of a column or make a size absurd. Such a row must not stop retention.
_SIZE = (
    "coalesce(length(key), 0) + coalesce(length(headers), 0)"
    f" + CASE WHEN typeof(size) = 'integer' AND size BETWEEN 0 AND {RECORD_CAP_BYTES} THEN size ELSE 0 END"
)


class _Rules(NamedTuple):
    """A partition and its rules."""

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

    def expire(self, database: sqlite3.Connection, now_ms: int, needed: Mapping[int, int], most: float) -> int:
        """See `Log.expire`; `needed` is by partition id. An unreadable partition is logged and skipped."""
        partitions = [
            (topic, _Rules(*columns))
            for topic, *columns in database.execute(
                "SELECT t.name, p.id, t.compact, t.retention_ms, t.retention_bytes, p.first, p.next, p.bytes,"
                " p.cleaned, p.tombstone_at FROM partitions p JOIN topics t ON t.id = p.topic"
                " WHERE substr(t.name, 1, ?) = ?",
                (len(self._prefix), self._prefix),
            ).fetchall()
        ]
        stops = {rules.id: min(rules.end, needed.get(rules.id, rules.end)) for _, rules in partitions}
        old: Counter[str] = Counter()
        records: Counter[str] = Counter()
        for topic, rules in partitions if most < 1 else ():
            if not rules.compact:
                old[topic] += self._attempt(topic, partial(_count_old, database, rules, now_ms, stops[rules.id]))
                records[topic] += rules.end - rules.first
        held = {topic for topic, count in old.items() if count > records[topic] * most}
        freed = 0
        for topic, rules in partitions:
            if rules.compact:
                work = partial(self._compact, database, rules, now_ms)
            else:
                kept = rules._replace(retention_ms=None) if topic in held else rules
                work = partial(self._shorten, database, kept, now_ms, stops[rules.id])
            freed += self._attempt(topic, work)
        self.remove_segments(database, now_ms)
        give_back(database, self._writer)
        if held:
            shares = [
                f"{old[topic]} of the {records[topic]} records of topic {topic.removeprefix(self._prefix)!r}"
                for topic in sorted(held)
            ]
            raise TooMuchExpired(f"{', '.join(shares)} are older than their retention; these were kept")
        return freed

    def _attempt(self, topic: str, work: Callable[[], int]) -> int:
        """Do `work`; if the database is damaged, log it and return 0. Raises LogUnavailable."""
        try:
            return work()
        except Exception as error:
            if isinstance(translate(error, self._folder), LogUnavailable):
                raise
            _log.error("retention_failed", topic=topic, error=f"{type(error).__name__}: {error}"[:300])
            return 0

    def _shorten(self, database: sqlite3.Connection, rules: _Rules, now_ms: int, end: int) -> int:
        freed = 0
        for stop, freed in _outlived(database, rules, now_ms, end):  # noqa: B007  # the last one is the sum
            self._forget(rules.id, "id >= ? AND id < ?", (row_id(rules.id, 0), row_id(rules.id, stop)), first=stop)
        return freed

    def _forget(self, partition: int, where: str, values: Sequence[int], first: int = 0) -> int:
        def apply(database: sqlite3.Connection, _: object) -> int:
            database.execute("UPDATE partitions SET first = max(first, ?) WHERE id = ?", (first, partition))
            return forget_records(database, partition, where, values)

        return self._writer.run(apply)

    def _compact(self, database: sqlite3.Connection, rules: _Rules, now_ms: int) -> int:
        """Keep the newest record of each key; remove tombstones after TOMBSTONE_MS."""
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
                "SELECT id, CAST(coalesce(key, x'') AS BLOB), value IS NULL AND segment IS NULL,"
                f" coalesce({TIME_MS}, 0) FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
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
        """Whether too little is new to read all keys of the partition."""
        (kept,) = database.execute(
            "SELECT count(*) FROM records WHERE id >= ? AND id < ?",
            (row_id(rules.id, rules.first), row_id(rules.id, rules.end)),
        ).fetchone()
        return bool(kept > _SMALL_ROWS and dirty < kept * _DIRTY_SHARE)

    def _delete_rows(self, rules: _Rules, rows: Sequence[int], tombstone_at: int | None) -> int:
        freed = 0
        for first in range(0, len(rows), 500):
            some = rows[first : first + 500]
            freed += self._forget(rules.id, f"id IN ({', '.join('?' * len(some))})", some)

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

    def remove_segments(self, database: sqlite3.Connection, now_ms: int) -> None:
        """Unlink unreferenced segments. Files unknown to the database stay.

        A file with more than the committed bytes stays for a day after its last write: either a crash left the rest, or
        the database was restored from a backup.
        """
        gone = []
        for segment, file in database.execute("SELECT id, file FROM segments WHERE live = 0").fetchall():

            def unused(status: os.stat_result, segment: int = segment) -> bool:
                row = database.execute("SELECT size FROM segments WHERE id = ? AND live = 0", (segment,)).fetchone()
                is_old = status.st_mtime_ns // 1_000_000 < now_ms - _UNNAMED_MS
                return row is not None and (status.st_size <= row[0] or is_old)

            if remove_if_unused(self._folder / SEGMENTS / file, unused):
                gone.append((segment,))
        if gone:
            sync_folder(self._folder / SEGMENTS)  # files first, then rows: no file becomes unknown
            delete = "DELETE FROM segments WHERE id = ? AND live = 0"
            self._writer.run(lambda database, _: database.executemany(delete, gone))


def _outlived(database: sqlite3.Connection, rules: _Rules, now_ms: int, end: int) -> Iterator[tuple[int, int]]:
    """Old records in steps: (next offset, bytes so far). A record of unknown age goes with the next one."""
    before_ms = None if rules.retention_ms is None else now_ms - rules.retention_ms
    start, reached, seen = rules.first, rules.first, 0
    while True:
        rows = database.execute(
            f"SELECT id, {TIME_MS}, {_SIZE} FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
            (row_id(rules.id, start), row_id(rules.id, end), _ROWS),
        ).fetchall()
        stop, size, is_through = reached, 0, len(rows) < _ROWS
        for row, timestamp_ms, row_bytes in rows:
            too_old = None not in (before_ms, timestamp_ms) and timestamp_ms < before_ms
            too_much = rules.retention_bytes is not None and rules.bytes - seen > rules.retention_bytes
            seen += row_bytes
            if too_old or too_much:
                stop, size = offset_of(row) + 1, seen
            elif timestamp_ms is not None and timestamp_ms <= now_ms:
                is_through = True
                break
        if stop > reached:
            yield stop, size
        if is_through:
            return
        start, reached = offset_of(rows[-1][0]) + 1, stop


def _count_old(database: sqlite3.Connection, rules: _Rules, now_ms: int, end: int) -> int:
    steps = _outlived(database, rules._replace(retention_bytes=None), now_ms, end)
    return max((stop for stop, _ in steps), default=rules.first) - rules.first


def forget_records(database: sqlite3.Connection, partition: int, where: str, values: Sequence[int]) -> int:
    """Delete records and update the counts of their segments and partition; returns their bytes."""
    segments = database.execute(
        f"SELECT segment, count(*) FROM records WHERE {where} AND typeof(segment) = 'integer' GROUP BY segment", values
    ).fetchall()
    (size,) = database.execute(f"SELECT coalesce(sum({_SIZE}), 0) FROM records WHERE {where}", values).fetchone()
    database.execute(f"DELETE FROM records WHERE {where}", values)
    database.executemany(
        "UPDATE segments SET live = live - ? WHERE id = ?", [(count, segment) for segment, count in segments]
    )
    database.execute("UPDATE partitions SET bytes = bytes - ? WHERE id = ?", (size, partition))
    return int(size)


def cut_off(database: sqlite3.Connection, stops: Mapping[int, int]) -> None:
    """Delete the records of each partition (by id) below an offset, in a transaction."""
    for partition, stop in stops.items():
        database.execute("UPDATE partitions SET first = max(first, min(next, ?)) WHERE id = ?", (stop, partition))
        forget_records(database, partition, "id >= ? AND id < ?", (row_id(partition, 0), row_id(partition, stop)))
