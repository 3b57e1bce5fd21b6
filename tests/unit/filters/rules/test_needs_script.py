"""Pages that need JavaScript, and the sites that cannot be judged because of them."""

from __future__ import annotations

import pytest

from farmwatch.pipes.lines import PageLine, features_of, measure_page
from filters.rules.judgement import judge, needs_script
from filters.rules.ruleset import parse_ruleset
from filters.settings import MeasureSettings
from scoring.rates.site_rates import NEEDS_SCRIPT
from scoring.rates.split_rates import rate_lines
from tests.support.logs.tally_desk import Desk, page, score
from tests.support.site_rows import cell_rows

ASKS = "<noscript>You need to enable JavaScript to run this app.</noscript>"
SHELL = f"<html><head><script src=/app.js></script></head><body>{ASKS}<div id=root></div></body></html>"
TEXT = "<p>" + "A garden needs water in summer, and shade for the young plants at noon. " * 20 + "</p>"
RULESET = parse_ruleset('[rules.extracted]\nthreshold = "ok"\n[rules.min_tokens]\nthreshold = 50\n', "r")


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (SHELL, True),
        (SHELL.replace(ASKS, ""), False),  # it may be empty
        (f"<html><body><article>{TEXT}</article>{ASKS}<script></script></body></html>", False),
    ],
    ids=["an app", "empty", "comments alone need it"],
)
def test_a_page_needs_scripts_if_it_asks_for_them_and_has_no_text(html: str, expected: bool) -> None:
    """A page with an article, or one that asks for nothing, does not; the verdict has it."""
    features = features_of(measure_page(PageLine(url="https://a.example/", html=html), MeasureSettings()))
    assert needs_script(features) == judge(features, RULESET).needs_script == expected


def test_a_site_of_such_pages_is_not_judged_for_that_reason() -> None:
    """The row counts its newest pages; a site is one by most of its pages, and has its own bounds in the rate."""
    pages = [page(number, article=False, needs_script=number < 3) for number in range(5)]
    row = Desk().feed(*pages).row
    assert (row.needs_script, row.dropped_by) == (3, {"short_text": 5})
    assert Desk().feed(*pages, page(0, article=False, visit=2)).row.needs_script == 2
    kept = Desk().feed(*pages, page(7), score("t7", False)).row
    assert (kept.needs_script, kept.scored) == (3, 1)
    others = cell_rows([(9, 8)] * 30 + [(9, 0)] * 70, "s{}.com", pages=9, articles=9)
    hidden = cell_rows([(0, 0)] * 20, "app{}.com", pages=4, needs_script=3, dropped_by={"extracted": 4})
    few = cell_rows([(0, 0)] * 2, "old{}.com", pages=4, needs_script=2, dropped_by={"extracted": 4})
    (line,) = rate_lines([*others, *hidden, *few])
    assert line.not_judged == {NEEDS_SCRIPT: 20, "no article": 2}
    low, high = line.not_judged_bounds[NEEDS_SCRIPT]
    assert line.low is not None and line.high is not None
    assert (low, high) == pytest.approx((line.low * 100 / 120, (line.high * 100 + 20) / 120))
