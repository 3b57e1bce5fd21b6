"""Outlines of texts, to find near-duplicates without a common chunk: 5-word shingles, a MinHash sketch, a simhash.

Two pages of one template with a different word in every eight share no chunk of 94 bytes, but three of eight shingles:
every run of five words without a slot.

Words are whitespace-separated and lower-cased, each hashed once (xxh3-64); the hash of five words in a row is a linear
combination of their hashes with odd factors (the primes of xxHash), mixed by MurmurHash3's finalizer.

*Shingles* (A. Z. Broder, "On the resemblance and containment of documents", 1997): the distinct hashes, 32 bits each; a
foreign shingle matches one of 20,000 by chance once in 200,000 times. A text of fewer than five words is one shingle.

*Sketch* (likewise, by `rensa`): the smallest value of each of 64 seeded permutations of the shingles. The share of
equal places in two sketches estimates the Jaccard similarity J of the sets, with standard error sqrt(J(1 - J) / 64).

*Simhash* (M. S. Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002; for web pages G. S.
Manku, A. Jain, A. Das Sarma, "Detecting near-duplicates for web crawling", WWW 2007): bit k is 1 if the features whose
hash has bit k outweigh the others. Features are the words of at least five characters, because short words are common
to all texts and slots leave few longer n-grams; a word weighs 1 + floor(log2(occurrences)), so that a word that a page
is stuffed with does not decide. Near-duplicates lie below 20 bits.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import rensa
import xxhash

WORDS = 5  # of a shingle
PERMUTATIONS = 64  # places of a sketch
SIMHASH_CHARS = 5  # of the shortest word that is a feature of the simhash, if there is one
_FACTORS = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
_SEED = 5  # of the permutations
_PIECE = 5_000  # hashes at a time: rensa starts threads for more
_ROWS = 4096  # features at a time: their 64 bits take 2 MiB while weights are summed

Hashes = npt.NDArray[np.uint64]


class Outline(msgspec.Struct, array_like=True, frozen=True):
    """Simhash, sketch of all `shingle_count` shingles, and the smallest shingles, ascending (little-endian uint32)."""

    simhash: int = 0
    shingle_count: int = 0
    sketch: bytes = b""
    shingles: bytes = b""


def outline(text: str, cap: int) -> Outline:
    """The outline of a text with its `cap` smallest shingles, so that similar texts keep the same shingles."""
    words = text.lower().split()
    if not words:
        return Outline()
    joined = " ".join(words)
    encoded = joined.encode("utf-8", "replace")
    hashes = np.fromiter(map(xxhash.xxh3_64_intdigest, encoded.split(b" ")), np.uint64, len(words))
    shingles = _shingles(hashes)
    if len(encoded) == len(joined):  # ASCII
        spaces = np.flatnonzero(np.frombuffer(encoded, np.uint8) == ord(" "))
        lengths = np.diff(spaces, prepend=-1, append=len(encoded)) - 1
    else:
        lengths = np.fromiter(map(len, words), np.int64, len(words))
    return Outline(
        simhash=_simhash(hashes, lengths),
        shingle_count=len(shingles),
        sketch=sketch(shingles.astype(np.uint64), PERMUTATIONS).astype("<u4").tobytes(),  # without hashing them again
        shingles=shingles[:cap].astype("<u4").tobytes(),
    )


def sketch(hashes: npt.NDArray[np.uint64], permutations: int) -> npt.NDArray[np.uint32]:
    """The sketch of a set of at least one hash; the smallest value in each place of its pieces."""
    smallest = np.full(permutations, np.iinfo(np.uint32).max, np.uint32)
    for start in range(0, len(hashes), _PIECE):
        piece = hashes[start : start + _PIECE]
        digests = rensa.RMinHash.digest_matrix_from_flat_token_hashes(piece, [0, len(piece)], permutations, _SEED)
        np.minimum(smallest, np.array(digests.to_rows()[0], np.uint32), out=smallest)
    return smallest


def _shingles(words: Hashes) -> npt.NDArray[np.uint32]:
    length = min(WORDS, len(words))
    count = len(words) - length + 1
    mixed = np.zeros(count, np.uint64)
    for place in range(length):
        mixed += words[place : place + count] * np.uint64(_FACTORS[place])
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        mixed ^= mixed >> np.uint64(33)
        mixed *= np.uint64(factor)
    mixed >>= np.uint64(32)
    shingles = mixed.astype(np.uint32)
    shingles.sort()
    return shingles[_firsts(shingles)]


def _firsts(ascending: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Mark the first of each group of equal values. np.unique takes several times as long."""
    firsts = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=firsts[1:])
    return firsts


def _simhash(hashes: Hashes, lengths: npt.NDArray[np.int64]) -> int:
    long = hashes[lengths >= SIMHASH_CHARS]
    occurrences = np.sort(long if len(long) else hashes)
    starts = np.flatnonzero(_firsts(occurrences))
    features, counts = occurrences[starts], np.diff(starts, append=len(occurrences))
    weights = np.frexp(counts)[1].astype(np.float64)  # whole numbers: a sum is the same in any order, on any machine
    ones = np.zeros(64)
    for start in range(0, len(features), _ROWS):
        part = features[start : start + _ROWS].astype(">u8").view(np.uint8)
        ones += weights[start : start + _ROWS] @ np.unpackbits(part).reshape(-1, 64)
    return int.from_bytes(np.packbits(2 * ones > weights.sum()).tobytes(), "big")
