"""Characters that no reader sees are taken out of a text; all that is seen stays."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.text.invisible import without_invisible

OF_UNICODE = 4174  # code points with the property Default_Ignorable_Code_Point
SEEN_FORMATS = "\u0600\u06dd\u070f\u08e2\ufff9\U000110bd"  # signs of general category Cf that are drawn


def test_the_list_is_the_property_of_unicode() -> None:
    """As many code points are taken out as have the property; of the formats, signs that are drawn stay."""
    every = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    assert len(every) - len(without_invisible(every)) == OF_UNICODE
    assert without_invisible(SEEN_FORMATS) == SEEN_FORMATS


@pytest.mark.parametrize(
    "name",
    [
        *("SOFT HYPHEN", "COMBINING GRAPHEME JOINER", "ARABIC LETTER MARK", "HANGUL CHOSEONG FILLER"),
        *("MONGOLIAN VOWEL SEPARATOR", "ZERO WIDTH SPACE", "ZERO WIDTH JOINER", "LEFT-TO-RIGHT MARK", "WORD JOINER"),
        *("INVISIBLE TIMES", "POP DIRECTIONAL ISOLATE", "HANGUL FILLER", "VARIATION SELECTOR-16"),
        *("ZERO WIDTH NO-BREAK SPACE", "HALFWIDTH HANGUL FILLER", "TAG LATIN SMALL LETTER A", "VARIATION SELECTOR-256"),
    ],
)
def test_words_are_joined_where_one_was(name: str) -> None:
    """A word with such a character inside is the word without it."""
    assert without_invisible(f"kä{unicodedata.lookup(name)}se") == "käse"


@given(st.text())
def test_nothing_else_changes(text: str) -> None:
    """Any string is accepted; what stays is in order, and taking out again takes nothing."""
    once = without_invisible(text)
    left = iter(text)
    assert all(character in left for character in once)
    assert without_invisible(once) == once


def test_a_text_with_a_lone_surrogate_stays() -> None:
    """A string that is no Unicode text is returned as it is."""
    assert without_invisible("a\ud800\u200b") == "a\ud800\u200b"
