"""Committed keyed state in the embedded log's database."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from stream.embedded.database import translate


class EmbeddedState:
    """State of one partition of one store (a `StateReader`). Raises LogUnavailable when the database is locked."""

    def __init__(self, database: sqlite3.Connection, folder: Path, store: str, partition: int) -> None:
        self._database = database
        self._folder = folder
        self._name = (store, partition)
        self._slot: int | None = None

    def get(self, key: bytes) -> bytes | None:
        found = self._rows("SELECT value FROM state WHERE slot = ? AND key = ?", key)
        return found[0][0] if found else None

    def scan(self, prefix: bytes, limit: int, after: bytes | None = None) -> list[tuple[bytes, bytes]]:
        start, where = prefix, "key >= ?"
        if after is not None and after >= prefix:
            start, where = after, "key > ?"
        stop = _beyond(prefix)
        if stop is None:
            return self._rows(
                f"SELECT key, value FROM state WHERE slot = ? AND {where} ORDER BY key LIMIT ?", start, limit
            )
        return self._rows(
            f"SELECT key, value FROM state WHERE slot = ? AND {where} AND key < ? ORDER BY key LIMIT ?",
            start,
            stop,
            limit,
        )

    def due(self, now_ms: int, limit: int) -> list[tuple[bytes, bytes, int]]:
        return self._rows(
            "SELECT key, value, due_at FROM state WHERE slot = ? AND due_at IS NOT NULL AND due_at <= ?"
            " ORDER BY due_at, key LIMIT ?",
            now_ms,
            limit,
        )

    def next_due(self) -> int | None:
        found = self._rows(
            "SELECT due_at FROM state WHERE slot = ? AND due_at IS NOT NULL ORDER BY due_at, key LIMIT 1"
        )
        return found[0][0] if found else None

    def _rows(self, query: str, *values: object) -> list[Any]:
        try:
            if self._slot is None:
                found = self._database.execute(
                    "SELECT id FROM slots WHERE store = ? AND partition = ?", self._name
                ).fetchone()
                if found is None:  # nothing was committed yet
                    return []
                self._slot = found[0]
            return self._database.execute(query, (self._slot, *values)).fetchall()
        except (sqlite3.DatabaseError, OSError) as error:  # what `told` does, which is slow for so many reads
            translated = translate(error, self._folder)
            if translated is error:
                raise
            raise translated from error


def _beyond(prefix: bytes) -> bytes | None:
    """The smallest key above all that start with prefix; None when there is none."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1]) if trimmed else None
