"""Signed-hash word 1-2-grams: the built-in detector's view of a text.

The hashing trick (Weinberger et al., arXiv 0902.2206): the mixed crc32s of an n-gram's tokens give its bucket (top 18
bits) and its sign (the next bit), so a model is a vector of 2^18 numbers without a vocabulary. An n-gram that occurs tf
times counts 1 + ln(tf), rounded so that it is the same on every processor; a text's counts have Euclidean length 1.
Only the crc32 of each token is computed by the word; all else is done for a batch at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

BUCKET_BITS = 18
BUCKETS = 1 << BUCKET_BITS
_HASH_BITS = 48  # of the 64 mixed bits; the row has the others
MOST_TEXTS = 1 << (64 - _HASH_BITS)
_HASH_MASK = np.uint64((1 << _HASH_BITS) - 1)
_COUNT_PLACES = 12


class Vectors(NamedTuple):
    """Rows in compressed form: columns[starts[i]:starts[i+1]] with their values. Values of one column add up."""

    starts: NDArray[np.int64]  # rows + 1
    columns: NDArray[np.int64]  # buckets, sorted within a row; n-grams that share a bucket repeat it
    values: NDArray[np.float64]  # of unit length in each row, before n-grams share buckets


def vectors(texts: Sequence[Sequence[bytes]]) -> Vectors:
    """One vector for each list of tokens, of at most MOST_TEXTS; no tokens give an empty row."""
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    crc = np.fromiter((value for words in texts for value in map(crc32, words)), np.uint64, int(sizes.sum()))
    row = np.repeat(np.arange(len(texts), dtype=np.uint64), sizes)
    pairs = np.flatnonzero(row[1:] == row[:-1])
    grams = np.concatenate([crc, crc[pairs] << np.uint64(32) | crc[pairs + 1]])
    rows = np.concatenate([row, row[pairs]])
    # One key (row, hash): sorted, equal n-grams are neighbours.
    key, tf = np.unique(rows << np.uint64(_HASH_BITS) | _mixed(grams) >> np.uint64(64 - _HASH_BITS), return_counts=True)
    count = 1.0 + np.round(np.log(tf), _COUNT_PLACES)
    place = (key >> np.uint64(_HASH_BITS)).astype(np.int64)
    length = np.sqrt(np.bincount(place, weights=count * count, minlength=len(texts)))
    hashed = (key & _HASH_MASK) >> np.uint64(_HASH_BITS - BUCKET_BITS - 1)  # bucket and sign
    signed = np.where(hashed & np.uint64(1), -count, count)
    starts = np.searchsorted(place, np.arange(len(texts) + 1))
    return Vectors(starts, (hashed >> np.uint64(1)).astype(np.int64), signed / length[place])


def _mixed(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Each bit of the result depends on each bit of the value (the finaliser of SplitMix64, OOPSLA 2014)."""
    value = (value ^ value >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ value >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return np.asarray(value ^ value >> np.uint64(31))
