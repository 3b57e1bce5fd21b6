"""The truth about a page: shares of main text by alignment, F1 of a text, and the words that are learned."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farmwatch.labels.block_gold import Truth, _subsequence
from farmwatch.labels.block_words import page_words, word_scores
from filters.extraction.html_tree import parse
from filters.extraction.learned.page_blocks import page_blocks
from tests.support.extraction_peer import GoldPage, f1

WORDS = st.lists(st.sampled_from("abcd"), max_size=12)


def _length(one: list[str], other: list[str]) -> int:
    """The length of a longest common subsequence, by the recursive definition."""
    rows = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, word in enumerate(one, 1):
        for j, match in enumerate(other, 1):
            rows[i][j] = rows[i - 1][j - 1] + 1 if word == match else max(rows[i - 1][j], rows[i][j - 1])
    return rows[-1][-1]


@given(WORDS, WORDS)
def test_the_alignment_is_a_longest_common_subsequence(words: list[str], gold: list[str]) -> None:
    """The places rise, the words are equal, and there are as many as possible."""
    places = _subsequence(words, gold)
    found = [place for place in places if place >= 0]
    assert found == sorted(set(found)) and len(found) == _length(words, gold)
    assert all(gold[place] == word for word, place in zip(words, places, strict=True) if place >= 0)


def test_a_word_elsewhere_on_the_page_is_not_main_text() -> None:
    """A line has the share of its words in the text; single words that match by chance do not count."""
    truth = Truth("The river rose. The people moved their boats.")
    shares = truth.shares(
        ["A menu", "The river rose.", "their advertisement", "The people moved", "their boats.", "boats"]
    )
    assert shares is not None and shares.tolist() == [0, 1, 0, 1, 1, 0]


def test_segments_label_the_lines_that_have_them() -> None:
    """Other lines are unknown; a segment inside counts for a line with both."""
    shares = Truth(None, ("river  rose", "both"), ("Menu", "both")).shares(["The river rose.", "Menu", "both", "other"])
    assert shares is not None and shares[:3].tolist() == [1, 0, 1] and np.isnan(shares[3])


def test_a_text_too_long_to_compare_is_left_out() -> None:
    """Memory is bounded: nothing is learned from such a page."""
    assert Truth("w " * 30_000).shares(["w " * 30_000]) is None


@pytest.mark.parametrize("text", ["", "The river rose.", "the river, and a boat", "Menu the river"])
def test_f1_is_that_of_the_bench(text: str) -> None:
    """Of words with denominator 1, and of segments over the pages of a source."""
    whole = GoldPage("", b"", "The river rose.", (), ())
    part = GoldPage("", b"", None, ("river", "boat"), ("Menu",))
    hits, of = Truth(whole.text).hits(text)
    assert hits / of == pytest.approx(f1([text], [whole]))
    hits, of = Truth(None, part.belongs, part.foreign).hits(text)
    assert hits / of == pytest.approx(f1([text], [part]))


def test_words_that_tell_have_scores_by_their_domains() -> None:
    """Words of main texts score above 0, those of the rest below; words of few domains have none."""
    html = (
        "<html><body><div class='menu-top'>share<p>share only{0}</div><div id=mainPost><p>river and boat{0}</p></div>"
    )
    pages = []
    for number in range(9):
        page = page_blocks(parse(html.format(number)))
        assert page is not None
        pages.append(page_words(f"d{number}.example", page, np.array([0, 0, 1], np.float32)))
    scores = word_scores(pages)
    assert scores.texts["river"] > 0 > scores.texts["share"] and "only0" not in scores.texts
    assert scores.names["post"] > 0 > scores.names["menu"] and set(scores.marked) == set(scores.names)
    assert word_scores(pages[:7]).texts == {} and word_scores([]).names == {}
