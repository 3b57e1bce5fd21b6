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

from stream.embedded.database import SEGMENTS
from stream.log.errors import LogUnavailable

_LOOK_S = 0.1


@contextmanager
def copying(folder: Path, wait_s: float) -> Iterator[None]:
    """Keep erasures away for the block. Raises LogUnavailable while one takes longer than `wait_s`, OSError."""
    with _locked(folder, fcntl.LOCK_SH, wait_s, "hosts are being forgotten"):
        yield


@contextmanager
def erasing(folder: Path, wait_s: float) -> Iterator[None]:
    """Keep copies and other erasures away for the block. Raises as `copying`."""
    with _locked(folder, fcntl.LOCK_EX, wait_s, "a backup or another erasure is under way"):
        yield


@contextmanager
def _locked(folder: Path, kind: int, wait_s: float, why: str) -> Iterator[None]:
    held = os.open(folder / SEGMENTS, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        give_up_at = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(held, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up_at:
                    raise LogUnavailable(f"{folder}: {why}: repeat the command when that has ended") from None
            time.sleep(_LOOK_S)
        yield
    finally:
        os.close(held)
