"""Repeated passages against a naive definition, and against the share that MEASURE records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from filters.duplicates.chunker import chunk
from filters.duplicates.repeats import SEEN_ON, Passage, Repeats
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer

SITE = "a.example"
FOOTER = "Sign up for the letter that we send on the first Monday of each month, and read what is new in it. " * 4

_LINES = st.sampled_from(
    [
        FOOTER,
        "A short line.",
        "Ärger mit Umlauten – und “Zeichen” aus mehreren Bytes: 日本語のテキスト, immer wieder, Zeile für Zeile. " * 3,
        *(f"The {word} went along the old wall to where the {word} of last year had stood. " * 3 for word in "abcdefg"),
    ]
)
_TEXTS = st.one_of(st.lists(_LINES, max_size=8).map("\n".join), st.text(max_size=300))


def _repeats(text: str, earlier: Sequence[str]) -> Repeats:
    found = Repeats(text)
    for place, other in enumerate(earlier):
        found.compare(f"page {place}", other)
    return found


def _naive(text: str, earlier: Sequence[str]) -> list[Passage]:
    """The definition, chunk by chunk: a run has one first page, and counts the pages that have all of it."""
    data = text.encode("utf-8", "replace")
    chunks = chunk(data)
    pages = [set(chunk(other.encode("utf-8", "replace")).ids.tolist()) for other in earlier]
    rows, start = [], 0
    for ident, length in zip(chunks.ids.tolist(), chunks.lengths.tolist(), strict=True):
        first = next((place for place, ids in enumerate(pages) if ident in ids), None)
        rows.append((first, ident, start, start + length))
        start += length
    passages = []
    for first, run in groupby(rows, key=lambda row: row[0]):
        if first is None:
            continue
        run_rows = list(run)
        ids = {row[1] for row in run_rows}
        begin, end = run_rows[0][2], run_rows[-1][3]
        having = [f"page {place}" for place, others in enumerate(pages) if ids <= others]
        text_of = data[begin:end].decode("utf-8", "ignore")
        passages.append((begin, Passage(text_of, end - begin, tuple(having[:SEEN_ON]), len(having), begin)))
    return [passage for _, passage in sorted(passages, key=lambda found: (-found[1].size_bytes, found[0]))]


@given(_TEXTS, st.lists(_TEXTS, max_size=9))
def test_passages_are_as_the_naive_definition_has_them(text: str, earlier: list[str]) -> None:
    """For any texts, passages, bytes, names and counts equal a look-up of each chunk in each page."""
    found = _repeats(text, earlier)
    assert found.passages() == _naive(text, earlier)
    assert (found.compared, found.size_bytes) == (len(earlier), len(text.encode("utf-8", "replace")))
    assert found.repeated_bytes == sum(passage.size_bytes for passage in found.passages())


def test_passages_add_up_to_the_share_that_is_recorded() -> None:
    """Without eviction, the bytes of a page's passages over its length are its duplicate_share."""
    measurer = Measurer(MeasureSettings())
    texts: list[str] = []
    shares = []
    for place in range(5):
        own = " ".join(f"Sentence {place * 7 % 5}-{number} of the story is here to be read." for number in range(40))
        shared = f"<p>{FOOTER}</p>" if place % 2 else "<p>Nothing of the sort stands under this page of the site.</p>"
        html = f"<html><body><article><p>{own}</p>{shared}<p>The end, {place}.</p></article></body></html>"
        features = measurer.measure(f"https://{SITE}/{place}", html, SITE)
        found = _repeats(features.text, texts)
        assert found.repeated_bytes / found.size_bytes == features.measures["duplicate_share"]
        shares.append(features.measures["duplicate_share"])
        texts.append(features.text)
    assert shares[0] == 0
    assert max(share for share in shares if isinstance(share, float)) > 0.1


def test_a_footer_is_one_passage_with_the_pages_that_have_it() -> None:
    """Adjacent repeated chunks are one passage, named after the first pages with it; all pages with it are counted."""
    own = "Something new is told on this page and nowhere else, which is why it was made at all. " * 5
    earlier = ["Here is nothing of it.", *(f"Page number {place}.\n{FOOTER}" for place in range(SEEN_ON + 2))]
    found = _repeats(f"{own}\n{FOOTER}", earlier)
    (passage,) = found.passages()
    assert FOOTER.endswith(passage.text) and len(passage.text) > len(FOOTER) / 2
    assert (passage.pages, passage.size_bytes) == (SEEN_ON + 2, len(passage.text))
    assert passage.seen_on == tuple(f"page {place}" for place in range(1, SEEN_ON + 1))
    assert (found.compared, found.alike) == (SEEN_ON + 3, SEEN_ON + 2)
