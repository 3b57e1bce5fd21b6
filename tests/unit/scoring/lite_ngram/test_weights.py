"""The weights file: packed weights are read back; any other file is refused by name."""

from __future__ import annotations

import hashlib

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.errors import BadWeights
from scoring.lite_ngram.ngrams import BUCKETS
from scoring.lite_ngram.weights import MAGIC, RECIPE, Calibration, Header, pack, quantise, unpack

RANDOM = np.random.default_rng(7).normal(size=BUCKETS)
QUANTISED, SCALE = quantise(RANDOM)
HEADER = Header(RECIPE, SCALE, 0.25, Calibration(1.5, 0.5, 0.1, 0.2), 0.95, 0.99)
PACKED = pack(HEADER, QUANTISED)


def sealed(body: bytes) -> bytes:
    """A file with a correct checksum and any body."""
    return body + hashlib.sha256(body).digest()


def test_round_trip() -> None:
    """Header and weights are read back, each weight within half a step, with the digest of the file."""
    weights = unpack(PACKED)
    assert weights.header == HEADER
    assert np.abs(weights.vector - RANDOM).max() <= SCALE / 2 + 1e-12
    assert weights.digest == hashlib.sha256(PACKED).hexdigest()


@settings(max_examples=50)
@given(st.integers(0, len(PACKED) - 1), st.integers(0, 7))
def test_a_damaged_file_is_refused(place: int, bit: int) -> None:
    """One wrong bit anywhere, or truncation at any place, is refused."""
    data = bytearray(PACKED)
    data[place] ^= 1 << bit
    for damaged in (bytes(data), PACKED[:place]):
        with pytest.raises(BadWeights):
            unpack(damaged)


@settings(max_examples=50)
@given(st.binary(max_size=200))
def test_sealed_rubbish_is_refused(rubbish: bytes) -> None:
    """A correct checksum alone does not make a weights file."""
    with pytest.raises(BadWeights):
        unpack(sealed(MAGIC + rubbish))


def test_another_recipe_is_refused_by_name() -> None:
    """Weights of another recipe are refused, and the message names both recipes."""
    with pytest.raises(BadWeights, match=f"other-9.*{RECIPE}"):
        unpack(pack(msgspec.structs.replace(HEADER, recipe="other-9"), QUANTISED))


def test_a_payload_of_another_size_is_refused() -> None:
    """More or fewer weights than buckets are refused, also a payload that inflates endlessly."""
    for wrong in (np.zeros(BUCKETS - 1, np.int8), np.zeros(BUCKETS + 1, np.int8), np.zeros(10_000_000, np.int8)):
        with pytest.raises(BadWeights):
            unpack(pack(HEADER, wrong))
