"""The file of a model of the extractor `blocks` is named by the digest of its content, `<digest>.json`.

So a configuration says exactly which model it means, and the feature epoch is known where the file is not.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from pathlib import Path, PurePath

import xxhash

from filters.errors import BadModel
from filters.model_file import read_bytes

SHIPPED = "blocks.json"
MOST_BYTES = 128 * 1024  # a worker gets it in a frame that fits into its socket's buffer
_NAME = re.compile(r"([0-9a-f]{16})\.json")


def digest_of(data: bytes) -> str:
    """The digest of a model's file, 16 hex digits."""
    return xxhash.xxh3_64_hexdigest(data)


@cache  # asked for each page
def model_digest(path: str) -> str:
    """The digest of the model of a file, by its name; "" = the shipped model. Raises BadModel."""
    if not path:
        return digest_of(_shipped())
    named = _NAME.fullmatch(PurePath(path).name)
    if named is None:
        raise BadModel(f"extractor model {path!r}: its file has the name of its digest, DIGEST.json")
    return named[1]


def model_bytes(path: str) -> bytes:
    """The content of a model's file. Raises BadModel, also for a content that the name does not fit."""
    digest = model_digest(path)
    if digest == model_digest(""):
        return _shipped()
    data = read_bytes(Path(path).absolute(), MOST_BYTES)  # a relative path is of the working directory
    if digest_of(data) != digest:
        raise BadModel(f"{path}: damaged or changed, its content is not the model of that name: put the file back")
    return data


@cache
def _shipped() -> bytes:
    return resources.files("filters.extraction.learned").joinpath(SHIPPED).read_bytes()
