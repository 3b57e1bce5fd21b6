"""Reads the file of a trained model: JSON of a bounded size with the field `version`, or named by its digest.

A name that is the digest of the content says exactly which model is meant, also where the file is not.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import Any, TypeVar

import msgspec
import xxhash

from filters.errors import BadModel

T = TypeVar("T")
_NAMED = re.compile(r"([0-9a-f]{16})(\.[a-z]+)")


class _Version(msgspec.Struct):
    version: int


def digest_of(data: Any) -> str:
    """The digest of a model's file, 16 hex digits."""
    return xxhash.xxh3_64_hexdigest(data)


def digest_in(path: str | Path, suffix: str) -> str | None:
    """The digest that a file's name gives; None for another name or suffix."""
    named = _NAMED.fullmatch(PurePath(path).name)
    return named[1] if named and named[2] == suffix else None


def refuse_changed(path: str | Path, data: Any, digest: str) -> None:
    """Raises BadModel for a file whose content is not that of its name."""
    if digest_of(data) != digest:
        raise BadModel(f"{path}: damaged or changed, its content is not the model of that name: put the file back")


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
