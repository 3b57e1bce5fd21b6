"""A log that ends with the process: for tests of this package and of its users, and for trials."""

from __future__ import annotations

import tempfile
import weakref
from pathlib import Path
from shutil import rmtree

from stream.embedded.log import EmbeddedLog
from stream.log.contract import Clock, wall_ms

_MEMORY_DISK = Path("/dev/shm")  # noqa: S108  # private folders are made in it


class MemoryLog(EmbeddedLog):
    """An embedded log in a temporary folder, in memory if possible. It is deleted with this object."""

    def __init__(self, *, clock: Clock = wall_ms, lease_ms: int = 10_000) -> None:
        folder = tempfile.mkdtemp(prefix="farmwatch-log-", dir=_MEMORY_DISK if _MEMORY_DISK.is_dir() else None)
        weakref.finalize(self, rmtree, folder, ignore_errors=True)
        super().__init__(Path(folder), clock=clock, lease_ms=lease_ms)
