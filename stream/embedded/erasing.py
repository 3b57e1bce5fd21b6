"""Erases records of sites with their bytes: in segments, in the database, and in leftovers of earlier writers.

1. The bytes of large values are overwritten in the segments, then the rows become tombstones without a key. A crash in
   between leaves rows that the next attempt finds.
2. Bytes of segments that no record refers to are overwritten: an earlier commit may have failed after writing them.
3. VACUUM rebuilds the database, and a checkpoint empties the WAL: deleted and replaced rows leave no bytes.

A copy needs the bytes of segments unchanged, so a lock keeps the two apart. It is on the folder of segments: no file is
made, and the system releases it with its process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from stream.embedded.database import SEGMENTS, content_checksum, row_checksum, translated_errors
from stream.embedded.retention import forget_records
from stream.embedded.topics import row_id
from stream.embedded.vacuum import rewrite
from stream.embedded.writer import Writer
from stream.log.errors import LogUnavailable
from stream.log.file_lock import lock_named, opened, try_lock

_ROWS = 500  # per transaction
_PIECE_BYTES = 1024 * 1024
_WAIT_S = 60.0  # longest wait for a writer, and for readers of old pages
_LOCK_WAIT_S, _LOOK_S = 600.0, 0.1  # a copy to a slow disk takes minutes
_NONE = b"\0"


class Place(NamedTuple):
    """A record to erase: its row, its timestamp, and the place of a large value."""

    id: int
    timestamp_ms: int
    file: str | None
    position: int
    size: int


@contextlib.contextmanager
def copying(folder: Path) -> Iterator[None]:
    """Keep erasures away for the block. Raises LogUnavailable if one takes too long, or the segments are missing."""
    with _locked(folder, fcntl.LOCK_SH, "hosts are being forgotten: repeat the command when that has ended"):
        yield


@contextlib.contextmanager
def erasing(folder: Path) -> Iterator[None]:
    """Keep copies and other erasures away for the block. Raises as `copying`."""
    why = "a backup or another erasure is under way: the same command completes the removal when that has ended"
    with _locked(folder, fcntl.LOCK_EX, why):
        yield


@contextlib.contextmanager
def _locked(folder: Path, kind: int, why: str) -> Iterator[None]:
    with translated_errors(folder, read_only=kind == fcntl.LOCK_SH):
        held = os.open(folder / SEGMENTS, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        give_up_at = time.monotonic() + _LOCK_WAIT_S
        while not try_lock(held, kind):
            if time.monotonic() > give_up_at:
                raise LogUnavailable(f"{folder}: {why}")
            time.sleep(_LOOK_S)
        yield
    finally:
        os.close(held)


def erase_keys(
    folder: Path,
    database: sqlite3.Connection,
    writer: Writer,
    partition: int,
    keys: Sequence[bytes],
    *,
    keep_values: bool = False,
) -> int:
    """Erase the records of a partition (by id) whose key is one of these, or begins with one and a space.

    `keep_values`: the newest record of each key stays if it has a value.
    """
    erased = 0
    start, stop = row_id(partition, 0), row_id(partition + 1, 0)
    current: set[int] = set()
    if keep_values:
        newest = database.execute(
            "SELECT max(id), value IS NULL AND segment IS NULL FROM records"
            f" WHERE id >= ? AND id < ? AND key IN ({', '.join('?' * len(keys))}) GROUP BY key",
            (start, stop, *keys),
        )
        current = {row for row, is_tombstone in newest.fetchall() if not is_tombstone}
    while batch := _find(database, start, stop, keys):
        start = batch[-1].id + 1
        places = [place for place in batch if place.id not in current]
        _overwrite(folder, places)
        writer.run(partial(_blank, partition, places))
        erased += len(places)
    return erased


def _find(database: sqlite3.Connection, start: int, stop: int, keys: Sequence[bytes]) -> list[Place]:
    is_key = " OR ".join("r.key = ? OR substr(r.key, 1, ?) = ?" for _ in keys)
    named = [value for key in keys for value in (key, len(key) + 1, key + b" ")]
    rows = database.execute(
        "SELECT r.id, r.timestamp_ms, s.file, coalesce(r.position, 0), r.size FROM records r"
        f" LEFT JOIN segments s ON s.id = r.segment WHERE r.id >= ? AND r.id < ? AND ({is_key}) ORDER BY r.id LIMIT ?",
        (start, stop, *named, _ROWS),
    )
    return [Place(*columns) for columns in rows.fetchall()]


def _overwrite(folder: Path, places: Sequence[Place]) -> None:
    """Overwrite the large values of these records. Raises LogUnavailable."""
    of_files: dict[str, list[Place]] = {}
    for place in places:
        if place.file is not None:
            of_files.setdefault(place.file, []).append(place)
    with translated_errors(folder):
        for file, held in of_files.items():
            with contextlib.suppress(FileNotFoundError), opened(folder / SEGMENTS / file, os.O_RDWR) as descriptor:
                for place in held:
                    os.pwrite(descriptor, _NONE * place.size, place.position)
                os.fdatasync(descriptor)


def _blank(partition: int, places: Sequence[Place], database: sqlite3.Connection, _: object) -> None:
    """Replace the rows by tombstones without a key: offsets have no gap, and readers skip them."""
    ids = [place.id for place in places]
    forget_records(database, partition, f"id IN ({', '.join('?' * len(ids))})", ids)
    database.executemany(
        "INSERT INTO records VALUES (?, x'', NULL, NULL, ?, NULL, NULL, 0, ?)",
        [
            (each.id, each.timestamp_ms, row_checksum(content_checksum(each.timestamp_ms, b"", None, None), each.id))
            for each in places
        ],
    )


def clear_unnamed(folder: Path, database: sqlite3.Connection) -> None:
    """Overwrite all bytes of segments that no record refers to. Raises LogUnavailable.

    Bytes behind the committed size may belong to an open transaction, unless no process writes the file.
    """
    database.execute("BEGIN")  # sizes and places at one moment
    try:
        sizes = database.execute("SELECT id, file, size FROM segments").fetchall()
        places = database.execute(
            "SELECT segment, position, position + size FROM records WHERE typeof(segment) = 'integer'"
            " AND typeof(position) = 'integer' AND typeof(size) = 'integer' ORDER BY segment, position"
        )
        spans = {segment: [(a, b) for _, a, b in named] for segment, named in groupby(places, lambda row: row[0])}
    finally:
        database.execute("ROLLBACK")
    with translated_errors(folder):
        for segment, file, size in sizes:
            path = folder / SEGMENTS / file
            with contextlib.suppress(FileNotFoundError), opened(path, os.O_RDWR) as descriptor:
                end = os.fstat(descriptor).st_size if lock_named(descriptor, path) else size
                for start, stop in _between(spans.get(segment, []), end):
                    for at in range(start, stop, _PIECE_BYTES):
                        piece = os.pread(descriptor, min(_PIECE_BYTES, stop - at), at)
                        if piece.strip(_NONE):
                            os.pwrite(descriptor, _NONE * len(piece), at)
                os.fdatasync(descriptor)


def rebuild(folder: Path, lock_timeout_s: float) -> None:
    """Rebuild the database file and empty the WAL; readers and writers of other processes wait.

    Raises LogUnavailable if that is not possible, for example for want of disk.
    """
    if not rewrite(folder, lock_timeout_s, _WAIT_S):
        raise LogUnavailable(f"{folder}: a process reads old pages of the database all the time: stop it, and repeat")


def _between(spans: Collection[tuple[int, int]], end: int) -> Iterator[tuple[int, int]]:
    """The gaps between sorted spans, up to `end`."""
    at = 0
    for start, stop in spans:
        if start > at:
            yield at, min(start, end)
        at = max(at, stop)
    if at < end:
        yield at, end
