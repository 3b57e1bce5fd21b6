"""Keyed state in memory, with its due index."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable

from stream.log.contract import StateChange


class MemoryState:
    """State of one partition of one store (a `StateReader`); the keys and the due times are kept sorted."""

    def __init__(self) -> None:
        self._rows: dict[bytes, tuple[bytes, int | None]] = {}
        self._keys: list[bytes] = []
        self._due: list[tuple[int, bytes]] = []

    def apply(self, changes: Iterable[StateChange]) -> None:
        for change in changes:
            self._remove(change.key)
            if change.value is not None:
                self._rows[change.key] = (change.value, change.due_at)
                insort(self._keys, change.key)
                if change.due_at is not None:
                    insort(self._due, (change.due_at, change.key))

    def get(self, key: bytes) -> bytes | None:
        row = self._rows.get(key)
        return None if row is None else row[0]

    def scan(self, prefix: bytes, limit: int, after: bytes | None = None) -> list[tuple[bytes, bytes]]:
        start = bisect_left(self._keys, prefix)
        if after is not None:
            start = max(start, bisect_right(self._keys, after))
        found: list[tuple[bytes, bytes]] = []
        for place in range(start, min(start + limit, len(self._keys))):
            key = self._keys[place]
            if not key.startswith(prefix):
                break
            found.append((key, self._rows[key][0]))
        return found

    def due(self, now_ms: int, limit: int) -> list[tuple[bytes, bytes, int]]:
        ripe = self._due[: min(limit, bisect_left(self._due, (now_ms + 1, b"")))]
        return [(key, self._rows[key][0], due_at) for due_at, key in ripe]

    def next_due(self) -> int | None:
        return self._due[0][0] if self._due else None

    def _remove(self, key: bytes) -> None:
        row = self._rows.pop(key, None)
        if row is None:
            return
        del self._keys[bisect_left(self._keys, key)]
        if row[1] is not None:
            del self._due[bisect_left(self._due, (row[1], key))]
