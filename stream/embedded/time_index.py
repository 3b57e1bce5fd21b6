"""Finds records by time without reading all of them.

The clock may step back, so records are not in order of time. This index remembers the greatest timestamp of each full
block of offsets, and skips blocks with a too small one. Removed records may only leave it too large.
"""

from __future__ import annotations

import sqlite3

from stream.embedded.database import TIME_MS
from stream.embedded.topics import offset_of, row_id

_BLOCK = 512  # offsets
_NONE = -(2**63)  # the greatest timestamp of no record


class Times:
    """The time index of one process. Thread safe; ids of partitions are never reused."""

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
                    f"SELECT coalesce(max({TIME_MS}), ?) FROM records WHERE id >= ? AND id < ?", (_NONE, *bounds)
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
