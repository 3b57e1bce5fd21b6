"""One at a time among the processes of a machine: a lock on a file, which ends with its holder, however that ends."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

Exclusion = Callable[[], AbstractContextManager[object]]  # called for each time; threads exclude each other, too


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Wait for the lock and hold it while the block runs. Raises OSError where the file cannot be made."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def marked_lock(path: Path, mark: bytes) -> Iterator[bool]:
    """As `file_lock`; whether who held it last did so with this `mark`, which stands in the file from now on."""
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
    """Hold the lock while the block runs, if nobody has it: whether it is ours. Raises OSError as `file_lock`."""
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
