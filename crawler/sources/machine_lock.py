"""Locks between the processes of a machine: locked files, which the system unlocks when a process ends."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

Exclusion = Callable[[], AbstractContextManager[object]]  # called for each time; threads exclude each other, too


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Wait for the lock and hold it for the block. Raises OSError if the file cannot be created."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def marked_lock(path: Path, mark: bytes) -> Iterator[bool]:
    """Like `file_lock`; yields whether the last holder used the same `mark`."""
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        was_ours = file.read(len(mark) + 1) == mark
        if not was_ours:
            file.truncate(0)
            file.write(mark)
            file.flush()
        yield was_ours


@contextmanager
def held_lock(path: Path) -> Iterator[bool]:
    """Hold the lock for the block if it is free; yields whether it was. Raises OSError as `file_lock`."""
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
