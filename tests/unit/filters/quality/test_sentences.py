"""The ends of sentences, by example."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.quality.sentences import count_sentences
from tests.support.pages.sentences import split_sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["He came.", "She saw!", "Who won?", "Nobody…", "So be it"],
        ["Mr. Smith paid $3.50 to Dr. Jones.", "It was no. 5 of 7 on Jan. 6.", "Was it?", "No.", "He sat."],
        ["It was J. R. R. Tolkien, e.g. Paris is not.", "I did."],
        ["So did I.", "You did not."],
        ["See example.com for more.", "Or v. 2.0.1 of it."],
        ['"Really?" she asked.', '"Yes!"', "He said so (no joke.)", "[Then] he left."],
        ["Is 5 more?", "5 is more.", "Ελλάδα.", "Ωραία."],
        ["An end.", "“A quote.”", "‘Another.’", "An end"],
        ["The U.S. economy grew.", "It was 5 p.m. when it did."],
    ],
)
def test_sentences_end_where_a_reader_ends_them(sentences: list[str]) -> None:
    """Sentences joined by a space or by line feeds are split where they were joined."""
    assert split_sentences(" ".join(sentences)) == sentences
    assert split_sentences("\n".join(sentences)) == sentences


def test_a_line_is_a_sentence_at_least() -> None:
    """A heading without an end mark is a sentence; an empty line is none."""
    assert split_sentences("A heading\n\n  \nA text.\n") == ["A heading", "A text."]
    assert split_sentences("") == split_sentences(" \n") == []


@given(st.text(st.sampled_from("aBé. !?…\"')\n\u2028\x85\t(“Mr"), max_size=60))
def test_nothing_is_lost_and_the_count_is_theirs(text: str) -> None:
    """Sentences hold all of a text but white space, and their number is the counted one."""
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert count_sentences(text) == len(sentences)


@pytest.mark.parametrize(
    "text", ["." * 500_000, ". " * 300_000, '."' * 300_000, "a.   " * 100_000, ("'" * 9 + " ") * 50_000]
)
def test_hostile_texts_are_split_in_linear_time(text: str) -> None:
    """Very long runs of marks, quotes and blanks are searched in linear time."""
    assert count_sentences(text) >= 1
