"""Backup and restore of the embedded log.

A backup is a folder like a log's own, with SHA256SUMS, which is written last. It may be taken while processes write:
first a snapshot of the database, then the committed bytes of each segment that the snapshot names. Only erasing
changes these bytes, and it waits for the backup. If retention has removed such a segment, a new snapshot is taken.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from stream.embedded.database import (
    DATABASE,
    SEGMENTS,
    at_rest,
    connect,
    how_to_read,
    require_readable,
    translate,
    translated_errors,
)
from stream.embedded.erasing import copying
from stream.embedded.segments import SUFFIX, LogDamaged, sync_folder
from stream.embedded.soundness import require_sound
from stream.log.errors import LogUnavailable
from stream.log.private_folders import give_to_owner, make_private
from stream.text.checksums import SUMS, UnfinishedFolder, read_sums, write_sums
from stream.text.user_errors import UsageError
from stream.text.wording import size

Advance = Callable[[int], None]
_ATTEMPTS = 5
_CHUNK_BYTES = 4 * 1024 * 1024
_LOCK_TIMEOUT_S = 5.0
_NOT_WRITTEN = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC)  # the copy, not the log
_OF_LOG = re.compile(rf"{re.escape(DATABASE)}|{SEGMENTS}/[^/]+{re.escape(SUFFIX)}")  # the files of a backup


def size_of_log(folder: Path) -> int:
    """Bytes of a log's database and segments, or of a backup's. Raises OSError."""
    return sum(path.stat().st_size for path in (*folder.glob(DATABASE), *(folder / SEGMENTS).glob("*")))


def back_up(folder: Path, to: Path, advance: Advance = lambda _: None) -> list[str]:
    """Copy the log in `folder` into `to`, a new or empty folder. After an error `to` is empty again.

    Returns the segments that the log itself lacks. `advance` gets the number of bytes copied since. Raises StreamError
    as opening does, UsageError if `to` is used or too small, LogUnavailable.
    """
    folder, to = folder.absolute(), to.absolute()
    require_readable(folder, _LOCK_TIMEOUT_S)
    with _filled(to, size_of_log(folder)), copying(folder):
        copied: dict[str, _Copy] = {}
        missing: set[str] = set()
        for _ in range(_ATTEMPTS):
            database = _snapshot(folder, to)
            if database is None:
                continue
            before, missing = missing, _copy_segments(folder, to, copied, advance)
            if missing <= before:
                break
        else:
            raise LogUnavailable(
                f"{folder}: retention removed files during each of {_ATTEMPTS} copies; run the backup again, to a"
                " faster disk, or while farmwatch is stopped"
            )
        advance((to / DATABASE).stat().st_size)
        sync_folder(to / SEGMENTS)
        digests = {f"{SEGMENTS}/{file}": copy.digest.hexdigest() for file, copy in copied.items()}
        write_sums(to, {**digests, DATABASE: database})
        sync_folder(to)
    return sorted(missing)


def restore(backup: Path, folder: Path, advance: Advance = lambda _: None) -> None:
    """Copy a backup into `folder`, a new or empty one, and check it. The database comes last: before, it is no log.

    After an error `folder` is empty again. Raises UnfinishedFolder, LogDamaged for a file that differs from its
    checksum, UsageError if `folder` is used or too small, SchemaTooNew, LogUnavailable.
    """
    backup, folder = backup.absolute(), folder.absolute()
    sums = read_sums(backup)
    if DATABASE not in sums:
        raise UnfinishedFolder(f"{backup / SUMS} lists no {DATABASE}: this is no backup of a log")
    if others := [name for name in sums if not _OF_LOG.fullmatch(name)]:
        raise UnfinishedFolder(f"{backup / SUMS} lists {others[0]}, which is no file of a log: take another backup")
    if missing := [name for name in sums if not (backup / name).is_file()]:
        raise UnfinishedFolder(f"{backup / missing[0]} is missing: use another backup")
    require_readable(backup, _LOCK_TIMEOUT_S)
    with _filled(folder, size_of_log(backup)):
        for name in sorted(sums, key=lambda name: name == DATABASE):
            copy = _Copy()
            target = folder / f"{name}.restored"
            copy.extend(backup / name, target, None, advance)
            if copy.digest.hexdigest() != sums[name]:
                raise LogDamaged(f"{backup / name} differs from its checksum in {SUMS}: use another backup")
            target.rename(folder / name)
            sync_folder((folder / name).parent)


@contextmanager
def _filled(folder: Path, size_bytes: int) -> Iterator[None]:
    """Make an empty folder of a log for the block, which fills it; empty it again after an error."""
    with translated_errors(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} is not empty: name an empty or a new folder")
        is_new = not folder.exists()
        make_private(folder / SEGMENTS)
        try:
            free = shutil.disk_usage(folder).free
            if free < size_bytes:
                raise UsageError(f"{folder}: {size(size_bytes)} are needed and {size(free)} are free")
            yield
        except BaseException:
            shutil.rmtree(folder / SEGMENTS, ignore_errors=True)
            for file in folder.iterdir():
                file.unlink()
            if is_new:
                folder.rmdir()
            raise


def _snapshot(folder: Path, to: Path) -> str | None:
    """Copy the database; returns its digest, or None if a writer came while it was read as one at rest."""
    target = to / DATABASE
    target.unlink(missing_ok=True)
    target.touch(mode=0o600)  # SQLite fills an empty file
    give_to_owner(target)
    with translated_errors(folder, read_only=True):
        rest = at_rest(folder)
        try:
            with closing(connect(folder, _LOCK_TIMEOUT_S, how_to_read(rest))) as database:
                require_sound(database, folder)
                database.execute("VACUUM INTO ?", (str(target),))
        except (sqlite3.DatabaseError, LogDamaged) as error:
            if rest is not None and rest != at_rest(folder):  # what was read may be from two moments
                return None
            if getattr(error, "sqlite_errorcode", 0) in _NOT_WRITTEN:
                raise translate(error, to) from error
            raise
        if rest is not None and rest != at_rest(folder):
            return None
    with target.open("rb") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


def _copy_segments(folder: Path, to: Path, copied: dict[str, _Copy], advance: Advance) -> set[str]:
    """Copy the committed bytes of the snapshot's segments, as far as they are not copied; returns missing segments."""
    with closing(connect(to, _LOCK_TIMEOUT_S, how_to_read(at_rest(to)))) as database:
        wanted = dict(database.execute("SELECT file, size FROM segments WHERE live > 0").fetchall())
    for file in copied.keys() - wanted.keys():
        del copied[file]
        (to / SEGMENTS / file).unlink()
    missing = set()
    for file, committed in wanted.items():
        copy = copied.get(file, _Copy())
        if copy.size < committed:
            try:
                copy.extend(folder / SEGMENTS / file, to / SEGMENTS / file, committed, advance)
            except FileNotFoundError:
                missing.add(file)
                continue
        copied[file] = copy
    return missing


class _Copy:
    """A file that is copied in parts: its size and digest so far."""

    def __init__(self) -> None:
        self.size = 0
        self.digest: Any = hashlib.sha256()

    def extend(self, source: Path, target: Path, stop: int | None, advance: Advance) -> None:
        """Append the bytes of `source` from the present size on, up to `stop`, and sync them. Raises OSError."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        with source.open("rb") as read, os.fdopen(os.open(target, flags, 0o600), "ab") as written:
            give_to_owner(target)
            read.seek(self.size)
            while True:
                try:
                    chunk = read.read(_CHUNK_BYTES if stop is None else min(_CHUNK_BYTES, stop - self.size))
                except OSError as error:  # other errors of the disk are those of the copy
                    raise LogUnavailable(f"{source} cannot be read: {error}; check the disk (dmesg)") from error
                if not chunk:
                    break
                written.write(chunk)
                self.digest.update(chunk)
                self.size += len(chunk)
                advance(len(chunk))
            written.flush()
            os.fsync(written.fileno())
