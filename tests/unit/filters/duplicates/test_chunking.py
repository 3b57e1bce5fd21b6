"""Content-defined chunks are exact, and depend on content only."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import xxhash
from hypothesis import example, given, settings
from hypothesis import strategies as st

from filters.duplicates.chunker import MASK, MAX_BYTES, MIN_BYTES, WINDOW, chunk, cuts, fingerprint
from filters.extraction.blocks import JOINED, unpack
from filters.measure.page_measures import measure
from filters.settings import MeasureSettings

TEXTS = st.one_of(
    st.binary(max_size=6000),
    st.text(alphabet="aab c\n", max_size=5000).map(str.encode),
    st.integers(0, 2**32).map(lambda seed: np.random.default_rng(seed).bytes(20_000)),
)
MODES = st.sampled_from(["text", "block"])
Mode = Literal["text", "block"]


def ends_of(data: bytes, mode: Mode) -> list[int]:
    """End offsets of the chunks in a mode."""
    return [int(end) for end in np.cumsum(chunk(data, mode).lengths, dtype=np.int64)]


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
@given(TEXTS, st.binary(max_size=300), st.binary(max_size=300), MODES)
@example(bytes(5000), b"", b"x", "text")
@example(b"\n" * 500, b"ab", b"", "block")
def test_once_in_step_two_texts_are_cut_alike(data: bytes, before: bytes, other: bytes, mode: Mode) -> None:
    """Two texts with different beginnings and the same rest: after the first common cut, all cuts are the same."""
    one = [end - len(before) for end in ends_of(before + data, mode) if end >= len(before)]
    two = [end - len(other) for end in ends_of(other + data, mode) if end >= len(other)]
    common = next((end for end in one if end in set(two)), len(data))
    assert [end for end in one if end > common] == [end for end in two if end > common]
    if mode == "block" and b"\n" in data:
        assert common <= data.index(b"\n") + 1


@settings(max_examples=100)
@given(TEXTS, st.integers(0, 20_000), st.binary(min_size=1, max_size=200), MODES)
def test_insertion_into_any_bytes(data: bytes, place: int, inserted: bytes, mode: Mode) -> None:
    """Cuts before an insertion stay; after the first common cut, all cuts move by the inserted length.

    In mode `block`, lines without the insertion keep all their chunks.
    """
    place = min(place, len(data))
    changed = data[:place] + inserted + data[place:]
    old, new = ends_of(data, mode), ends_of(changed, mode)
    assert [end for end in new if end < place] == [end for end in old if end < place]
    moved = [end + len(inserted) for end in old if end > place]
    after = [end for end in new if end > place + len(inserted)]
    common = next((end for end in after if end in set(moved)), len(changed))
    assert [end for end in after if end >= common] == [end for end in moved if end >= common]
    if mode == "block":
        first, stop = data[:place].rfind(b"\n") + 1, data.find(b"\n", place) + 1 or len(data)
        names = set(chunk(changed, mode).ids.tolist())
        assert names.issuperset(chunk(data[:first], mode).ids.tolist())
        assert names.issuperset(chunk(data[stop:], mode).ids.tolist())


@settings(max_examples=100)
@given(TEXTS)
def test_mode_block_is_the_chunks_of_each_line(data: bytes) -> None:
    """In mode `block`, a text has the chunks that its lines have separately, with or without line breaks."""
    lines = data.split(b"\n")
    ends, start = [], 0
    for number, line in enumerate(lines):
        whole = line + b"\n" if number < len(lines) - 1 else line
        ends += [start + end for end in cuts(whole)]
        start += len(whole)
    assert ends_of(data, "block") == ends
    assert chunk(b"the last line", "block").ids.tolist() == chunk(b"the last line\n", "block").ids.tolist()


def test_mode_block_finds_short_repeated_blocks() -> None:
    """Of 200 repeated blocks of 40 to 290 bytes between new ones, `block` finds every byte, and `text` finds few."""
    rng = np.random.default_rng(3)

    def line(length: int) -> bytes:
        return bytes(rng.choice(np.frombuffer(b"abcdefghijklmnopqrstuvwxyz    ", np.uint8), length))

    repeated = [line(int(length)) for length in rng.integers(40, 290, 200)]
    pages = [b"\n".join(piece for block in repeated for piece in (line(300), block)) for _ in range(2)]
    bytes_found = {}
    for mode in ("text", "block"):
        first, second = (chunk(page, mode) for page in pages)
        bytes_found[mode] = int(second.lengths[np.isin(second.ids, first.ids)].sum())
    size = sum(len(block) + 1 for block in repeated) - 1
    assert size <= bytes_found["block"] <= size + 200
    assert bytes_found["text"] < 0.5 * size


def test_a_line_is_a_block_with_what_is_joined_to_it() -> None:
    """Mode `block` restarts at each row of the block table that does not continue a line."""
    prose = "The river rose slowly during the night and the people moved their boats to higher ground. "
    html = (
        f"<html><body><article><h1>Title</h1><p>{prose * 3}<code>make all</code> {prose}</p><ul><li>One {prose}</li>"
        f"<li>Two <q>{prose}</q> and <code>x = 1</code></li></ul><blockquote>{prose * 2}</blockquote>"
        f"<pre>first\nsecond</pre><p>{prose * 4}</p></article></body></html>"
    )
    found = measure("u", html, "", MeasureSettings())
    rows = unpack(found.blocks)
    assert any(row.kind & JOINED for row in rows)
    assert len(found.text.split("\n")) == sum(not row.kind & JOINED for row in rows)


@settings(max_examples=40)
@given(st.lists(st.text(alphabet="abc de", max_size=300), max_size=12))
def test_chunk_names_the_bytes_of_each_chunk(lines: list[str]) -> None:
    """Identities are xxh3-64 of the chunks' bytes, in both modes, and lengths add up."""
    data = "\n".join(lines).encode()
    ends = cuts(data)
    text = chunk(data)
    assert text.ids.tolist() == [xxhash.xxh3_64_intdigest(data[a:b]) for a, b in pairwise([0, *ends])]
    assert int(text.lengths.sum()) == int(chunk(data, "block").lengths.sum()) == len(data)
    assert set(np.cumsum(chunk(data, "block").lengths).tolist()) >= {i + 1 for i, b in enumerate(data) if b == 10}
