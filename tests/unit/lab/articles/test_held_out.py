"""The errors of an article classifier on held-out pages: counts known by hand, and domains as units."""

from __future__ import annotations

import pytest

from lab.articles.held_out import HeldOutPage, article_errors, kept_share

PAGES = [
    *(HeldOutPage("article", f"a{number}.example", 0.9, "article") for number in range(8)),
    HeldOutPage("article", "b.example", 0.4, "forum"),
    HeldOutPage("article", "c.example", 0.0, ""),
    HeldOutPage("forum", "d.example", 0.9, "article"),
    HeldOutPage("forum", "e.example", 0.2, "forum"),
]


def test_errors_are_counted_at_each_threshold() -> None:
    """Precision, recall, F1 and the others kept; a page without a text is an article lost at every threshold."""
    errors = article_errors(PAGES, "article", (0.3, 0.5), 0.5)
    lower, higher = errors.thresholds
    assert lower.recall.value == pytest.approx(0.9) and higher.recall.value == pytest.approx(0.8)
    assert higher.precision.value == pytest.approx(8 / 9, abs=1e-5)
    assert higher.f1.value == pytest.approx(16 / 19, abs=1e-5)
    assert higher.others_kept.value == 0.5
    assert errors.confusion == {"article": {"": 1, "article": 8, "forum": 1}, "forum": {"article": 1, "forum": 1}}
    assert (errors.kept["article"].count, errors.kept["forum"].total) == (8, 2)
    for number in (higher.f1, higher.precision, higher.recall, higher.others_kept):
        assert number.value is not None and number.low is not None and number.high is not None
        assert 0 <= number.low <= number.value <= number.high <= 1


def test_a_threshold_that_keeps_nothing_has_no_precision() -> None:
    """Nothing kept: recall and F1 are 0, precision is not defined."""
    (at,) = article_errors(PAGES, "article", (0.95,), 0.5).thresholds
    assert (at.recall.value, at.f1.value, at.precision.value) == (0, 0, None)


def test_more_pages_of_the_same_domains_are_no_more_evidence() -> None:
    """Each page ten times on its domain leaves every interval as it is; the same errors on many domains narrow it."""
    again = [page for page in PAGES for _ in range(10)]
    spread = [page._replace(domain=f"{number}.{page.domain}") for number, page in enumerate(again)]
    (once,), (tenfold,), (wide,) = (
        article_errors(pages, "article", (0.5,), 0.5).thresholds for pages in (PAGES, again, spread)
    )
    assert (tenfold.recall, tenfold.f1) == (once.recall, once.f1)
    widths = [at.recall.high - at.recall.low for at in (once, wide) if at.recall.high and at.recall.low]
    assert widths[1] < widths[0] / 2
    few, many = kept_share(again, 0.5), kept_share(spread, 0.5)
    assert few.low is not None and many.low is not None and few.low < many.low
