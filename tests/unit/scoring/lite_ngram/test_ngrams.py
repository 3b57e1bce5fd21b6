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

SHARE_A_BUCKET = [b"876", b"2200"]
WORDS = st.lists(st.sampled_from([b"a", b"the", b"house", b".", b"don't", b"12", b"of", *SHARE_A_BUCKET]), max_size=60)


def plain_vector(words: list[bytes]) -> dict[int, float]:
    """The vector of the recipe: crc32, low 15 bits, bit 31 as sign, 1 + ln(tf), length 1."""
    grams = Counter([*words, *(a + b" " + b for a, b in pairwise(words))])
    vector: dict[int, float] = {}
    for gram, tf in grams.items():
        crc = zlib.crc32(gram)
        sign = -1.0 if crc >> 31 else 1.0
        vector[crc & 32767] = vector.get(crc & 32767, 0.0) + sign * (1 + math.log(tf))
    length = math.sqrt(sum(value * value for value in vector.values())) or 1.0
    return {bucket: value / length for bucket, value in vector.items()}


@settings(max_examples=60)
@given(st.lists(WORDS, min_size=1, max_size=5))
def test_vectors_equal_the_plain_recipe(texts: list[list[bytes]]) -> None:
    """The batch form gives each text its vector, and an empty text an empty row; values of one bucket are summed."""
    starts, columns, values = vectors(texts)
    assert len(starts) == len(texts) + 1
    for i, words in enumerate(texts):
        row = dict(zip(columns[starts[i] : starts[i + 1]].tolist(), values[starts[i] : starts[i + 1]], strict=True))
        expected = plain_vector(words)
        assert row.keys() == expected.keys()
        assert all(abs(row[bucket] - value) < 1e-12 for bucket, value in expected.items())


def test_tokens_are_words_numbers_and_punctuation() -> None:
    """Tokens are lower-case words, digits and the listed punctuation; other characters are skipped."""
    assert tokens("It's 2 o'clock — \"Yes\" (really); naïve % x_y!") == [
        *(b"it's", b"2", b"o'clock", "—".encode(), b'"', b"yes", b'"', b"(", b"really", b")", b";"),
        *(b"na", b"ve", b"x", b"y", b"!"),
    ]
