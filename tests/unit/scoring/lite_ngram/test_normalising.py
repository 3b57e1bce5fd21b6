"""Normalisation removes artefacts, keeps prose, and accepts any string."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.lite_ngram.words import normalise


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("“Quotes” and ‘these’ — or – dashes", "\"Quotes\" and 'these' — or — dashes"),
        ("ﬁne ｆｕｌｌ width", "fine full width"),
        ("see https://example.org/a?b=c now", "see URL now"),
        ("[a link](https://example.org/x) here", "a link here"),
        ("# Head\n\n- one\n* two\n3. three\n\t• four", "Head one two three four"),
        ("**bold** and `code`", "bold and code"),
        ("a -- b - c", "a— b— c"),
        ("I do n't, I ca n' t and it 's", "I don't, I can't and it's"),
        ("Q&amp;A &ldquo;so&rdquo; &#8212; &#x26; &nosuch;", 'Q&A "so" — & &nosuch;'),
        ("[assistant]: One.[assistant]: Two [User] three [ system ]: four", "One. Two three four"),
        ("zero\u200bwidth soft\u00adhyphen &zwj;me&#x200E;ans", "zerowidth softhyphen means"),
        ("ze&#0000008203;ro wi&#x00000200b;dth so&shyft li&#8203ne", "zero width soft line"),
    ],
)
def test_typography_and_markup(text: str, plain: str) -> None:
    """Quotes, dashes, widths, links, markdown, bullets and numbering leave plain prose."""
    assert normalise(text) == plain


@pytest.mark.parametrize(
    "preamble",
    [
        "Sure, here is a story about the sea:\n\n",
        "Certainly! Here are some thoughts on that:\n\n",
        "Here is a 12 sentence review:",
        "**Title:** ",
        "Of course! ",
        "[assistant]: ",
        "[ WP ] ",
    ],
)
def test_preambles_are_cut(preamble: str) -> None:
    """Preambles of an assistant or a data set are cut."""
    assert normalise(preamble + "The sea was calm.") == "The sea was calm."


def test_prose_that_resembles_a_preamble_stays() -> None:
    """An opening sentence without an announcing colon stays whole."""
    text = "Sure, I went there. It was cold, and we left before the rain came."
    assert normalise(text) == text


@given(st.text())
def test_any_string_gives_folded_text(text: str) -> None:
    """For any string the result has single spaces, no typographic quotes, and encodes as UTF-8."""
    plain = normalise(text)
    assert plain == " ".join(plain.split())
    assert not set("“”‘’") & set(plain)
    plain.encode()
