"""Reading records of the embedded log: ranges of offsets, values inline or from segment files."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from stream.embedded_schema import SEGMENTS, connect
from stream.embedded_topics import Stored, offset_of, row_id
from stream.errors import UnknownTopic
from stream.log import NO_HEADERS, At, Message
from stream.segments import LogDamaged, Place, SegmentReader

_COLUMNS = "id, key, value, headers, timestamp_ms, segment, position, size, checksum"


class Row:
    """A record's row; its value is filled in by `RecordReader.load` when it lies in a segment."""

    __slots__ = ("at", "checksum", "headers", "id", "key", "position", "segment", "size", "timestamp_ms", "value")

    def __init__(self, at: At, columns: tuple[Any, ...]) -> None:
        self.at = at
        (self.id, self.key, self.value, self.headers, self.timestamp_ms) = columns[:5]
        (self.segment, self.position, self.size, self.checksum) = columns[5:]

    @property
    def offset(self) -> int:
        """Offset within the partition."""
        return offset_of(self.id)

    def message(self) -> Message:
        """The record as its readers see it."""
        headers = msgspec.msgpack.decode(self.headers) if self.headers else NO_HEADERS
        return Message(*self.at, offset_of(self.id), self.key, self.value, headers, self.timestamp_ms)


class RecordReader:
    """A reading connection with its open segment files; used by one thread at a time.

    Every statement is finished at once, so no snapshot stays open and holds back checkpoints.
    """

    def __init__(self, folder: Path, lock_timeout_s: float, how: str = "mode=rw") -> None:
        self.database: sqlite3.Connection = connect(folder, lock_timeout_s, how)
        self._folder = folder
        self._segments = SegmentReader(folder / SEGMENTS)
        self._files: dict[int, str] = {}

    def changes(self) -> int:
        """A number that moves when any other connection has committed; costs microseconds."""
        (version,) = self.database.execute("PRAGMA data_version").fetchone()
        return int(version)

    def bounds(self, topics: Sequence[Stored]) -> dict[At, tuple[int, int]]:
        """First kept offset and end of every partition of `topics`, in one query. Raises UnknownTopic."""
        names = {topic.id: topic.name for topic in topics}
        rows = self.database.execute(
            f"SELECT topic, partition, first, next FROM partitions WHERE topic IN ({_marks(names)})", tuple(names)
        )
        found = {At(names[topic], partition): (first, end) for topic, partition, first, end in rows.fetchall()}
        if len(found) < sum(topic.partitions for topic in topics):
            gone = sorted({topic.name for topic in topics} - {at.topic for at in found})
            raise UnknownTopic(f"topic {', '.join(gone)} was removed: join again once it is there again")
        return found

    def rows(self, topic: Stored, partition: int, start: int, stop: int, max_records: int, max_bytes: int) -> list[Row]:
        """Rows with start <= offset < stop, in order, up to the one with which their values reach max_bytes."""
        base, at = topic.partition_id(partition), At(topic.name, partition)
        found = self.database.execute(
            f"SELECT {_COLUMNS} FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
            (row_id(base, start), row_id(base, stop), max_records),
        )
        rows: list[Row] = []
        for columns in found:
            rows.append(Row(at, columns))
            max_bytes -= rows[-1].size
            if max_bytes <= 0:
                break
        found.close()
        return rows

    def load(self, rows: Sequence[Row]) -> list[Row]:
        """Fill in the values that lie in segments.

        Rows that retention has removed in the meantime are left out. Raises LogDamaged.
        """
        wanted: dict[int, list[Row]] = {}
        for row in rows:
            if row.segment is not None:
                wanted.setdefault(row.segment, []).append(row)
        gone: set[int] = set()
        for segment, held in wanted.items():
            held.sort(key=lambda row: row.position)
            if not self._fill(segment, held):
                gone.update(row.id for row in held)
        return [row for row in rows if row.id not in gone] if gone else list(rows)

    def close(self) -> None:
        """Close connection and files."""
        self._segments.close()
        self.database.close()

    def _fill(self, segment: int, rows: Sequence[Row]) -> bool:
        """Read the values of one segment; False when retention has removed them."""
        file = self._file(segment)
        if file is not None:
            places = [Place(segment, row.position, row.size, row.checksum) for row in rows]
            try:
                values = self._segments.read(file, places)
            except FileNotFoundError:
                pass
            else:
                for row, value in zip(rows, values, strict=True):
                    row.value = value
                return True
        still = self.database.execute(
            f"SELECT count(*) FROM records WHERE id IN ({_marks(rows)})", [row.id for row in rows]
        ).fetchone()[0]
        if still:
            raise LogDamaged(
                f"segment {self._folder / SEGMENTS / (file or str(segment))} is missing from byte {rows[0].position}: "
                f"{still} records need it; restore the folder from a backup"
            )
        return False

    def _file(self, segment: int) -> str | None:
        file = self._files.get(segment)
        if file is None:
            found = self.database.execute("SELECT file FROM segments WHERE id = ?", (segment,)).fetchone()
            if found is None:
                return None
            file = self._files[segment] = found[0]
        return file


def _marks(values: Sequence[object] | dict[int, str]) -> str:
    return ", ".join("?" * len(values))
