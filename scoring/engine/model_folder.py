"""Finds a language model on this machine and computes its fingerprint in milliseconds.

A model of the hub lies in the hub's cache, a folder of links to files; any other model is a plain folder. The
fingerprint is a SHA-256 over the configuration, the tokenizer, the index of the weights and, of every weight file, its
name, size, header and 64 blocks of 4 KiB spread evenly over its numbers: training changes nearly all numbers, so two
models of one shape differ in it. It distinguishes models; it does not protect against a forged file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from scoring.errors import MissingModel, NotDownloaded, UnsupportedModel
from stream.text.user_errors import MissingExtra

CONFIG = "config.json"
_TOKENIZER_FILES = (
    "added_tokens.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "special_tokens_map.json",
    "spiece.model",
    "spm.model",
    "tiktoken.model",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
)
_ADAPTER = "adapter_config.json"
_BLOCKS, _BLOCK_BYTES = 64, 4096
_SMALL_FILE_BYTES = 64 * 1024 * 1024  # a larger file is not a configuration or tokenizer


def find_model(name: str, revision: str = "") -> Path:
    """The folder of a model: `name` itself if it is one, otherwise the place of a hub id in the hub's cache.

    Nothing is downloaded. Raises MissingModel with the model and the searched place; MissingExtra for a hub
    id without huggingface_hub.
    """
    try:
        folder = Path(name).expanduser()
        if (folder / CONFIG).is_file():
            return folder
        is_folder = folder.is_dir()
    except (OSError, RuntimeError) as error:  # too long a name, an unreadable folder, an unknown ~user
        raise MissingModel(f"the model {name[:200]!r} cannot be looked for: {error}; correct the setting") from error
    if is_folder or name.startswith((".", "~", "/")) or name.count("/") > 1:
        raise MissingModel(
            f"there is no model folder {folder} with a {CONFIG}: copy the whole model there, or correct the setting"
        )
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.constants import HF_HUB_CACHE
        from huggingface_hub.errors import HFValidationError
    except ImportError as error:
        raise MissingExtra(
            f"there is no model folder {folder}, and models of the hub need more packages", extra="gpu"
        ) from error
    try:
        snapshot = Path(snapshot_download(name, revision=revision or None, local_files_only=True))
        weight_files(snapshot)
        return snapshot
    except UnsupportedModel:
        raise
    except HFValidationError as error:
        raise MissingModel(f"{name!r} is neither a model folder on this machine nor a hub id") from error
    except MissingModel:
        why = "only a part of it is there"
    except Exception:  # noqa: BLE001  # the hub's client has many error types for missing models and bad ids
        why = "it is not there"
    raise NotDownloaded(
        f"the model {name} was looked for in {HF_HUB_CACHE} and {why}", model=name, revision=revision or "main"
    )


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a model's folder, by name, including files in subfolders that an index names.

    Raises MissingModel if the configuration, or a file that an index names, is missing; UnsupportedModel for a folder
    without weights, for an index that points elsewhere, and for an adapter, which would change other weights.
    """
    if (folder / _ADAPTER).is_file():
        raise UnsupportedModel(f"{folder} holds an adapter ({_ADAPTER}): merge it into the model's weights")
    names = {path.name for path in folder.glob("*.safetensors")}
    for index in _indices(folder):
        try:
            names |= set(msgspec.json.decode(_head(index, _SMALL_FILE_BYTES), type=_Index).weight_map.values())
        except (OSError, msgspec.DecodeError) as error:
            raise MissingModel(f"{index} cannot be read ({error}): copy the whole model") from error
    for name in sorted(names):
        if Path(name).is_absolute() or ".." in Path(name).parts or not name.endswith(".safetensors"):
            raise UnsupportedModel(f"{folder} has weights in {name!r}: only *.safetensors in the folder are read")
    for name in (CONFIG, *sorted(names)):
        if not (folder / name).is_file():
            raise MissingModel(f"the model folder {folder} is incomplete: {name} is missing; copy the whole model")
    if not names:
        raise UnsupportedModel(
            f"{folder} holds no *.safetensors: no other weights are read, since pickled ones can run code;"
            " convert the model, or take one that is published as safetensors"
        )
    return [folder / name for name in sorted(names)]


def fingerprint(folders: Sequence[Path], salt: str = "") -> str:
    """SHA-256 in hex over the models in `folders`, in order, and `salt`. Raises UnsupportedModel, or MissingModel."""
    digest = hashlib.sha256(salt.encode())
    for folder in folders:
        weights = weight_files(folder)
        try:
            small = [folder / CONFIG, *(folder / name for name in _TOKENIZER_FILES), *_indices(folder)]
            for path in (*(path for path in small if path.is_file()), *weights):
                content = _sample(path) if path in weights else _head(path, _SMALL_FILE_BYTES)
                digest.update(f"\0{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode())
                digest.update(content)
        except OSError as error:
            raise MissingModel(
                f"{error.filename} cannot be read: {error.strerror}; mend its rights or copy it anew"
            ) from error
    return digest.hexdigest()


class _Index(msgspec.Struct):
    weight_map: dict[str, str]  # tensor -> file


def _indices(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors.index.json"))


def _head(path: Path, size_bytes: int) -> bytes:
    with path.open("rb") as file:
        return file.read(size_bytes)


def _sample(path: Path) -> bytes:
    """Size, header and evenly spread blocks of a safetensors file, or all of a small file."""
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
