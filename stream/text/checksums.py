"""SHA256SUMS: the checksums of a folder's files, as `sha256sum -c` reads them. It is written last and marks the end."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from stream.text.user_errors import FarmwatchError

SUMS = "SHA256SUMS"


class UnfinishedFolder(FarmwatchError):
    """A folder without SHA256SUMS, or with other files than it lists. The operator takes another copy."""


def digest_of(path: Path) -> str:
    """SHA-256 of a file, hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_sums(folder: Path, digests: Mapping[str, str]) -> None:
    """Write SHA256SUMS into `folder` atomically: `digests` has paths below it and their digests. Raises OSError."""
    unfinished = folder / f"{SUMS}.new"
    with unfinished.open("w", encoding="utf-8") as file:
        file.writelines(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(folder / SUMS)


def read_sums(folder: Path) -> dict[str, str]:
    """Path -> digest. Raises UnfinishedFolder if the file is missing or malformed, OSError."""
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except FileNotFoundError as error:
        raise UnfinishedFolder(f"{folder} has no {SUMS}: it is no finished backup") from error
    sums = {}
    for line in lines:
        digest, _, name = line.partition("  ")
        is_path = name and name.isprintable() and not Path(name).is_absolute() and ".." not in Path(name).parts
        if len(digest) != 64 or not is_path:
            raise UnfinishedFolder(f"{folder / SUMS} is damaged: {line[:80]!r} is no checksum and path")
        sums[name] = digest
    return sums
