"""Content-defined chunks are exact, and depend on content only."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import xxhash
from hypothesis import example, given, settings
from hypothesis import strategies as st

from filters.duplicates.chunker import MASK, MAX_BYTES, MIN_BYTES, WINDOW, chunk, cuts, fingerprint

TEXTS = st.one_of(
    st.binary(max_size=6000),
    st.text(alphabet="aab c\n", max_size=5000).map(str.encode),
    st.integers(0, 2**32).map(lambda seed: np.random.default_rng(seed).bytes(20_000)),
)


def by_definition(data: bytes) -> list[int]:
    """Cuts by the definition, a whole fingerprint for every position."""
    ends, start = [], 0
    for end in range(1, len(data) + 1):
        length = end - start
        zero = length >= MIN_BYTES and fingerprint(data[end - WINDOW : end]) & MASK == 0
        if zero or length == MAX_BYTES or end == len(data):
            ends.append(end)
            start = end
    return ends


def test_golden_fingerprints_and_cuts(shared: Path) -> None:
    """All 53 bits of the fingerprint, and the cuts of every golden text, equal independently computed values."""
    golden = json.loads((shared / "golden" / "cdc.json").read_text())
    assert golden["fingerprints"] and golden["cases"]
    for case in golden["fingerprints"]:
        assert fingerprint(bytes.fromhex(case["window_hex"])) == int(case["fp"], 16)
    for case in golden["cases"]:
        assert cuts(case["text"].encode()) == case["cuts"]


@settings(max_examples=25)
@given(st.one_of(st.binary(max_size=700), st.text(alphabet="ab ", max_size=2500).map(str.encode)))
@example(bytes(MAX_BYTES * 2 + 5))
@example(bytes(WINDOW - 1))
@example(np.random.default_rng(7).bytes(16 * 1024 + 500))
def test_table_lookups_equal_the_definition(data: bytes) -> None:
    """The six bits from 32 tables cut where the polynomial division does, also across the seams of pieces."""
    assert cuts(data) == by_definition(data)


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(0, 12_000), st.binary(min_size=1, max_size=200))
@example(0, 0, b"x")
def test_insertion_changes_only_a_few_chunks(seed: int, place: int, inserted: bytes) -> None:
    """The cuts of random bytes are the same again within 8,000 bytes after an insertion."""
    data = np.random.default_rng(seed).bytes(20_000)
    new = cuts(data[:place] + inserted + data[place:])
    common = {end + len(inserted) for end in cuts(data) if end > place} & set(new)
    assert min(common) - place < 8_000 + len(inserted)


@settings(max_examples=100)
@given(TEXTS, st.binary(max_size=300), st.binary(max_size=300))
@example(bytes(5000), b"", b"x")
def test_once_in_step_two_texts_are_cut_alike(data: bytes, before: bytes, other: bytes) -> None:
    """Two texts with different beginnings and the same rest: after the first common cut, all cuts are the same."""
    one = [end - len(before) for end in cuts(before + data) if end >= len(before)]
    two = [end - len(other) for end in cuts(other + data) if end >= len(other)]
    common = next((end for end in one if end in set(two)), len(data))
    assert [end for end in one if end > common] == [end for end in two if end > common]


@settings(max_examples=40)
@given(st.lists(st.text(alphabet="abc de", max_size=300), max_size=12))
def test_chunk_names_the_bytes_of_each_chunk(lines: list[str]) -> None:
    """Identities are xxh3-64 of the chunks' bytes, and lengths add up."""
    data = "\n".join(lines).encode()
    ends = cuts(data)
    text = chunk(data)
    assert text.ids.tolist() == [xxhash.xxh3_64_intdigest(data[a:b]) for a, b in pairwise([0, *ends])]
    assert int(text.lengths.sum()) == len(data)
