"""Keyed state in a SQLite table `state (key, value, due_at)`; subclasses provide the access."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from stream.log.contract import StateChange

_PAGE = 200  # entries per read of a whole state
STATE_TABLE = """
CREATE TABLE state (key BLOB PRIMARY KEY, value BLOB NOT NULL, due_at INTEGER) WITHOUT ROWID;
CREATE INDEX state_due ON state (due_at, key) WHERE due_at IS NOT NULL;
"""


class SqlState:
    """A `StateReader`. Keys order as bytes in SQLite too."""

    _db: sqlite3.Connection

    def _rows(self, columns: str, where: str, *values: object) -> list[Any]:
        """Select `columns` of this state's rows; `where` may end with ORDER BY and LIMIT."""
        return self._db.execute(f"SELECT {columns} FROM state WHERE {where}", values).fetchall()

    def _write(self, changes: Iterable[StateChange]) -> None:
        """Apply changes in order."""
        last = {change.key: change for change in changes}.values()
        self._db.executemany("DELETE FROM state WHERE key = ?", [(c.key,) for c in last if c.value is None])
        self._db.executemany(
            "INSERT INTO state VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET value = excluded.value, due_at = excluded.due_at",
            [(c.key, c.value, c.due_at) for c in last if c.value is not None],
        )

    def get(self, key: bytes) -> bytes | None:
        rows = self._rows("value", "key = ?", key)
        return rows[0][0] if rows else None

    def scan(self, prefix: bytes, limit: int, after: bytes | None = None) -> list[tuple[bytes, bytes]]:
        # Only one lower bound: of two, SQLite might seek to the smaller one and read all rows up to `after`.
        where, values = ("key > ?", [after]) if after is not None and after >= prefix else ("key >= ?", [prefix])
        if trimmed := prefix.rstrip(b"\xff"):  # the smallest key above all keys with the prefix
            end = trimmed[:-1] + bytes([trimmed[-1] + 1])
            where, values = f"{where} AND key < ?", [*values, end]
        return self._rows("key, value", f"{where} ORDER BY key LIMIT ?", *values, limit)

    def entries(self, limit: int, after: bytes | None = None) -> list[StateChange]:
        """Up to `limit` entries with their due times, in key order, keys > `after` if given."""
        where = "key >= ?" if after is None else "key > ?"
        rows = self._rows("key, value, due_at", f"{where} ORDER BY key LIMIT ?", after or b"", limit)
        return [StateChange(*row) for row in rows]

    def due(self, now_ms: int, limit: int) -> list[tuple[bytes, bytes, int]]:
        where = "due_at IS NOT NULL AND due_at <= ? ORDER BY due_at, key LIMIT ?"
        return self._rows("key, value, due_at", where, now_ms, limit)

    def next_due(self) -> int | None:
        rows = self._rows("due_at", "due_at IS NOT NULL ORDER BY due_at, key LIMIT 1")
        return rows[0][0] if rows else None


class MemoryState(SqlState):
    """Keyed state of one partition that ends with the process."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._db.executescript(STATE_TABLE)

    def apply(self, changes: Iterable[StateChange]) -> None:
        self._write(changes)


def all_entries(read: Callable[[int, bytes | None], Sequence[StateChange]]) -> Iterator[StateChange]:
    """All entries of a state, page by page, see `SqlState.entries`."""
    after: bytes | None = None
    while page := read(_PAGE, after):
        yield from page
        after = page[-1].key
