"""Local copy of one partition's keyed state: a SQLite file that holds the state and the changelog offset it reflects.

The changelog on Kafka is the truth; this file may vanish at any time and is then rebuilt. It only ever holds what was
committed: changes are applied after their transaction, together with the offset that comes next, in one SQLite
transaction. So a file that lags (a crash between the two) is caught up from that offset, and one that leads cannot be.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from stream.log.contract import StateChange
from stream.log.errors import Fenced, LogUnavailable
from stream.log.private_folders import make_private
from stream.log.sql_state import STATE_TABLE, SqlState

_FORMAT = 3  # a file of another one is rebuilt from the changelog
_DUE = struct.Struct(">q")
_NEVER_DUE = -(2**63)
_APPLIED = "CREATE TABLE applied (changelog TEXT NOT NULL, next_offset INTEGER NOT NULL, touched_ms INTEGER NOT NULL);"


def encode_change(change: StateChange) -> bytes | None:
    """A change as the value of its changelog record: due time (8 bytes, big endian) and value; None deletes."""
    if change.value is None:
        return None
    return _DUE.pack(_NEVER_DUE if change.due_at is None else change.due_at) + change.value


def decode_change(key: bytes, value: bytes | None) -> StateChange:
    """The change of a changelog record."""
    if value is None:
        return StateChange(key, None)
    due_at = _DUE.unpack_from(value)[0]
    return StateChange(key, value[_DUE.size :], None if due_at == _NEVER_DUE else due_at)


class LocalState(SqlState):
    """Keyed state of one partition up to a changelog offset. Reads are those of `StateReader`."""

    def __init__(self, path: Path, changelog_id: str, *, now_ms: int, max_age_ms: int) -> None:
        """Open, or begin anew for another changelog or after `max_age_ms`, when the broker may drop tombstones."""
        self._path = path
        try:
            self._db = self._open(changelog_id, now_ms, max_age_ms)
            found = self._db.execute("SELECT next_offset FROM applied").fetchone()
            self._next = int(found[0])
        except (sqlite3.Error, OSError) as error:
            raise LogUnavailable(f"local state {path}: {error}; check the disk, the file may be deleted") from error

    @property
    def next_offset(self) -> int:
        return self._next

    def apply(self, changes: Iterable[StateChange], next_offset: int, now_ms: int) -> None:
        """Apply committed changes. Raises Fenced where another process moved the file on, LogUnavailable."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            with self._db:
                moved = self._db.execute(
                    "UPDATE applied SET next_offset = ?, touched_ms = ? WHERE next_offset = ?",
                    (next_offset, now_ms, self._next),
                )
                if moved.rowcount != 1:
                    raise Fenced(f"local state {self._path} is written by another process of the same member name")
                self._write(changes)
        except sqlite3.Error as error:
            raise LogUnavailable(f"local state {self._path}: {error}; check the disk") from error
        self._next = next_offset

    def close(self) -> None:
        self._db.close()

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        after: bytes | None = None
        while page := self.scan(b"", 1000, after):
            yield from page
            after = page[-1][0]

    def _open(self, changelog_id: str, now_ms: int, max_age_ms: int) -> sqlite3.Connection:
        make_private(self._path.parent)
        if self._path.exists():
            try:
                db = _connect(self._path)
                if _is_usable(db, changelog_id, now_ms - max_age_ms):
                    return db
                db.close()
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):  # locked or full: not a reason to throw it away
                    raise
        for name in (self._path.name, f"{self._path.name}-wal", f"{self._path.name}-shm"):
            self._path.with_name(name).unlink(missing_ok=True)
        db = _connect(self._path)
        db.executescript(f"BEGIN; {STATE_TABLE} {_APPLIED} PRAGMA user_version = {_FORMAT}; COMMIT;")
        db.execute("INSERT INTO applied VALUES (?, 0, ?)", (changelog_id, now_ms))
        return db


def _connect(path: Path) -> sqlite3.Connection:
    # The loop may be built in one thread and run in another; it is never used by two at a time.
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
    db.execute("PRAGMA page_size = 8192")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")  # after a power cut the file lags, and is caught up from the changelog
    return db


def _is_usable(db: sqlite3.Connection, changelog_id: str, oldest_ms: int) -> bool:
    if db.execute("PRAGMA user_version").fetchone()[0] != _FORMAT:
        return False
    changelog, touched_ms = db.execute("SELECT changelog, touched_ms FROM applied").fetchone()
    return bool(changelog == changelog_id and touched_ms >= oldest_ms)
