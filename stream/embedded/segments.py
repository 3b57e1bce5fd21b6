"""Segment files: large values, appended and synced before the transaction that makes them visible.

Each process writes files of its own, one per topic, under a lock (flock) that the kernel drops with the process. A file
is entered in the database before its first value. So a file may be removed once it can be locked, and the database
knows it and has no record that refers to it. The reader of a value checks its length and its checksum.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path

from stream.log.contract import RECORD_CAP_BYTES
from stream.log.errors import StreamError

SUFFIX = ".segment"
_OPEN_FILES = 64


class LogDamaged(StreamError):
    """The database of the embedded log is not what was written, or is gone: check the disk, restore from a backup."""


class Segment:
    """A segment file open for appending by this process. `row` is its id in the database."""

    def __init__(self, folder: Path, topic: int, enter: Callable[[str], int]) -> None:
        """Make and lock a file, and `enter` its name in the database. Raises OSError, and what `enter` raises."""
        while True:
            self.file = f"{topic}-{secrets.token_hex(8)}{SUFFIX}"
            self._path = folder / self.file
            self._fd = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            if lock(self._fd, self._path):
                break
            os.close(self._fd)  # a cleaner was faster than our lock: the next name
        self.size = 0
        try:
            sync_folder(folder)
            self.row = enter(self.file)
        except BaseException:
            self.close()
            raise
        self.spoiled = False  # never append again: a failed sync leaves unknown which bytes are on the disk

    def append(self, values: Sequence[bytes]) -> list[int]:
        """Write the values; returns their positions. Not durable before `sync`. After OSError none counts."""
        *positions, end = accumulate(map(len, values), initial=self.size)
        rest = memoryview(b"".join(values))
        try:
            while rest:  # a signal or a disk almost full cuts a write
                written = os.pwrite(self._fd, rest, end - len(rest))
                if written == 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
                rest = rest[written:]
        except OSError:
            self.cut(self.size)
            raise
        self.size = end
        return positions

    def cut(self, size: int) -> None:
        """Forget what lies behind `size`, and give its disk space back."""
        self.size = size
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, size)

    def sync(self) -> None:
        """Make what was appended durable; a file that cannot be synced is spoiled. Raises OSError."""
        try:
            os.fdatasync(self._fd)
        except OSError:
            self.spoiled = True
            raise

    def close(self) -> None:
        """Close the file and give its lock back; an empty one is removed."""
        if self.size == 0:
            with contextlib.suppress(OSError):
                self._path.unlink()
        os.close(self._fd)


def lock(fd: int, path: Path) -> bool:
    """Lock an open segment for its one writer or its remover; False when another has it or the file is gone."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return path.stat().st_ino == os.fstat(fd).st_ino
    except (BlockingIOError, FileNotFoundError):
        return False


def remove_if_unused(path: Path, unused: Callable[[os.stat_result], bool]) -> bool:
    """Unlink a segment that no process writes and that `unused`, asked under the lock, lets go; True if it is gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        if not lock(fd, path) or not unused(os.fstat(fd)):
            return False
        path.unlink()
        return True
    finally:
        os.close(fd)


class SegmentReader:
    """Reads values; holds a few files open. Used by one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: OrderedDict[str, int] = OrderedDict()

    def read(self, file: str, places: Iterable[tuple[int, int]]) -> list[bytes]:
        """The bytes at `places` (position, size); fewer where they cannot be had. Raises FileNotFoundError, OSError."""
        fd = self._fd(file)
        return [_read_at(fd, position, size) for position, size in places]

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def _fd(self, file: str) -> int:
        fd = self._open.get(file)
        if fd is None:
            fd = self._open[file] = os.open(self._folder / file, os.O_RDONLY | os.O_CLOEXEC)
            if len(self._open) > _OPEN_FILES:
                os.close(self._open.popitem(last=False)[1])
        else:
            self._open.move_to_end(file)
        return fd


def _read_at(fd: int, position: int, size: int) -> bytes:
    """Bytes of a file; none where the disk cannot give them back, or where position or size cannot be right."""
    if position < 0 or not 0 <= size <= RECORD_CAP_BYTES:
        return b""
    try:
        return os.pread(fd, size, position)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: files created and removed. Raises OSError."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
