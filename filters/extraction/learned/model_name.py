"""The file of a model of the extractor `blocks` is named by the digest of its content, `<digest>.json`.

So a configuration says exactly which model it means, and the feature epoch is known where the file is not.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

from filters.errors import BadModel
from filters.model_file import digest_in, digest_of, read_bytes, refuse_changed

SHIPPED = "blocks.json"
MOST_BYTES = 128 * 1024  # a worker gets it in a frame that fits into its socket's buffer


@cache  # asked for each page
def model_digest(path: str) -> str:
    """The digest of the model of a file, by its name; "" = the shipped model. Raises BadModel."""
    if not path:
        return digest_of(_shipped())
    named = digest_in(path, ".json")
    if named is None:
        raise BadModel(f"extractor model {path!r}: its file has the name of its digest, DIGEST.json")
    return named


def model_bytes(path: str) -> bytes:
    """The content of a model's file. Raises BadModel, also for a content that the name does not fit."""
    digest = model_digest(path)
    if digest == model_digest(""):
        return _shipped()
    data = read_bytes(Path(path).absolute(), MOST_BYTES)  # a relative path is of the working directory
    refuse_changed(path, data, digest)
    return data


@cache
def _shipped() -> bytes:
    return resources.files("filters.extraction.learned").joinpath(SHIPPED).read_bytes()
