"""Committed keyed state in the embedded log's database."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from stream.embedded.database import translate
from stream.log.sql_state import SqlState


class EmbeddedState(SqlState):
    """State of one partition of one store (a `StateReader`). Raises LogUnavailable when the database is locked."""

    def __init__(self, database: sqlite3.Connection, folder: Path, store: str, partition: int) -> None:
        self._database = database
        self._folder = folder
        self._name = (store, partition)
        self._slot: int | None = None

    def _rows(self, columns: str, where: str, *values: object) -> list[Any]:
        try:
            if self._slot is None:
                found = self._database.execute(
                    "SELECT id FROM slots WHERE store = ? AND partition = ?", self._name
                ).fetchone()
                if found is None:  # nothing was committed yet
                    return []
                self._slot = found[0]
            query = f"SELECT {columns} FROM state WHERE slot = ? AND {where}"
            return self._database.execute(query, (self._slot, *values)).fetchall()
        except (sqlite3.DatabaseError, OSError) as error:  # as `translated_errors`, which is slow for so many reads
            translated = translate(error, self._folder)
            if translated is error:
                raise
            raise translated from error
