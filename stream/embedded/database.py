"""The embedded log's SQLite database: tables, opening, and translation of errors.

A record's row id is `partition id << OFFSET_BITS | offset`. So the records of a partition are stored together and in
order, and a range of offsets is a range of row ids: no second index is needed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import xxhash

from stream.embedded.segments import LogDamaged
from stream.log.errors import LogUnavailable, NoLog, SchemaTooNew
from stream.log.private_folders import give_to_owner, make_private

SCHEMA_VERSION = 2
OFFSET_BITS = 40  # 10^12 records a partition, 8 million partitions
_HEAD = struct.Struct("<qii?")  # of the checksummed bytes: timestamp, sizes of key and headers, whether a tombstone
TIME_MS = "CASE typeof(timestamp_ms) WHEN 'integer' THEN timestamp_ms END"  # NULL if the row is damaged
_NO_RIGHT = (errno.EACCES, errno.EPERM, errno.EROFS)
_REMEDY = "check the disk (dmesg)"
_REMEDIES: dict[int | None, str] = {
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free disk space (or raise the quota); the log resumes by itself"
    ),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "raise the limit of open files (ulimit -n)"),
}
_SPREAD = 0x9E3779B97F4A7C15  # 2^64 / golden ratio; odd, so distinct row ids give distinct bits
DATABASE = "log.sqlite"
SEGMENTS = "segments"

_TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE topics (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, partitions INTEGER NOT NULL, compact INTEGER NOT NULL,
        retention_ms INTEGER, retention_bytes INTEGER)""",
    # first, next: offsets; bytes: of the kept records; cleaned: compaction has seen all offsets below;
    # tombstone_at: timestamp of the oldest tombstone below `cleaned`
    """CREATE TABLE partitions (
        id INTEGER PRIMARY KEY, topic INTEGER NOT NULL, partition INTEGER NOT NULL,
        first INTEGER NOT NULL DEFAULT 0, next INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0,
        cleaned INTEGER NOT NULL DEFAULT 0, tombstone_at INTEGER, UNIQUE (topic, partition))""",
    # a value is inline, or at (segment, position); both NULL: a tombstone; checksum: see row_checksum
    """CREATE TABLE records (
        id INTEGER PRIMARY KEY, key BLOB NOT NULL, value BLOB, headers BLOB, timestamp_ms INTEGER NOT NULL,
        segment INTEGER, position INTEGER, size INTEGER NOT NULL, checksum INTEGER)""",
    # A file is entered before its first write. AUTOINCREMENT: ids are never reused, so readers may cache them;
    # live: number of records that refer to it; size: committed bytes
    """CREATE TABLE segments (
        id INTEGER PRIMARY KEY AUTOINCREMENT, file TEXT NOT NULL UNIQUE, live INTEGER NOT NULL,
        size INTEGER NOT NULL DEFAULT 0)""",
    """CREATE TABLE offsets (
        grp TEXT NOT NULL, partition INTEGER NOT NULL, next INTEGER NOT NULL,
        PRIMARY KEY (grp, partition)) WITHOUT ROWID""",
    # version: counts changes of members and leases; epoch: last one given to a lease or a member
    "CREATE TABLE groups (name TEXT PRIMARY KEY, version INTEGER NOT NULL, epoch INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE members (
        grp TEXT NOT NULL, name TEXT NOT NULL, epoch INTEGER NOT NULL, expires_at INTEGER NOT NULL,
        PRIMARY KEY (grp, name)) WITHOUT ROWID""",
    """CREATE TABLE leases (
        grp TEXT NOT NULL, partition INTEGER NOT NULL, member TEXT NOT NULL, epoch INTEGER NOT NULL,
        PRIMARY KEY (grp, partition)) WITHOUT ROWID""",
    """CREATE TABLE slots (
        id INTEGER PRIMARY KEY, store TEXT NOT NULL, partition INTEGER NOT NULL,
        UNIQUE (store, partition))""",
    """CREATE TABLE state (
        slot INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, due_at INTEGER,
        PRIMARY KEY (slot, key)) WITHOUT ROWID""",
    "CREATE INDEX state_due ON state (slot, due_at, key) WHERE due_at IS NOT NULL",
    # removed by `remove` but not deleted yet: partitions or slots (kind); no reader can find their rows
    "CREATE TABLE removed (kind TEXT, id INTEGER, PRIMARY KEY (kind, id)) WITHOUT ROWID",
)

_SETTINGS = (
    "PRAGMA synchronous = FULL",  # a commit is durable when it returns
    "PRAGMA wal_autocheckpoint = 2000",  # pages: 32 MiB between checkpoints
    "PRAGMA journal_size_limit = 134217728",
    "PRAGMA cache_size = -16384",  # KiB a connection
    "PRAGMA temp_store = MEMORY",
)


def prepare(folder: Path, lock_timeout_s: float) -> None:
    """Create missing parts. Raises LogUnavailable, LogDamaged (segments without a database too), SchemaTooNew."""
    with translated_errors(folder):
        make_private(folder / SEGMENTS)
        # In this order: meanwhile, another process may create the database and then its first segment.
        if _holds_segments(folder) and not _size(folder / DATABASE):
            raise _without_database(folder)
        os.close(os.open(folder / DATABASE, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        give_to_owner(folder / DATABASE)
        with contextlib.closing(connect(folder, lock_timeout_s)) as database:
            is_new = not _has_tables(database)
            if is_new:  # to open a log that exists does not wait for its writers
                database.execute("PRAGMA page_size = 16384")
                database.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only before the first table, see `give_back`
            _enter_wal(database)
            if is_new:
                database.execute("BEGIN IMMEDIATE")
                with database:
                    if not _has_tables(database):
                        if _holds_segments(folder):
                            raise _without_database(folder)
                        for statement in _TABLES:
                            database.execute(statement)
                        database.execute("INSERT INTO meta VALUES ('schema', ?)", (SCHEMA_VERSION,))
            _check_version(database, folder)


def require_readable(folder: Path, lock_timeout_s: float) -> None:
    """Check that the log exists, without changing it. Raises StreamError, LogUnavailable, LogDamaged, SchemaTooNew."""
    with translated_errors(folder, read_only=True):
        if _size(folder / DATABASE):
            with contextlib.closing(connect(folder, lock_timeout_s, how_to_read(at_rest(folder)))) as database:
                if _has_tables(database):
                    _check_version(database, folder)
                    return
        if _holds_segments(folder):
            raise _without_database(folder)
    raise NoLog(f"there is no log in {folder}")


def at_rest(folder: Path) -> tuple[int, int, int] | None:
    """Inode, size and modification time of a database without a writer; None while its WAL holds commits."""
    if _size(folder / f"{DATABASE}-wal"):
        return None
    status = (folder / DATABASE).stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def how_to_read(rest: tuple[int, int, int] | None) -> str:
    """Parameters for `connect` to read without changing a file. `immutable` if at rest: SQLite would create a WAL."""
    return "mode=ro" if rest is None else "mode=ro&immutable=1"


def _has_tables(database: sqlite3.Connection) -> bool:
    return database.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is not None


def _check_version(database: sqlite3.Connection, folder: Path) -> None:
    (version,) = database.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
    if version > SCHEMA_VERSION:
        raise SchemaTooNew(f"{folder / DATABASE} has schema {version}, this farmwatch reads up to {SCHEMA_VERSION}")


def _holds_segments(folder: Path) -> bool:
    place = folder / SEGMENTS
    return place.is_dir() and any(place.iterdir())


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _without_database(folder: Path) -> LogDamaged:
    return LogDamaged(
        f"{folder / DATABASE} is missing or empty, but {folder / SEGMENTS} holds files: restore the {DATABASE} that"
        " belongs to them from a backup, or move the folder away to begin a new log"
    )


def _enter_wal(database: sqlite3.Connection) -> None:
    """Switch to WAL. Retries, because SQLite fails at once if another process is switching too."""
    for _ in range(500):
        with contextlib.suppress(sqlite3.OperationalError):
            database.execute("PRAGMA journal_mode = WAL")
            return
        time.sleep(0.01)
    database.execute("PRAGMA journal_mode = WAL")


def connect(folder: Path, lock_timeout_s: float, how: str = "mode=rw") -> sqlite3.Connection:
    """Open a connection in autocommit mode; any thread may use it, one at a time. `how`: see `how_to_read`."""
    database = sqlite3.connect(
        f"{(folder / DATABASE).as_uri()}?{how}",
        uri=True,
        timeout=lock_timeout_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    for setting in _SETTINGS:
        database.execute(setting)
    return database


def content_checksum(timestamp_ms: int, key: bytes, headers: bytes | None, value: bytes | None) -> int:
    """xxh3-64 of a record, including the lengths of key, headers and value."""
    packed = headers or b""
    digest = xxhash.xxh3_64(_HEAD.pack(timestamp_ms, len(key), len(packed), value is None) + key + packed)
    digest.update(value or b"")  # without a copy of it
    return digest.intdigest()


def row_checksum(content: int, id: int) -> int:
    """The checksum in a record's row: signed for SQLite, and dependent on the row id."""
    digest = (content ^ id * _SPREAD) & ((1 << 64) - 1)
    return digest - (1 << 64) if digest >> 63 else digest


def fresh_id(database: sqlite3.Connection, table: str) -> int:
    """An id for a row of `table` that was never used: other processes may remember the ids of removed rows."""
    (number,) = database.execute(
        f"SELECT max(coalesce(max(id), 0), coalesce((SELECT value FROM meta WHERE name = ?), 0)) + 1 FROM {table}",
        (f"last {table}",),
    ).fetchone()
    return int(number)


def keep_ids(database: sqlite3.Connection, table: str) -> None:
    """Remember the largest id before rows of `table` are deleted, see `fresh_id`."""
    database.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
        (f"last {table}", fresh_id(database, table) - 1),
    )


@contextlib.contextmanager
def translated_errors(folder: Path, *, read_only: bool = False) -> Iterator[None]:
    """Translate errors of the disk and of SQLite into LogUnavailable or LogDamaged, with place and remedy."""
    try:
        yield
    except (sqlite3.DatabaseError, OSError) as error:
        translated = translate(error, folder, read_only=read_only)
        if translated is error:
            raise
        raise translated from error


def translate(error: Exception, folder: Path, *, read_only: bool = False) -> Exception:
    """The log's error for an error of SQLite or of the system; any other error is returned unchanged."""
    wanted = f"read rights on the folder and on {DATABASE}" if read_only else "read and write rights on the folder"
    if isinstance(error, OSError):
        remedy = f"give this user {wanted}" if error.errno in _NO_RIGHT else _REMEDIES.get(error.errno, _REMEDY)
        return LogUnavailable(f"the log in {folder} cannot be used: {error}; {remedy}")
    code = getattr(error, "sqlite_errorcode", None)
    database = folder / DATABASE
    match None if code is None else code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            fault = f"stays locked ({error}): another process holds it; look for one that hangs (fuser {database})"
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            fault = f"cannot be written ({error}): the disk is full or failing; free disk space, see dmesg"
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            fault = f"cannot be opened ({error}): check that the folder exists, and give this user {wanted}"
            if read_only:
                fault += "; after its process was killed, a user with write rights must open the log once"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return LogDamaged(f"{database} is damaged ({error}): check the disk and restore the folder from a backup")
        case _:
            return error
    return LogUnavailable(f"{database} {fault}")
