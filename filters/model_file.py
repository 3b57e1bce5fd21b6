"""Reads the file of a trained model: JSON of a bounded size with the field `version`."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from filters.errors import BadModel

T = TypeVar("T")


class _Version(msgspec.Struct):
    version: int


def read_bytes(path: Path, most: int) -> bytes:
    """The content of a file, one byte more than `most` at the most. Raises BadModel."""
    try:
        with path.open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise BadModel(f"{path}: the model cannot be read: {error.strerror or error}") from error


def decoded(data: bytes, where: str, model: type[T], *, version: int, most: int, kind: str) -> T:
    """Decode a model; `kind` and `where` name it in errors. Raises BadModel."""
    if len(data) > most:
        raise BadModel(f"{where}: larger than {most // 1024} KiB, no {kind}")
    try:
        its = msgspec.json.decode(data, type=_Version).version
        if its != version:
            raise BadModel(f"{where}: version {its} of a model, this farmwatch reads {version}", case="outdated")
        return msgspec.json.decode(data, type=model)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadModel(f"{where}: no {kind}, or a damaged one: {error}") from None
