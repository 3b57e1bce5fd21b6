"""Folders that only their owner may read: farmwatch stores pages of other people."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def give_to_owner(path: Path) -> None:
    """Give a file or folder that root has made to the owner of its folder, whose processes must be able to use it."""
    if os.geteuid() == 0:
        with suppress(OSError):  # file systems without owners
            owner = path.parent.stat()
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents with mode 0700. Raises OSError."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    for place in reversed(missing):
        place.mkdir(mode=0o700, exist_ok=True)
        give_to_owner(place)
