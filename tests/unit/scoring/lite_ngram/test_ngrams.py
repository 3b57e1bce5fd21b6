"""The signed-hash vectors against a plain implementation of the same recipe."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.lite_ngram.ngrams import vectors
from scoring.lite_ngram.words import tokens

SHARE_A_BUCKET = [b"2", b"791"]
WORDS = st.lists(st.sampled_from([b"a", b"the", b"house", b".", b"don't", b"12", b"of", *SHARE_A_BUCKET]), max_size=60)
_ALL = (1 << 64) - 1


def plain_hash(gram: tuple[bytes, ...]) -> int:
    """The crc32s of the tokens side by side, mixed as SplitMix64 does it."""
    value = int.from_bytes(b"".join(zlib.crc32(word).to_bytes(4, "big") for word in gram), "big")
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _ALL
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _ALL
    return value ^ value >> 31


def plain_vector(words: list[bytes]) -> dict[int, float]:
    """The vector of the recipe: top 18 bits, the next as sign, 1 + ln(tf), counts of length 1."""
    grams = Counter([*((word,) for word in words), *pairwise(words)])
    length = math.sqrt(sum((1 + math.log(tf)) ** 2 for tf in grams.values()))
    vector: dict[int, float] = {}
    for gram, tf in grams.items():
        hashed = plain_hash(gram)
        sign = -1.0 if hashed >> 45 & 1 else 1.0
        vector[hashed >> 46] = vector.get(hashed >> 46, 0.0) + sign * (1 + math.log(tf)) / length
    return vector


@settings(max_examples=60)
@given(st.lists(WORDS, min_size=1, max_size=5))
def test_vectors_equal_the_plain_recipe(texts: list[list[bytes]]) -> None:
    """The batch form gives each text its vector, and an empty text an empty row; values of one bucket are summed."""
    starts, columns, values = vectors(texts)
    assert len(starts) == len(texts) + 1
    for i, words in enumerate(texts):
        row: dict[int, float] = {}
        for bucket, value in zip(
            columns[starts[i] : starts[i + 1]].tolist(), values[starts[i] : starts[i + 1]], strict=True
        ):
            row[bucket] = row.get(bucket, 0.0) + value
        expected = plain_vector(words)
        assert row.keys() == expected.keys()
        assert all(abs(row[bucket] - value) < 1e-9 for bucket, value in expected.items())


def test_some_words_share_a_bucket() -> None:
    """The words above that are meant to share a bucket do."""
    assert len({plain_hash((word,)) >> 46 for word in SHARE_A_BUCKET}) == 1


def test_tokens_are_words_numbers_and_punctuation() -> None:
    """Tokens are lower-case words, digits and the listed punctuation; other characters are skipped."""
    assert tokens("It's 2 o'clock — \"Yes\" (really); naïve % x_y!") == [
        *(b"it's", b"2", b"o'clock", "—".encode(), b'"', b"yes", b'"', b"(", b"really", b")", b";"),
        *(b"na", b"ve", b"x", b"y", b"!"),
    ]
