"""Signed-hash word 1-2-grams: the built-in detector's view of a text.

The hashing trick (Weinberger et al., arXiv 0902.2206): an n-gram's crc32 gives its bucket (low 15 bits) and its sign
(bit 31), so a model is a vector of 2^15 numbers without a vocabulary. An n-gram that occurs tf times counts 1 + ln(tf);
buckets add up; the vector has Euclidean length 1. The crc32 of each n-gram is the cost, so all of them run in C.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

BUCKETS = 1 << 15
_BUCKET_MASK = np.int64(BUCKETS - 1)
_SIGN_BIT = np.int64(1 << 16)  # bit 31 of the crc after its low 15 bits went to the front


class Vectors(NamedTuple):
    """Rows of unit length in compressed form: row i is columns[starts[i]:starts[i+1]], sorted, with its values."""

    starts: NDArray[np.int64]  # rows + 1
    columns: NDArray[np.int64]  # buckets
    values: NDArray[np.float64]


def vectors(texts: Sequence[Sequence[bytes]]) -> Vectors:
    """One vector for each list of tokens; no tokens give an empty row."""
    hashed = [[*map(crc32, words), *map(crc32, map(b" ".join, pairwise(words)))] for words in texts]
    sizes = np.fromiter(map(len, hashed), np.int64, len(hashed))
    crc = np.fromiter((value for row in hashed for value in row), np.int64, int(sizes.sum()))
    row = np.repeat(np.arange(len(hashed), dtype=np.int64), sizes)
    # One key (row, bucket, rest of the crc): sorted, equal n-grams are neighbours, and so are n-grams of one bucket.
    key, tf = np.unique(row << 32 | (crc & _BUCKET_MASK) << 17 | crc >> 15, return_counts=True)
    cell = key >> 17
    value = np.where(key & _SIGN_BIT, -1.0, 1.0) * (1.0 + np.log(tf))
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    value = np.add.reduceat(value, first) if len(first) else value
    cell = cell[first]
    row = cell >> 15
    length = np.sqrt(np.bincount(row, weights=value * value, minlength=len(hashed)))
    length[length == 0] = 1.0
    starts = np.searchsorted(row, np.arange(len(hashed) + 1))
    return Vectors(starts, cell & _BUCKET_MASK, value / length[row])
