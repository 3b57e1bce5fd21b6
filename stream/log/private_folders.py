"""Folders that only their owner may read: farmwatch stores pages of other people."""

from __future__ import annotations

from pathlib import Path


def make_private(folder: Path) -> None:
    """Make a folder, and the missing ones above it, with mode 0700 from the first moment. Raises OSError.

    A folder that is there keeps the rights that its owner gave it.
    """
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    for place in reversed(missing):
        place.mkdir(mode=0o700, exist_ok=True)
