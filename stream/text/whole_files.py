"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, body: bytes, *, force: bool) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part."""
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(body)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
