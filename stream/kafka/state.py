"""A local copy of one partition's keyed state: a SQLite file with the state and its changelog offset.

The changelog on Kafka is the source of truth; a missing file is rebuilt. The file only holds committed changes: each is
applied after its transaction, together with the next offset, in one SQLite transaction. A file that lags after a crash
catches up from its offset; a file never leads.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterable
from pathlib import Path

from stream.log.contract import StateChange
from stream.log.errors import Fenced, LogUnavailable
from stream.log.private_folders import make_private
from stream.log.sql_state import STATE_TABLE, SqlState

_FORMAT = 3  # files of another format are rebuilt from the changelog
_DUE = struct.Struct(">q")
_NEVER_DUE = -(2**63)
_APPLIED = "CREATE TABLE applied (changelog TEXT NOT NULL, next_offset INTEGER NOT NULL, touched_ms INTEGER NOT NULL);"


def encode_change(change: StateChange) -> bytes | None:
    """Encode a change for its changelog record: due time (8 bytes, big endian) and value; None deletes."""
    if change.value is None:
        return None
    return _DUE.pack(_NEVER_DUE if change.due_at is None else change.due_at) + change.value


def decode_change(key: bytes, value: bytes | None) -> StateChange:
    """Decode the change of a changelog record."""
    if value is None:
        return StateChange(key, None)
    due_at = _DUE.unpack_from(value)[0]
    return StateChange(key, value[_DUE.size :], None if due_at == _NEVER_DUE else due_at)


class LocalState(SqlState):
    """Keyed state of one partition up to a changelog offset; a `StateReader`."""

    def __init__(self, path: Path, changelog_id: str, *, now_ms: int, max_age_ms: int) -> None:
        """Open the file; reset it for another changelog, or after `max_age_ms`, when the broker may drop tombstones."""
        self._path = path
        try:
            self._db = self._open(changelog_id, now_ms, max_age_ms)
            row = self._db.execute("SELECT next_offset FROM applied").fetchone()
            self.next_offset = int(row[0])
        except (sqlite3.Error, OSError) as error:
            raise LogUnavailable(f"local state {path}: {error}; check the disk, the file may be deleted") from error

    def apply(self, changes: Iterable[StateChange], next_offset: int, now_ms: int) -> None:
        """Apply committed changes. Raises LogUnavailable, and Fenced if another process has changed the file."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            with self._db:
                moved = self._db.execute(
                    "UPDATE applied SET next_offset = ?, touched_ms = ? WHERE next_offset = ?",
                    (next_offset, now_ms, self.next_offset),
                )
                if moved.rowcount != 1:
                    raise Fenced(f"another process of the same member name writes the local state {self._path}")
                self._write(changes)
        except sqlite3.Error as error:
            raise LogUnavailable(f"local state {self._path}: {error}; check the disk") from error
        self.next_offset = next_offset

    def close(self) -> None:
        self._db.close()

    def _open(self, changelog_id: str, now_ms: int, max_age_ms: int) -> sqlite3.Connection:
        make_private(self._path.parent)
        if self._path.exists():
            try:
                db = _connect(self._path)
                if db.execute("PRAGMA user_version").fetchone()[0] == _FORMAT:
                    changelog, touched_ms = db.execute("SELECT changelog, touched_ms FROM applied").fetchone()
                    if changelog == changelog_id and touched_ms >= now_ms - max_age_ms:
                        return db
                db.close()
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):  # locked or disk full: keep the file
                    raise
        for name in (self._path.name, f"{self._path.name}-wal", f"{self._path.name}-shm"):
            self._path.with_name(name).unlink(missing_ok=True)
        db = _connect(self._path)
        db.executescript(f"BEGIN; {STATE_TABLE} {_APPLIED} PRAGMA user_version = {_FORMAT}; COMMIT;")
        db.execute("INSERT INTO applied VALUES (?, 0, ?)", (changelog_id, now_ms))
        return db


def _connect(path: Path) -> sqlite3.Connection:
    # Another thread than the creating one may use it, one at a time.
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
    db.execute("PRAGMA page_size = 8192")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")  # after a power cut the file lags and catches up from the changelog
    return db
