"""TALLY: one row per site, from hits, verdicts and scores."""

from __future__ import annotations

import math

import pytest

from scoring.sites.gaussian import GaussianParams
from tests.support.tally_desk import DETECTOR, SPRT, Desk, hit, page, score


def test_a_hit_alone_makes_a_row() -> None:
    """A site that was only found has its row: unclassifiable, no pages, its sources, queries and best rank."""
    row = Desk().feed(hit(1, 7, "b"), hit(2, 3, "a", "q2"), hit(2, 1, "c"), hit(3, 0)).row
    assert (row.verdict, row.pages, row.hits, row.best_rank) == ("unclassifiable", 0, 3, 3)
    assert (row.sources, row.queries) == (["a", "b", "file"], ["q1", "q2"])


def test_flags_in_page_order_decide() -> None:
    """Four flagged articles make the site llm; the row counts pages, articles, scores and dropped pages by rule."""
    desk = Desk(sprt=SPRT).feed(hit(1), page(9, article=False), page(8, article=False, failed="lang"))
    desk.feed(*(page(i) for i in range(6)), *(score(f"t{i}", i < 4) for i in range(6)))
    row = desk.row
    assert (row.verdict, row.pages_used, row.pages, row.articles, row.scored, row.flagged) == ("llm", 4, 8, 6, 6, 4)
    assert row.dropped_by == {"lang": 1, "short_text": 1}
    assert (row.detector, row.ruleset, row.digest) == (DETECTOR, "default", "d1")


def test_a_row_is_emitted_only_when_it_differs() -> None:
    """Records that change nothing emit nothing, whatever the clock says."""
    desk = Desk().feed(hit(1), page(1), score("t1", True))
    count = len(desk.outputs)
    desk.feed(hit(1), page(1), score("t1", True))
    assert len(desk.outputs) == count == 3
    assert [row.updated_at for row in desk.rows] == [1000, 1001, 1002]


def test_a_score_without_its_article_waits() -> None:
    """A score counts once a verdict makes its page an article, and only then."""
    desk = Desk().feed(hit(1), score("t1", True))
    assert (desk.row.scored, desk.row.pages) == (0, 0)
    assert desk.feed(page(1)).row.scored == 1
    assert Desk().feed(score("t1", True), page(1, article=False)).row.scored == 0


def test_the_same_text_on_two_pages_counts_once() -> None:
    """Four pages of one text are four articles and one piece of evidence."""
    desk = Desk(sprt=SPRT).feed(*(page(i, text="same") for i in range(4)), score("same", True))
    assert (desk.row.articles, desk.row.scored, desk.row.pages_used) == (4, 4, 1)
    assert desk.row.verdict == "unclassifiable"


def test_abstentions_are_skipped() -> None:
    """An abstained score is counted as abstained and is no evidence."""
    row = Desk(sprt=SPRT).feed(*(page(i) for i in range(5)), *(score(f"t{i}", None) for i in range(5))).row
    assert (row.abstained, row.scored, row.flagged, row.pages_used) == (5, 0, 0, 0)
    assert row.verdict == "unclassifiable"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_is_absent(number: float) -> None:
    """A record with NaN or infinity keeps its flag; for a method that reads scores it is not there."""
    records = [*(page(i) for i in range(8)), *(score(f"t{i}", True, number=number) for i in range(8))]
    assert Desk(sprt=SPRT).feed(*records).row.pages_used == 4
    row = Desk(method="gaussian", gaussian=GaussianParams()).feed(*records).row
    assert (row.pages_used, row.llr, row.verdict) == (0, 0.0, "unclassifiable")
