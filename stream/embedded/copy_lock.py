"""A lock on the bytes of segments: a copy needs them unchanged, and erasing overwrites them.

It is on the folder of segments, so that no file is made, and the system releases it with its process.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stream.embedded.database import SEGMENTS, translated_errors
from stream.log.errors import LogUnavailable
from stream.log.file_lock import try_lock

_LOOK_S = 0.1
_WAIT_S = 600.0  # a copy to a slow disk takes minutes


@contextmanager
def copying(folder: Path) -> Iterator[None]:
    """Keep erasures away for the block. Raises LogUnavailable if one takes too long, or the segments are missing."""
    with _locked(folder, fcntl.LOCK_SH, "hosts are being forgotten: repeat the command when that has ended"):
        yield


@contextmanager
def erasing(folder: Path) -> Iterator[None]:
    """Keep copies and other erasures away for the block. Raises as `copying`."""
    why = "a backup or another erasure is under way: the same command completes the removal when that has ended"
    with _locked(folder, fcntl.LOCK_EX, why):
        yield


@contextmanager
def _locked(folder: Path, kind: int, why: str) -> Iterator[None]:
    with translated_errors(folder, read_only=kind == fcntl.LOCK_SH):
        held = os.open(folder / SEGMENTS, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        give_up_at = time.monotonic() + _WAIT_S
        while not try_lock(held, kind):
            if time.monotonic() > give_up_at:
                raise LogUnavailable(f"{folder}: {why}")
            time.sleep(_LOOK_S)
        yield
    finally:
        os.close(held)
