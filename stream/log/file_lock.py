"""Locks between processes, on a file or folder. The system releases them with their process."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from stream.log.private_folders import give_to_owner


@contextmanager
def file_lock(path: Path, *, wait: bool = True) -> Iterator[BinaryIO | None]:
    """Hold the lock of a file for the block; yields the open file, or None if it is not free and `wait` is False.

    The file is created if missing, and stays: its removal would race. Raises OSError.
    """
    with path.open("a+b") as file:
        give_to_owner(path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield file


@contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """The descriptor of a file or folder, for the block. Raises OSError."""
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def try_lock(held: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file or folder; False if another process's lock keeps this one away. Raises OSError."""
    try:
        fcntl.flock(held, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_named(held: int, path: Path) -> bool:
    """Lock what was opened at `path`; False also if it is gone, or the name is another's by now. Raises OSError."""
    try:
        return try_lock(held) and os.path.samestat(os.fstat(held), path.stat())
    except FileNotFoundError:
        return False
