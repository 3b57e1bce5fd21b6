"""The file of an n-gram model: a JSON header, then sorted 64-bit keys and float32 shares, read where they lie.

    b"fwngrams", length of the header (uint32), header, padding to 8 bytes
    keys of words, of bigrams [, of trigrams]: uint64, rising
    shares of words, of bigrams [, of trigrams]: float32

All little-endian. The key of a word is its hash. That of a bigram is the place of its first word among the words
<< 32 | the place of its second one; that of a trigram, the place of its first two words among the bigrams << 32 | the
place of its third. So an n-gram has 12 bytes, and those that begin alike lie together. The share of a word is that of
all words, that of a longer n-gram is of all that begin alike. Nothing in it can run: a hostile file is refused, or
gives other numbers.

A model is named by the digest of its file, DIGEST.ngrams.
"""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from filters.errors import BadModel
from filters.perplexity.words import START

SUFFIX = ".ngrams"
VERSION = 1  # of the file
_MAGIC = b"fwngrams"
_MOST_HEADER = 64 * 1024
_MOST_NGRAMS = 1 << 31
_SUMS_TO = 1 + 1e-4  # of shares; float32 sums of a million shares are that exact

Keys = npt.NDArray[np.uint64]
Shares = npt.NDArray[np.float32]


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a model was trained on."""

    corpus: str
    licence: str
    language: str = "en"
    words: int = 0  # of the corpus
    sentences: int = 0


class NgramHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Beside the card: n-grams of each length; the share of unknown words, and how many of them share it."""

    version: int
    counts: tuple[int, ...]
    unknown: float
    unseen: float
    card: Card


class Tables(NamedTuple):
    """The content of a file: keys and shares of words, bigrams, and trigrams if there are any."""

    header: NgramHeader
    keys: tuple[Keys, ...]
    shares: tuple[Shares, ...]


class _Version(msgspec.Struct):
    version: int


def encode(tables: Tables) -> bytes:
    """The content of a file."""
    header = msgspec.json.encode(tables.header)
    start = _MAGIC + len(header).to_bytes(4, "little") + header
    parts = [start.ljust(_padded(len(start)), b"\0")]
    parts += [keys.astype("<u8").tobytes() for keys in tables.keys]
    parts += [shares.astype("<f4").tobytes() for shares in tables.shares]
    return b"".join(parts)


def mapped(path: Path) -> Any:
    """The content of a regular file, mapped into memory. Raises BadModel."""
    try:
        with open(path, "rb", opener=_opener) as file:  # a path has no opener
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise BadModel(f"{path}: the model cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _opener(path: str, flags: int) -> int:
    """Open a file without waiting for what is none, as a pipe."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(None, "no regular file")
    return descriptor


def decoded(data: Any, where: str) -> Tables:
    """Read and check a file's content, of which the tables are views; `where` names it in errors. Raises BadModel."""
    if data[: len(_MAGIC)] != _MAGIC:
        raise BadModel(f"{where}: no n-gram model of farmwatch")
    start = len(_MAGIC) + 4
    length = int.from_bytes(data[len(_MAGIC) : start], "little")
    if length > min(_MOST_HEADER, len(data) - start):
        raise BadModel(f"{where}: cut off, or damaged, in its header")
    header = _header(bytes(data[start : start + length]), where)
    counts = header.counts
    at, keys, shares = _padded(start + length), list[Keys](), list[Shares]()
    if len(data) != at + 12 * sum(counts):
        raise BadModel(f"{where}: cut off, or damaged: {len(data)} bytes in place of {at + 12 * sum(counts)}")
    for count in counts:
        keys.append(np.frombuffer(data, "<u8", count, at))
        at += 8 * count
    for count in counts:
        shares.append(np.frombuffer(data, "<f4", count, at))
        at += 4 * count
    tables = Tables(header, tuple(keys), tuple(shares))
    if problem := _problem(tables):
        raise BadModel(f"{where}: damaged: {problem}")
    return tables


def _padded(length: int) -> int:
    return -(-length // 8) * 8


def _header(data: bytes, where: str) -> NgramHeader:
    try:
        its = msgspec.json.decode(data, type=_Version).version
        if its != VERSION:
            raise BadModel(f"{where}: version {its} of a model, this farmwatch reads {VERSION}", case="outdated")
        header = msgspec.json.decode(data, type=NgramHeader)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadModel(f"{where}: damaged in its header: {error}") from None
    if len(header.counts) not in (2, 3) or not all(0 < count < _MOST_NGRAMS for count in header.counts):
        raise BadModel(f"{where}: damaged: it has no words and bigrams, or too many")
    if not (1e-12 <= header.unknown < 1 and 1 <= header.unseen <= 1e12):
        raise BadModel(f"{where}: damaged: unknown words have no share, or all")
    return header


def _problem(tables: Tables) -> str:
    """What is wrong with the numbers, "" = nothing."""
    words = len(tables.keys[0])
    if START not in tables.keys[0]:
        return "no sentence starts in it"
    for keys, shares in zip(tables.keys, tables.shares, strict=True):
        if not np.all(keys[1:] > keys[:-1]):
            return "its keys do not rise"
        if not np.all((shares > 0) & (shares <= 1)):  # false for NaN
            return "a share is not above 0 and up to 1"
    begin = words
    for keys, shares in zip(tables.keys[1:], tables.shares[1:], strict=True):
        if len(keys) and (
            int(keys[-1] >> np.uint64(32)) >= begin or int((keys & np.uint64(0xFFFFFFFF)).max()) >= words
        ):
            return "an n-gram has a word that is not in it"
        if float(np.max(sums_by_beginning(keys, shares, begin), initial=0)) > _SUMS_TO:
            return "the shares of n-grams that begin alike sum to more than 1"
        begin = len(keys)
    of_start = tables.shares[0][tables.keys[0].searchsorted(START)]
    if abs(float(tables.shares[0].sum(dtype=np.float64)) - float(of_start) + tables.header.unknown - 1) > _SUMS_TO - 1:
        return "the shares of words do not sum to 1"
    return ""


def sums_by_beginning(keys: Keys, shares: Shares, beginnings: int) -> Shares:
    """For each beginning, the sum of the shares of the n-grams that have it."""
    places = (keys >> np.uint64(32)).astype(np.intp)
    return np.bincount(places, weights=shares, minlength=beginnings).astype(np.float32)
