"""Remembers, across restarts, the texts that were on the device when it was lost.

A fault of CUDA breaks the process: the card is unusable until another process starts. The next process must know the
texts in flight, or it reads the same batch for ever. A small file keeps their digests, with the number of losses while
a text was alone on the device. A text that was lost with others is a suspect with 0 losses. It is then read alone, and
forgotten once it was read.

Several processes may share the file: each merges its own changes into it. Two that write in the same moment may lose an
entry, which costs one more loss. If the file cannot be read or written, suspects are kept in memory, and `problem` says
why.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from stream.text.whole_files import write_whole

LOSSES_ALONE = 2
"""Limit of losses of the device with a text alone on it; such a text is not read again."""
REMEMBERED = 2_000
_LARGEST_BYTES = 1_000_000
_Losses = dict[Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")], Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]]


class Suspects:
    """Digests of texts, each with its number of losses while alone on the device."""

    def __init__(self, path: Path | None = None) -> None:
        self.problem = ""
        self._path = path
        self._losses: dict[str, int] = {}
        self._changes: dict[str, int | None] = {}  # not in the file yet; None = forgotten
        self._losses = self._read()

    def __len__(self) -> int:
        return len(self._losses)

    def losses(self, ids: Sequence[int]) -> int | None:
        """Losses of the device with this text alone; None if it is not a suspect."""
        return self._losses.get(_key(ids)) if self._losses else None

    def blame(self, texts: Iterable[Sequence[int]], *, alone: bool) -> None:
        for key in map(_key, texts):
            self._changes[key] = self._losses[key] = self._losses.get(key, 0) + alone
        self.save()

    def forget(self, ids: Sequence[int]) -> None:
        """Forget a text that was read; the next `save` removes it from the file."""
        if self._losses and self._losses.pop(key := _key(ids), None) is not None:
            self._changes[key] = None

    def save(self) -> None:
        """Merge the changes since the last time into the file."""
        if not self._changes:
            return
        merged = self._read()
        for key, losses in self._changes.items():
            if losses is None:
                merged.pop(key, None)
            else:
                merged[key] = max(losses, merged.get(key, 0))
        while len(merged) > REMEMBERED:
            del merged[next((key for key, losses in merged.items() if losses < LOSSES_ALONE), next(iter(merged)))]
        self._losses = merged
        self._changes = {}
        if self._path is None:
            return
        folder = self._path.parent
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder.stat().st_uid != os.getuid() and folder.parent == Path(tempfile.gettempdir()):
                raise PermissionError(f"{folder} belongs to another user")
            write_whole(self._path, msgspec.json.encode(merged), force=True)
        except OSError as error:
            self.problem = f"{self._path} cannot be written: {error.strerror or error}"

    def _read(self) -> dict[str, int]:
        if self._path is not None:
            try:
                with self._path.open("rb") as file:
                    return msgspec.json.decode(file.read(_LARGEST_BYTES), type=_Losses)
            except FileNotFoundError:
                pass
            except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                self.problem = f"{self._path} is broken and was not used: {error}"
        return dict(self._losses)


def default_file(identity: str) -> Path:
    """The default file of a detector's suspects, in the user's own folder in the temporary folder."""
    digest = hashlib.blake2b(identity.encode(), digest_size=4).hexdigest()
    return Path(tempfile.gettempdir()) / f"farmwatch-{os.getuid()}" / f"suspects-{digest}.json"


def _key(ids: Sequence[int]) -> str:
    return hashlib.blake2b(np.asarray(ids, np.int64).tobytes(), digest_size=16).hexdigest()
