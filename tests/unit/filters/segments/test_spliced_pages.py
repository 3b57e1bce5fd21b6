"""Segments of pages that are made of several texts."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from filters.measure.page_measures import measure
from filters.segments.names import SegmentKind
from filters.settings import MeasureSettings
from tests.support.pages.spliced import TEMPLATES, UNSIGNED, URL, spliced

LEAST_RECORDS = {SegmentKind.COMMENT: 2, SegmentKind.TEASER: 3}


def text_of(number: int, sizes: list[int]) -> list[str]:
    """A text of its own words, with paragraphs of so many words."""
    return [" ".join(f"word{number}{place}{of}" for of in range(size)) for place, size in enumerate(sizes)]


@pytest.mark.parametrize("name", TEMPLATES)
@given(sizes=st.lists(st.lists(st.integers(12, 20), min_size=1, max_size=2), min_size=2, max_size=6))
def test_texts_of_a_spliced_page_are_segments(name: str, sizes: list[list[int]]) -> None:
    """Each of two to six texts under a template with a sign is whole in a segment of its kind, which has no other."""
    template = TEMPLATES[name]
    texts = [text_of(number, of_text) for number, of_text in enumerate(sizes)]
    is_article = bool(template.first)
    assume(len(texts) - is_article >= LEAST_RECORDS[template.kind])
    measured = measure(URL, spliced(texts, template), "", MeasureSettings())
    records = [
        (of_kind.kind, text.split("\n")) for of_kind in measured.segments if of_kind.texts for text in of_kind.texts
    ]
    assert len(records) == len(texts) - is_article
    for place, ((kind, lines), text) in enumerate(zip(records, texts[is_article:], strict=True)):
        assert [line for line in lines if line.startswith("word")] == text
        assert kind == template.kind or (kind == SegmentKind.POST and not place)


@pytest.mark.parametrize("name", UNSIGNED)
def test_parts_without_a_sign_stay_one_text(name: str) -> None:
    """Sections that nothing tells from a long text's are one segment."""
    texts = [text_of(number, [20, 20]) for number in range(4)]
    measured = measure(URL, spliced(texts, UNSIGNED[name]), "", MeasureSettings())
    assert [of_kind.kind for of_kind in measured.segments] == [SegmentKind.ARTICLE]
