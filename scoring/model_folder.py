"""Where a language model lies on this machine, and a fingerprint of it that costs milliseconds.

A model of the hub lies in the hub's cache, a folder of links to files; any other model is a plain folder. The
fingerprint is a SHA-256 over the configuration, the tokenizer and, of every weight file, its name, size, header and 64
blocks of 4 KiB spread evenly over its numbers: training changes nearly all numbers, so two models of one shape differ
in it. It tells models apart; it is no seal against someone who forges a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from scoring.errors import MissingExtra, MissingModel, UnsupportedModel

CONFIG = "config.json"
_TOKENIZER_FILES = (
    "added_tokens.json",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
)
HUB_FILES = ("*.safetensors", "*.safetensors.index.json", CONFIG, *_TOKENIZER_FILES)
"""What is fetched of a model: never pickled weights, never code."""
_BLOCKS, _BLOCK_BYTES = 64, 4096
_SMALL_FILE_BYTES = 64 * 1024 * 1024  # a configuration or tokenizer beyond this is not one


def find_model(name: str, revision: str = "", *, fetch: bool = False) -> Path:
    """The folder of a model: `name` itself where it is one, or else the place of a hub id in the hub's cache.

    `fetch` also downloads what the cache lacks. Raises MissingModel, naming the model, where it was looked for and what
    to run; MissingExtra where a hub id is asked for and huggingface_hub is not installed.
    """
    try:
        folder = Path(name).expanduser()
        if (folder / CONFIG).is_file():
            return folder
        is_folder = folder.is_dir()
    except (OSError, RuntimeError) as error:  # too long a name, a folder that may not be looked into, an unknown ~user
        raise MissingModel(f"the model {name[:200]!r} cannot be looked for: {error}; correct the setting") from error
    if is_folder:
        raise MissingModel(f"the model folder {folder} has no {CONFIG}: copy the whole model there, or name another")
    if not _is_hub_id(name):
        raise MissingModel(f"there is no model folder {folder}: correct the setting, or put the model there")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.constants import HF_HUB_CACHE
        from huggingface_hub.errors import HFValidationError
    except ImportError as error:
        raise MissingExtra("models of the hub need more packages: run pip install 'farmwatch[gpu]'") from error
    patterns = list(HUB_FILES)
    why = "it is not there"
    for offline in (True, False) if fetch else (True,):
        try:
            found = Path(
                snapshot_download(name, revision=revision or None, allow_patterns=patterns, local_files_only=offline)
            )
        except HFValidationError as error:
            raise MissingModel(f"{name!r} is neither a model folder on this machine nor a hub id") from error
        except Exception as error:  # noqa: BLE001  # offline, refused, unknown: the hub's client has many types for it
            why = "it is not there" if offline else f"fetching it failed ({type(error).__name__})"
            continue
        if (found / CONFIG).is_file() and not missing_weights(found):
            return found
        why = "only a part of it is there"
    at = f" --revision {revision}" if revision else ""
    raise MissingModel(
        f"the model {name} was looked for in {HF_HUB_CACHE} and {why}: run `hf download {name}{at}` on a machine with"
        " access to the hub, or set a folder that holds the model"
    )


class _Index(msgspec.Struct):
    weight_map: dict[str, str]  # tensor -> file


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a model's folder, by name."""
    return sorted(folder.glob("*.safetensors"))


def missing_weights(folder: Path) -> list[str]:
    """Names of the weight files that the index of a large model promises and `folder` lacks."""
    missing = []
    for path in sorted(folder.glob("*.safetensors.index.json")):
        try:
            index = msgspec.json.decode(_head(path, _SMALL_FILE_BYTES), type=_Index)
        except (OSError, msgspec.DecodeError):
            return [path.name]
        missing += [name for name in sorted(set(index.weight_map.values())) if not (folder / name).is_file()]
    return missing


def fingerprint(folders: Sequence[Path], salt: str = "") -> str:
    """SHA-256 in hex over the models in `folders`, in order, and `salt`. Raises UnsupportedModel, or MissingModel."""
    digest = hashlib.sha256(salt.encode())
    for folder in folders:
        if missing := missing_weights(folder):
            raise MissingModel(
                f"the model folder {folder} is incomplete: {missing[0]} is missing; copy the whole model"
            )
        weights = weight_files(folder)
        if not weights:
            raise UnsupportedModel(
                f"{folder} holds no *.safetensors: farmwatch reads no other weights, since pickled ones can run code;"
                " convert the model, or take one that is published as safetensors"
            )
        try:
            for path in (folder / CONFIG, *(folder / name for name in _TOKENIZER_FILES)):
                if path.is_file():
                    _part(digest, path.name, _head(path, min(path.stat().st_size, _SMALL_FILE_BYTES)))
            for path in weights:
                _part(digest, path.name, _sample(path))
        except OSError as error:
            raise MissingModel(
                f"{error.filename} cannot be read: {error.strerror}; mend its rights or copy it anew"
            ) from error
    return digest.hexdigest()


def _is_hub_id(name: str) -> bool:
    return not Path(name).is_absolute() and not name.startswith((".", "~")) and name.count("/") <= 1


def _part(digest: hashlib._Hash, name: str, content: bytes) -> None:
    digest.update(f"\0{name}\0{len(content)}\0".encode())
    digest.update(content)


def _head(path: Path, size_bytes: int) -> bytes:
    with path.open("rb") as file:
        return file.read(size_bytes)


def _sample(path: Path) -> bytes:
    """Size, header and evenly spread blocks of a safetensors file; a small file wholly."""
    size = path.stat().st_size
    if size <= _BLOCKS * _BLOCK_BYTES:
        return path.read_bytes()
    with path.open("rb") as file:
        header_bytes = min(int.from_bytes(file.read(8), "little"), size, _SMALL_FILE_BYTES)
        parts = [str(size).encode(), file.read(header_bytes)]
        room = size - 8 - header_bytes - _BLOCK_BYTES
        for block in range(_BLOCKS):
            file.seek(8 + header_bytes + max(0, room * block // (_BLOCKS - 1)))
            parts.append(file.read(_BLOCK_BYTES))
    return b"".join(parts)
