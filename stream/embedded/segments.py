"""Segment files: large values, appended and synced before the transaction that makes them visible.

Each process writes its own files, one per topic, under a lock (flock) that the kernel releases with the process. A file
is entered in the database before its first value. So a file can be removed if it can be locked, and if the database
knows it but has no record that refers to it. Readers check the length and the checksum of a value.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path

from stream.log.contract import RECORD_CAP_BYTES
from stream.log.errors import StreamError
from stream.log.file_lock import lock_named, opened
from stream.log.private_folders import give_to_owner

SUFFIX = ".segment"
_OPEN_FILES = 64
_MOST_PARTS = os.sysconf("SC_IOV_MAX")  # of one `pwritev`


class LogDamaged(StreamError):
    """The database of the embedded log is corrupt or missing. The operator checks the disk and restores a backup."""


class Segment:
    """A segment file open for appending by this process. `row`: its id in the database; `full_bytes`: its full size."""

    def __init__(self, folder: Path, topic: int, enter: Callable[[str], tuple[int, int]]) -> None:
        """Create and lock a file, and `enter` it in the database, which gives its row and the size of a full one.

        Raises OSError and the errors of `enter`.
        """
        while True:
            self.file = f"{topic}-{secrets.token_hex(8)}{SUFFIX}"
            self._path = folder / self.file
            self._fd = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            give_to_owner(self._path)
            if lock_named(self._fd, self._path):
                break
            os.close(self._fd)  # retention removed it before the lock: try the next name
        self.size = 0
        try:
            sync_folder(folder)
            self.row, self.full_bytes = enter(self.file)
        except BaseException:
            self.close()
            raise
        self.spoiled = False  # True after a failed sync: the bytes on the disk are unknown, so never append again

    def append(self, values: Sequence[bytes]) -> list[int]:
        """Write the values; returns their positions. Durable only after `sync`. After OSError none is valid."""
        *positions, end = accumulate(map(len, values), initial=self.size)
        at = self.size
        try:
            while at < end:  # a signal or an almost full disk shortens a write
                first = bisect_right(positions, at) - 1  # the first value with bytes to write
                rest = values[first][at - positions[first] :]
                written = os.pwritev(self._fd, [rest, *values[first + 1 : first + _MOST_PARTS]], at)
                if written == 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
                at += written
        except OSError:
            self.cut(self.size)
            raise
        self.size = end
        return positions

    def cut(self, size: int) -> None:
        """Truncate the file to `size`."""
        self.size = size
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, size)

    def sync(self) -> None:
        """Sync the appended values; a failure marks the file as spoiled. Raises OSError."""
        try:
            os.fdatasync(self._fd)
        except OSError:
            self.spoiled = True
            raise

    def close(self) -> None:
        """Close the file and release its lock; remove it if empty."""
        if self.size == 0:
            with contextlib.suppress(OSError):
                self._path.unlink()
        os.close(self._fd)


Placed = tuple[Segment, int]  # a segment and the position of a value in it


def remove_if_unused(path: Path, unused: Callable[[os.stat_result], bool]) -> bool:
    """Unlink a segment if no process writes it and `unused`, called under the lock, agrees; True if it is gone."""
    with contextlib.suppress(FileNotFoundError), opened(path, os.O_RDONLY) as fd:
        if not lock_named(fd, path) or not unused(os.fstat(fd)):
            return False
        path.unlink()
    return True


class SegmentReader:
    """Reads values; keeps a few files open. Used by one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: OrderedDict[str, int] = OrderedDict()

    def read(self, file: str, position: int, size: int) -> bytes:
        """The bytes of a value; fewer if unreadable. Raises FileNotFoundError, OSError."""
        fd = self._open.get(file)
        if fd is None:
            fd = self._open[file] = os.open(self._folder / file, os.O_RDONLY | os.O_CLOEXEC)
            if len(self._open) > _OPEN_FILES:
                os.close(self._open.popitem(last=False)[1])
        else:
            self._open.move_to_end(file)
        return _read_at(fd, position, size)

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])


def _read_at(fd: int, position: int, size: int) -> bytes:
    """Bytes of a file; empty if the disk fails, or if position or size are impossible."""
    if position < 0 or not 0 <= size <= RECORD_CAP_BYTES:
        return b""
    try:
        return os.pread(fd, size, position)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""


def sync_folder(folder: Path) -> None:
    """Make created and removed files of a folder durable. Raises OSError."""
    with opened(folder, os.O_RDONLY | os.O_DIRECTORY) as fd:
        os.fsync(fd)
