"""Returns the free pages of the database to the file system.

`give_back` moves pages from the end of the file into free pages and cuts the file, a few at a time, so that others
write in between. This needs a database with `auto_vacuum = INCREMENTAL`, which SQLite only sets in an empty one.
`rewrite` serves erasing: no deleted bytes stay.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep

from stream.embedded.database import DATABASE, connect, translated_errors
from stream.embedded.writer import Writer
from stream.log.errors import LogUnavailable

_COUNTS = ("freelist_count", "page_count", "page_size")
_FREE_SHARE = 0.1  # of the file; fewer free pages are left for the next records
_LEAST_PAGES = 512  # 8 MiB
_STEP_PAGES = 128  # per transaction: 2 MiB, some milliseconds
_ROUND_S = 10.0
_ROOM = 2.2  # bytes of free disk that a rewrite needs per byte of content: a copy, and the WAL


def give_back(database: sqlite3.Connection, writer: Writer, clock: Callable[[], float] = monotonic) -> int:
    """Cut free pages off the file, for `_ROUND_S` at most; returns the bytes. The file shrinks with a checkpoint."""

    def cut(database: sqlite3.Connection, _: object) -> None:
        for _page in range(_STEP_PAGES):
            # Python's module steps a statement without columns once, and a step cuts one page
            database.execute("PRAGMA incremental_vacuum(1)")

    free, pages, page_bytes = _pages(database)
    if free < _LEAST_PAGES or free < pages * _FREE_SHARE:
        return 0
    before, until = free, clock() + _ROUND_S
    while free > pages * _FREE_SHARE / 2 and clock() < until:
        writer.run(cut)
        left, pages, _ = _pages(database)
        if left >= free:
            break
        free = left
    return max(0, before - free) * page_bytes


def rewrite(folder: Path, lock_timeout_s: float, wait_s: float = 0.0) -> bool:
    """Rewrite the database without free pages, and empty the WAL; a crash leaves the old one.

    Others cannot write meanwhile. Returns False if a process reads old pages for longer than `wait_s`, so that the WAL
    stays. Raises LogUnavailable if another process writes for so long, or if the disk has no room.
    """
    with translated_errors(folder), closing(connect(folder, lock_timeout_s)) as database:
        free_pages, pages, page_bytes = _pages(database)
        needed = (pages - free_pages) * page_bytes * _ROOM
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise LogUnavailable(
                f"{folder / DATABASE} is not rewritten: that needs {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free"
            )
        # a copy in memory might not fit, and the system's temporary folder may be small or in memory
        database.execute("PRAGMA temp_store = FILE")
        place = str(folder).replace("'", "''")
        database.execute(f"PRAGMA temp_store_directory = '{place}'")
        try:
            _retry(lambda: database.execute("VACUUM") is not None, wait_s)
        finally:
            database.execute("PRAGMA temp_store_directory = ''")
        return _retry(lambda: database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0, wait_s)


def _retry(step: Callable[[], bool], wait_s: float) -> bool:
    """Repeat a step that is busy."""
    give_up_at = monotonic() + wait_s
    while True:
        try:
            if step():
                return True
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > give_up_at:
                raise
        if monotonic() > give_up_at:
            return False
        sleep(0.05)


def _pages(database: sqlite3.Connection) -> tuple[int, int, int]:
    """Free pages, all pages, and the bytes of one."""
    free, pages, size = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in _COUNTS)
    return free, pages, size
