"""The truth about main texts: shares of lines by common runs of words, F1 of texts, and the words that are learned."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from farmwatch.labels.labelled_pages import LabelledPages
from filters.extraction.html_tree import parse
from filters.extraction.learned.page_blocks import page_blocks
from lab.extractor.gold import GoldTexts, keep_main_texts
from lab.extractor.words import page_words, word_scores
from tests.support.pages.extraction_peer import f1


def test_a_word_elsewhere_on_the_page_is_not_main_text() -> None:
    """A line has the share of its words in the text; single words that match by chance do not count."""
    truth = GoldTexts("The river rose. The people moved their boats.")
    lines = ["A menu", "The river rose.", "their advertisement", "The people moved", "their boats.", "boats", "..."]
    shares = truth.shares(lines)
    assert shares is not None and shares.tolist() == [0, 1, 0, 1, 1, 0, 0]
    half = truth.shares(["Read: the river"])
    assert half is not None and half.tolist() == [pytest.approx(2 / 3)]


def test_segments_label_the_lines_that_have_them() -> None:
    """Other lines are unknown; a segment inside counts for a line with both."""
    shares = GoldTexts(None, ("river  rose", "both"), ("Menu", "both")).shares(
        ["The river rose.", "Menu", "both", "other"]
    )
    assert shares is not None and shares[:3].tolist() == [1, 0, 1] and np.isnan(shares[3])


def test_what_no_reader_sees_is_no_difference() -> None:
    """A label with invisible characters, as people copy them from a page, is that of the text without them."""
    assert GoldTexts("The ri\u00adver ro\u200bse.").hits("The river rose.") == (1, 1)
    assert GoldTexts(None, ("ri\u00adver ro\u200bse",)).hits("The river rose.") == (2, 2)


def test_a_text_too_long_to_compare_is_left_out() -> None:
    """Time is bounded: nothing is learned from such a page."""
    assert GoldTexts("w " * 30_000).shares(["w " * 30_000]) is None


def test_f1_is_the_mean_over_pages_or_that_of_all_segments() -> None:
    """Words count as a multiset, in lower case; a page of many segments counts more."""
    words = [GoldTexts("The river rose."), GoldTexts("A boat")]
    assert f1(["the river, the", "a boat"], words) == pytest.approx((2 * 2 / 6 + 1) / 2)
    parts = [GoldTexts(None, ("river", "boat"), ("Menu",)), GoldTexts(None, ("end",))]
    assert f1(["a river, Menu", "the end"], parts) == pytest.approx(2 * 2 / (2 + 1 + 3))


def test_a_source_has_one_kind_of_truth(tmp_path: Path) -> None:
    """In a source with main texts, an empty one is none, whatever segments are beside it; F1 is never of a mixture."""
    rows: dict[str, list[dict[str, object]]] = {
        "texts": [{"articleBody": "a text"}, {"articleBody": "", "with": ["a"]}, {"with": ["b"]}, {}],
        "parts": [{"with": ["a"], "articleBody": None}, {"articleBody": ""}],
    }
    for source, labels in rows.items():
        (tmp_path / source).mkdir()
        lines = [json.dumps({"id": f"{number:064x}", **label}) for number, label in enumerate(labels)]
        (tmp_path / source / "gold.jsonl").write_text("\n".join(lines))
    pages = LabelledPages(tmp_path)
    keep_main_texts(pages)
    assert [(label.source, label.gold, label.belongs) for label in pages.labels] == [
        ("parts", None, ("a",)),
        ("texts", "a text", ()),
    ]


def test_words_that_tell_have_scores_by_their_domains() -> None:
    """Words of main texts score above 0, those of the rest below; words of few known domains have none."""
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
    unknown = [page._replace(domain="") for page in pages[7:]]
    assert word_scores([*pages[:7], *unknown]).texts == {} and word_scores([]).names == {}
