"""Reads the embedded log: records by ranges of offsets, values inline or from segment files, and keyed state."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from stream.embedded.database import DATABASE, SEGMENTS, TIME_MS, connect, content_checksum, row_checksum, translate
from stream.embedded.segments import SegmentReader
from stream.embedded.topics import StoredTopic, offset_of, row_id
from stream.log.contract import NO_HEADERS, At, Message
from stream.log.errors import LogUnavailable, UnknownTopic
from stream.log.sql_state import SqlState

_BLOCK = 512  # offsets of the index by time
_NO_TIME = -(2**63)  # the greatest timestamp of no record
_headers = msgspec.msgpack.Decoder(dict[str, str])
# A flipped bit may change the type of a column: the casts restore bytes and integers.
_COLUMNS = (
    "id, CAST(coalesce(key, x'') AS BLOB), CAST(value AS BLOB), CAST(headers AS BLOB), timestamp_ms,"
    " segment, CAST(coalesce(position, -1) AS INTEGER), CAST(coalesce(size, -1) AS INTEGER), checksum"
)


class StoredRow(msgspec.Struct):
    """A record's row; `RecordReader.messages` adds a value that is in a segment."""

    at: At
    id: int
    key: bytes
    value: bytes | None
    headers: bytes | None
    timestamp_ms: int
    segment: int | None
    position: int
    size: int
    checksum: object
    fault: str = ""
    may_return: bool = False

    @property
    def offset(self) -> int:
        return offset_of(self.id)

    def message(self, place_of: Callable[[StoredRow], str]) -> Message:
        """The record, with a description of any damage; `place_of` names the place of its bytes."""
        value, headers = self.value, NO_HEADERS
        size = 0 if value is None else len(value)
        if self.fault:
            pass
        elif not isinstance(self.timestamp_ms, int):
            self.fault, self.timestamp_ms = "its timestamp is no number", 0
        elif size != self.size:
            self.fault = f"{size} of {self.size} bytes are there"
        elif self.checksum != row_checksum(content_checksum(self.timestamp_ms, self.key, self.headers, value), self.id):
            self.fault = f"the checksum of {size} bytes differs"
        if self.headers:
            try:
                headers = _headers.decode(self.headers)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                self.fault = self.fault or f"its headers cannot be decoded: {error}"
        damage = f"{place_of(self)}: {self.fault}" if self.fault else ""
        value = b"" if damage else value
        return Message(
            *self.at, self.offset, self.key, value, headers, self.timestamp_ms, damage, may_return=self.may_return
        )


class EmbeddedState(SqlState):
    """Committed state of one partition of one store (a `StateReader`). Raises LogUnavailable if locked."""

    def __init__(self, database: sqlite3.Connection, folder: Path, store: str, partition: int) -> None:
        self._db = database
        self.folder = folder
        self._name = (store, partition)
        self._slot: int | None = None

    def _rows(self, columns: str, where: str, *values: object) -> list[Any]:
        try:
            if self._slot is None:
                slot_row = self._db.execute(
                    "SELECT id FROM slots WHERE store = ? AND partition = ?", self._name
                ).fetchone()
                if slot_row is None:  # nothing was committed yet
                    return []
                self._slot = slot_row[0]
            query = f"SELECT {columns} FROM state WHERE slot = ? AND {where}"
            return self._db.execute(query, (self._slot, *values)).fetchall()
        except (sqlite3.DatabaseError, OSError) as error:  # `translated_errors` is too slow for so many reads
            translated = translate(error, self.folder)
            if translated is error:
                raise
            raise translated from error


class RecordReader:
    """A reading connection and its segment files, for one thread at a time. No snapshot stays open."""

    def __init__(self, folder: Path, lock_timeout_s: float, how: str = "mode=rw") -> None:
        self.database: sqlite3.Connection = connect(folder, lock_timeout_s, how)
        self.folder = folder
        self._segments = SegmentReader(folder / SEGMENTS)
        self._files: dict[int, str] = {}

    def changes(self) -> int:
        """A number that changes when another connection commits; takes microseconds."""
        (version,) = self.database.execute("PRAGMA data_version").fetchone()
        return int(version)

    def bounds(self, topics: Sequence[StoredTopic]) -> dict[At, tuple[int, int]]:
        """First retained offset and end of every partition of `topics`, in one query. Raises UnknownTopic."""
        names = {topic.id: topic.name for topic in topics}
        rows = self.database.execute(
            f"SELECT topic, partition, first, next FROM partitions WHERE topic IN ({_marks(names)})", tuple(names)
        )
        bounds = {At(names[topic], partition): (first, end) for topic, partition, first, end in rows.fetchall()}
        if len(bounds) < sum(topic.partitions for topic in topics):
            gone = sorted({topic.name for topic in topics} - {at.topic for at in bounds})
            raise UnknownTopic(f"topic {', '.join(gone)} was removed: join again once it is there again")
        return bounds

    def committed(self, group: str, topics: Sequence[StoredTopic]) -> dict[At, int]:
        ids = {topic.base + p: At(topic.name, p) for topic in topics for p in range(topic.partitions)}
        rows = self.database.execute("SELECT partition, next FROM offsets WHERE grp = ?", (group,)).fetchall()
        return {ids[partition]: offset for partition, offset in rows if partition in ids}

    def state(self, store: str, partition: int) -> EmbeddedState:
        return EmbeddedState(self.database, self.folder, store, partition)

    def rows(
        self, topic: StoredTopic, partition: int, start: int, stop: int, max_records: int, max_bytes: int
    ) -> list[StoredRow]:
        """Rows with start <= offset < stop, in order, until their values reach max_bytes."""
        base, at = topic.partition_id(partition), At(topic.name, partition)
        bounds = (row_id(base, start), row_id(base, stop), max_records)
        try:
            return _up_to(max_bytes, (StoredRow(at, *columns) for columns in self._select(_COLUMNS, bounds)))
        except sqlite3.DatabaseError as error:
            if isinstance(translate(error, self.folder), LogUnavailable):
                raise
        ids = self._select("id", bounds).fetchall()
        return _up_to(max_bytes, (row for (id,) in ids if (row := self._row(at, id)) is not None))

    def _select(self, columns: str, bounds: tuple[int, int, int]) -> sqlite3.Cursor:
        return self.database.execute(
            f"SELECT {columns} FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT ?", bounds
        )

    def _row(self, at: At, id: int) -> StoredRow | None:
        """One row; with a fault if SQLite cannot read it; None if it is gone."""
        try:
            columns = self._select(_COLUMNS, (id, id + 1, 1)).fetchone()
            return None if columns is None else StoredRow(at, *columns)
        except sqlite3.DatabaseError as error:
            if isinstance(translate(error, self.folder), LogUnavailable):
                raise
            return StoredRow(at, id, b"", None, None, 0, None, -1, 0, None, f"SQLite cannot read it: {error}")

    def messages(self, rows: Sequence[StoredRow]) -> list[Message]:
        """The records of these rows, with any damage, without those that retention has removed meanwhile.

        One by one: a value is checked while it is in the processor's cache.
        """
        return [row.message(self._place) for row in rows if row.segment is None or self._fill(row, row.segment)]

    def close(self) -> None:
        self._segments.close()
        self.database.close()

    def _fill(self, row: StoredRow, segment: int) -> bool:
        """Read the row's value from its segment; False if retention has removed the row meanwhile."""
        file = self._files.get(segment)
        if file is None:
            self._files |= self.database.execute("SELECT id, file FROM segments WHERE id = ?", (segment,)).fetchall()
            file = self._files.get(segment)
        row.fault = "the database knows no such segment"
        if file is not None:
            try:
                row.value = self._segments.read(file, row.position, row.size)
            except FileNotFoundError:
                row.fault, row.may_return = "the file is missing", True
            else:
                row.fault = ""
                return True
        return self.database.execute("SELECT 1 FROM records WHERE id = ?", (row.id,)).fetchone() is not None

    def _place(self, row: StoredRow) -> str:
        if row.segment is None:
            return f"{self.folder / DATABASE} is damaged in row {row.id} of records"
        file = self.folder / SEGMENTS / self._files.get(row.segment, str(row.segment))
        return f"segment {file} is damaged at byte {row.position}"


class Times:
    """Finds records by time without reading all of them. Thread safe; ids of partitions are never reused.

    The clock may step back, so records are not in order of time. This index of one process remembers the greatest
    timestamp of each full block of offsets, and skips blocks with a too small one. Removed records may only leave it
    too large.
    """

    def __init__(self) -> None:
        self._greatest: dict[int, dict[int, int]] = {}  # partition id -> first offset of a full block -> timestamp

    def offset_at(self, database: sqlite3.Connection, partition: int, first: int, end: int, time_ms: int) -> int:
        """First offset in first <= offset < end with a timestamp >= time_ms; the end if there is none."""
        oldest = first - first % _BLOCK
        known = {start: time for start, time in self._greatest.get(partition, {}).items() if start >= oldest}
        answer = end
        for start in range(oldest, end, _BLOCK):
            stop = min(start + _BLOCK, end)
            bounds = (row_id(partition, max(first, start)), row_id(partition, stop))
            greatest = known.get(start)
            if greatest is None:
                (greatest,) = database.execute(
                    f"SELECT coalesce(max({TIME_MS}), ?) FROM records WHERE id >= ? AND id < ?", (_NO_TIME, *bounds)
                ).fetchone()
                if stop == start + _BLOCK:
                    known[start] = greatest
            if greatest >= time_ms:
                row = database.execute(
                    f"SELECT id FROM records WHERE id >= ? AND id < ? AND {TIME_MS} >= ? ORDER BY id LIMIT 1",
                    (*bounds, time_ms),
                ).fetchone()
                if row is not None:
                    answer = offset_of(row[0])
                    break
        self._greatest[partition] = known
        return answer


def _up_to(max_bytes: int, rows: Iterable[StoredRow]) -> list[StoredRow]:
    taken: list[StoredRow] = []
    for row in rows:
        taken.append(row)
        max_bytes -= row.size
        if max_bytes <= 0:
            break
    return taken


def _marks(values: Sequence[object] | dict[int, str]) -> str:
    return ", ".join("?" * len(values))
