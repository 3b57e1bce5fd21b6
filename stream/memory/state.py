"""Keyed state that ends with the process."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from stream.log.contract import StateChange
from stream.log.sql_state import STATE_TABLE, SqlState


class MemoryState(SqlState):
    """State of one partition of one store (a `StateReader`)."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._db.executescript(STATE_TABLE)

    def apply(self, changes: Iterable[StateChange]) -> None:
        self._write(changes)
