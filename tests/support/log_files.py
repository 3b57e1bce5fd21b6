"""The files of an embedded log, changed behind its back."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any


def sql(folder: Path, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run one statement on the log's database, and commit it."""
    with closing(sqlite3.connect(folder / "log.sqlite", isolation_level=None)) as database:
        return database.execute(statement, values).fetchall()


def lose_page(folder: Path, value: bytes) -> None:
    """Break the first page of 16 KiB that is all `value`: the bytes of a long value go on over such pages."""
    sql(folder, "PRAGMA wal_checkpoint(TRUNCATE)")
    file = folder / "log.sqlite"
    data = bytearray(file.read_bytes())
    page = data.index(value * 16_000) // 16_384 * 16_384
    data[page : page + 4] = b"\xff\xff\xff\xff"  # the number of the next page
    file.write_bytes(data)


def segments(folder: Path) -> set[Path]:
    return set((folder / "segments").iterdir())
