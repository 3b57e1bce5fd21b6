"""Lines by identity: pinned values, caps, packed marks, and the text without marked lines."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from filters.duplicates.lines import Lines, lines_of, marked_lines, own_text, pack_marks

PINNED = {"Home": 2828549439, "Über uns": 677059132, "footer": 2342335454}


def test_identities_are_pinned() -> None:
    """An identity is the low half of the xxh3-64 of a line; main text and page have the same one for the same line."""
    found = lines_of("Home\nÜber uns\nHome", {"Home", "footer"}, 9)
    assert np.frombuffer(found.main, "<u4").tolist() == [PINNED["Home"], PINNED["Über uns"], PINNED["Home"]]
    assert np.frombuffer(found.page, "<u4").tolist() == sorted(PINNED.values())
    assert np.frombuffer(found.chars, "<u4").tolist() == [4, 8, 4]


def test_a_cap_keeps_the_smallest_of_the_page() -> None:
    """Above the cap, the page keeps its smallest identities; the main text keeps all, to be compared."""
    lines = [str(number) for number in range(100)]
    whole, cut = lines_of("\n".join(lines), (), 100), lines_of("\n".join(lines), (), 7)
    assert cut == Lines(whole.main, whole.chars, whole.page[:28])


@given(st.lists(st.booleans(), max_size=40))
def test_marks_are_unpacked_as_packed(marks: list[bool]) -> None:
    """Any marks come back, and the own text is that of the other lines; no marks take no byte."""
    packed = pack_marks(np.array(marks, np.bool_))
    assert marked_lines(packed) == [place for place, mark in enumerate(marks) if mark]
    assert len(packed) <= (len(marks) + 7) // 8
    assert (packed == b"") is not any(marks)
    lines = [f"line {place}" for place in range(len(marks))]
    own = [line for line, mark in zip(lines, marks, strict=True) if not mark]
    assert own_text("\n".join(lines), packed) == "\n".join(own)
    assert own_text("one line", packed) == ("" if marks[:1] == [True] else "one line")  # marks of another text
