"""A WARC file while it is written, and the recovery of files that a dead process left.

A file is named `….warc.gz.open` and locked until it is closed, when it gets its final name. An unlocked file with that
ending was left by a dead process: it is truncated after its last whole record and closed.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import structlog

from stream.log.file_lock import lock_named
from stream.log.private_folders import give_to_owner

_log = structlog.get_logger()

ENDING = ".warc.gz"
OPEN = ".open"
_PIECE_BYTES = 64 * 1024


class NameTaken(Exception):
    """Control flow: a file of this name exists, or is being closed."""


class WarcFile:
    """A file that is being written.

    After a failed `append`, which raises OSError, the file ends where it did before.
    """

    def __init__(self, folder: Path, stem: str) -> None:
        """Create and lock `<stem>.warc.gz.open`. Raises OSError, or NameTaken."""
        self.path = folder / (stem + ENDING)
        self._unfinished = folder / (stem + ENDING + OPEN)
        self.size_bytes = 0
        if self.path.exists():
            raise NameTaken
        try:
            self._fd = os.open(self._unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            give_to_owner(self._unfinished)
        except FileExistsError:
            raise NameTaken from None
        try:
            if not lock_named(self._fd, self._unfinished):  # another process is closing it as a leftover
                raise NameTaken
        except BaseException:
            os.close(self._fd)
            raise

    def append(self, records: bytes) -> None:
        """Write whole records. When this returns, the operating system has them, so they survive this process."""
        view = memoryview(records)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            os.ftruncate(self._fd, self.size_bytes)
            os.lseek(self._fd, self.size_bytes, os.SEEK_SET)
            raise
        self.size_bytes += len(records)

    def close(self) -> None:
        try:
            os.ftruncate(self._fd, self.size_bytes)  # a failed `append` may have left bytes
            _finish(self._fd, self._unfinished, self.path, self.size_bytes)
        finally:
            os.close(self._fd)


def close_leftovers(folder: Path) -> list[Path]:
    """Close the files that dead processes left in the folder; returns their final paths. Raises OSError.

    Reads each file once: about ten seconds per gigabyte.
    """
    closed = []
    for unfinished in sorted(folder.glob(f"*{ENDING}{OPEN}")):
        try:
            fd = os.open(unfinished, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:  # another process was faster
            continue
        try:
            if not lock_named(fd, unfinished):
                continue
            size = os.fstat(fd).st_size
            whole = whole_bytes(fd)
            os.ftruncate(fd, whole)
            path = unfinished.with_name(unfinished.name.removesuffix(OPEN))
            _finish(fd, unfinished, path, whole)
            _log.warning("warc_leftover_closed", file=path.name, kept_bytes=whole, cut_bytes=size - whole)
            if whole:
                closed.append(path)
        finally:
            os.close(fd)
    return closed


def whole_bytes(fd: int) -> int:
    """The length of the whole gzip members from the start of a file. Raises OSError."""
    whole = at = 0
    inflate = None
    piece = b""
    while True:
        if not piece:
            piece = os.pread(fd, _PIECE_BYTES, at)
            if not piece:
                return whole
            at += len(piece)
        inflate = inflate or zlib.decompressobj(31)
        try:
            inflate.decompress(piece, _PIECE_BYTES)
        except zlib.error:
            return whole
        if inflate.eof:
            piece = inflate.unused_data
            whole = at - len(piece)
            inflate = None
        else:
            piece = inflate.unconsumed_tail


def _finish(fd: int, unfinished: Path, path: Path, size_bytes: int) -> None:
    os.fsync(fd)
    if size_bytes == 0:
        unfinished.unlink()
        return
    unfinished.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
