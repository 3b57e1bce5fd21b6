"""A lock between processes, on a file. The system releases it with its process."""

from __future__ import annotations

import fcntl
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
