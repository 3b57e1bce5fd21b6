"""Keyed state of one partition during a batch: committed state below, staged changes above.

Reads see what the batch has staged. Nothing is written until the loop commits `changes()`; a rollback drops the object.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from stream.log import Change, StateReader


class KeyedState:
    """key -> bytes, with an optional due time and an index on it. Keys order as bytes."""

    def __init__(self, committed: StateReader) -> None:
        """Stage changes over `committed`."""
        self._committed = committed
        self._staged: dict[bytes, Change] = {}

    def get(self, key: bytes) -> bytes | None:
        """The value of key, staged changes included, or None."""
        change = self._staged.get(key)
        return change.value if change is not None else self._committed.get(key)

    def put(self, key: bytes, value: bytes, due_at: int | None = None) -> None:
        """Set key to value; `due_at` (ms) enters the due index, None leaves it."""
        self._staged[key] = Change(key, value, due_at)

    def delete(self, key: bytes) -> None:
        """Remove key, if it is there."""
        self._staged[key] = Change(key, None)

    def scan(self, prefix: bytes, limit: int, after: bytes | None = None) -> list[tuple[bytes, bytes]]:
        """Up to `limit` (key, value) whose key starts with prefix, in key order, keys > `after` if given."""
        if limit <= 0:
            return []
        staged = sorted(
            (key, change.value)
            for key, change in self._staged.items()
            if key.startswith(prefix) and (after is None or key > after)
        )
        found: list[tuple[bytes, bytes]] = []
        for key, value in heapq.merge(self._scan_committed(prefix, limit, after), staged, key=lambda item: item[0]):
            if value is not None:
                found.append((key, value))
                if len(found) == limit:
                    break
        return found

    def due(self, now_ms: int, limit: int) -> list[tuple[bytes, bytes, int]]:
        """Up to `limit` (key, value, due_at) with due_at <= now_ms, oldest due first, ties by key."""
        staged = sorted(
            (change.due_at, key, change.value)
            for key, change in self._staged.items()
            if change.due_at is not None and change.due_at <= now_ms and change.value is not None
        )
        committed = (
            (due_at, key, value)
            for key, value, due_at in self._committed.due(now_ms, limit + len(self._staged))
            if key not in self._staged
        )
        merged = heapq.merge(committed, staged)
        return [(key, value, due_at) for (due_at, key, value), _ in zip(merged, range(limit), strict=False)]

    def changes(self) -> list[Change]:
        """What was staged, one change per key."""
        return list(self._staged.values())

    def fork(self) -> KeyedState:
        """Stage on top of this; `merge` it back, or drop it to undo one record's changes."""
        return KeyedState(self)

    def merge(self, fork: KeyedState) -> None:
        """Take over what a fork has staged."""
        self._staged.update(fork._staged)

    def next_due(self) -> int | None:
        """The earliest due time, or None; staged removals may make it early, never late."""
        staged = [c.due_at for c in self._staged.values() if c.due_at is not None and c.value is not None]
        committed = self._committed.next_due()
        return min([*staged, *([] if committed is None else [committed])], default=None)

    def count(self) -> int:
        """Number of committed keys, staged ones not counted."""
        return self._committed.count()

    def _scan_committed(self, prefix: bytes, limit: int, after: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Committed rows without the staged keys, read on page by page where staged deletions thin them out."""
        while True:
            rows = self._committed.scan(prefix, limit, after)
            for key, value in rows:
                if key not in self._staged:
                    yield key, value
            if len(rows) < limit:
                return
            after = rows[-1][0]
