"""C4's line cleaning against its definition, line by line."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from filters.quality.c4 import clean
from filters.quality.measures import measure_quality
from filters.quality.names import MEASURES


@pytest.mark.parametrize(
    "line",
    [
        "This line ends well.",
        "Does this line end well?",
        "This line ends well!",
        'He said "this one ends well"',
        "The dogs' tails are the dogs'",
        "One two three.",
        "x" * 1_000 + " and more.",
    ],
)
def test_a_line_that_ends_as_a_sentence_does_is_kept(line: str) -> None:
    """A line is kept with at least three words, one of five end marks, and no overlong word."""
    assert clean(line).text == line


@pytest.mark.parametrize(
    "line",
    [
        "This line does not end",
        "This line trails off...",
        "This line ends in an ellipsis…",
        "This line has a “curly quote”",
        "Two words.",
        "x" * 1_001 + " and more.",
        "Please enable JavaScript to see this.",
        "See our Privacy Policy.",
        "See our terms of use.",
        "This site uses cookies.",
        "The \u212aelvin sign lowers to k: uses coo\u212aies.",
        "",
    ],
)
def test_any_other_line_goes(line: str) -> None:
    """Any other line is dropped; the kept lines around it are joined by a line feed."""
    assert clean(line).text == ""
    around = clean(f"It was a first line.\n{line}\nIt was a last line.")
    assert around.text == "It was a first line.\nIt was a last line."


def test_citations_are_taken_out_before_the_end_is_looked_at_and_after_words_are_counted() -> None:
    """`[1]` counts as a word and is removed before the end mark is checked."""
    assert clean("A full sentence.[1][edit]").text == "A full sentence."
    assert clean("Two words. [1]").text == ""  # ends in a space after the citation is removed
    assert clean("[12] Two words.").text == "Two words."
    assert clean("Kept [citation needed] as it is.").text == "Kept  as it is."


def test_counts_stand_in_both_texts() -> None:
    """C4's three counts are those of the main text, even in the measures of the cleaned text."""
    both = measure_quality("Here is a {bracket}.\nAnd a line without an end")
    at = [MEASURES.index(name) for name in MEASURES if name.startswith("c4_")]
    assert [both["main"][place] for place in at] == [both["c4"][place] for place in at] == [0.0, 1.0, 1.0]


GOLDEN = """\
Home | About | Contact
 The museum opens at nine.  It closes at five![1]
The museum opens at nine.
Tickets [citation needed] are sold "at the door"
Ask for Dr. Smith, e.g. at noon? He knows the dogs'
Read more...
See you there.\u2028[edit] Bring a friend.\x85Bring two
Two words.
LOREM ipsum dolor sit amet.
Lorem ipsum {braces} count for both.
A line with {braces} counts once.
Enable JavaScript, not {braces} or lorem ipsum.
This site uses cookies {braces} too.
Our Privacy Policy has changed.
Es gibt 3.5 Liter… Und mehr.
{ no end mark, no count
"""


def test_a_fixed_text_is_cleaned_as_ever() -> None:
    """The kept lines and counts of a fixed text are pinned.

    A change must raise `MEASURES_VERSION` and `RULES_VERSION` (filters.rules.catalogue), because stored verdicts and
    scores are of the text as it was cleaned before.
    """
    found = clean(GOLDEN)
    assert found.text.split("\n") == [
        "The museum opens at nine.  It closes at five!",
        "The museum opens at nine.",
        'Tickets  are sold "at the door"',
        "Ask for Dr. Smith, e.g. at noon? He knows the dogs'",
        "See you there.",
        " Bring a friend.",
        "LOREM ipsum dolor sit amet.",
        "Lorem ipsum {braces} count for both.",
        "A line with {braces} counts once.",
        "Es gibt 3.5 Liter… Und mehr.",
    ]
    assert (found.lorem_ipsum_lines, found.curly_bracket_lines, found.sentences) == (3, 3, 13)
    assert clean("One line to keep.\nand none\nOne more to keep.").kept == [True, False, True]


@given(st.lists(st.text(st.sampled_from("a. [1]\r\x85\u2028!'\"…{"), max_size=12), max_size=6).map("\n".join))
@example("a\x85b c d.\nThis is one line.\nmenu\n")
def test_cleaned_lines_are_lines_of_the_text(text: str) -> None:
    """Cleaning twice changes nothing in lines without citations, and `kept` names the lines of the cleaned text."""
    found = clean(text)
    if found.kept is not None:
        lines = [line for line, kept in zip(text.split("\n"), found.kept, strict=True) if kept]
        assert "\n".join(lines).rstrip() == found.text
        assert clean(found.text).text == found.text
