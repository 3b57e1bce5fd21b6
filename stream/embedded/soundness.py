"""Finds damage in the database: SQLite looks only at the pages that a query reads.

The check reads the whole file: 2 s for a GB in memory, 8 s from a disk with 120 MB/s. So the log is checked only
when it is opened with a WAL that no process has open: the sign of an unclean end, unless other processes went on.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import time
import weakref
from pathlib import Path

from stream.embedded.database import DATABASE, SEGMENTS, connect, translated_errors
from stream.embedded.segments import LogDamaged
from stream.log.file_lock import try_lock
from stream.log.private_folders import make_private

_FAULTS = 100  # of which some may concern single values
_OF_A_VALUE = "NULL value in "  # the reader of the record finds it
_LOOK_S = 0.05


def require_sound(database: sqlite3.Connection, folder: Path) -> None:
    """Raises LogDamaged, or sqlite3.DatabaseError, if a page of the database is damaged."""
    for (fault,) in database.execute(f"PRAGMA quick_check({_FAULTS})").fetchall():
        if fault != "ok" and not fault.startswith(_OF_A_VALUE):
            raise LogDamaged(
                f"{folder / DATABASE} is damaged ({' '.join(fault.split())}): check the disk and restore the folder"
                " from a backup"
            )


class Presence:
    """Marks the log as open for writing by this process, until `leave`: a lock on its folder."""

    def __init__(self, folder: Path, lock_timeout_s: float) -> None:
        """Check the database after an unclean end. Raises LogDamaged, LogUnavailable."""
        with translated_errors(folder):
            make_private(folder / SEGMENTS)
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self.leave = weakref.finalize(self, os.close, held)
            try:
                while not try_lock(held, fcntl.LOCK_EX):
                    if try_lock(held, fcntl.LOCK_SH):  # others have it open
                        return
                    time.sleep(_LOOK_S)  # another process checks
                with contextlib.suppress(FileNotFoundError):
                    if (folder / f"{DATABASE}-wal").stat().st_size:  # an unclean end
                        # read only, for it leaves the WAL: the next opening checks again
                        with contextlib.closing(connect(folder, lock_timeout_s, "mode=ro")) as database:
                            require_sound(database, folder)
            except BaseException:
                self.leave()
                raise
            fcntl.flock(held, fcntl.LOCK_SH)
