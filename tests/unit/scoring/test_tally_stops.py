"""When a site verdict stands, and when crawling the site stops: closing, mixed sites, the word to CRAWL."""

from __future__ import annotations

import msgspec
import pytest

from scoring.settings import TallySettings
from tests.support.tally_desk import DAY_MS, SITE, SPRT, Desk, page, score, site_of


def test_later_pages_correct_a_site_until_it_closes() -> None:
    """Five clear pages, then flagged ones: within the time the row is corrected to llm, after it the row stands."""
    flags = [False] * 5 + [True] * 10
    near, far = [*range(1, 16)], [1, 2, 3, 4, 5, *range(60_006, 60_016)]
    corrected = Desk(sprt=SPRT, close_after_s=60).feed(*site_of(flags, near))
    assert (corrected.row.verdict, corrected.row.pages_used, corrected.row.decided_at) == ("llm", 12, 5)
    frozen = Desk(sprt=SPRT, close_after_s=60).feed(*site_of(flags, far))
    assert (frozen.row.verdict, frozen.row.pages_used, frozen.row.decided_at) == ("human", 5, 5)
    assert (frozen.row.scored, frozen.row.flagged) == (15, 10)
    for desk in (corrected, frozen):
        assert [decision.reason for decision in desk.decisions] == ["decided_human"]


def test_a_mixed_site_is_crawled_for_longer() -> None:
    """Two clear groups of scores: marked, and no word to stop before mixed_articles, by default twice the number."""
    desk = Desk(sprt=SPRT, enough_articles=10, mixed_articles=12)
    numbers = [0.97, 0.85, 0.98, 0.86, 0.99, 0.84, 1.0, 0.87] * 2
    desk.feed(*(page(i) for i in range(16)))
    for number, value in enumerate(numbers[:11]):
        desk.feed(score(f"t{number}", value < 0.9, number=value))
    assert (desk.row.mixed, desk.row.verdict, desk.decisions) == (True, "undecided", [])
    desk.feed(score("t11", True, number=numbers[11]))
    assert [decision.reason for decision in desk.decisions] == ["enough_articles"]
    assert TallySettings(enough_articles=7).enough_if_mixed == 14


def test_a_site_that_is_no_longer_mixed_stops() -> None:
    """The word to stop waits only while the site is mixed."""
    desk = Desk(sprt=msgspec.structs.replace(SPRT, min_pages=8), mixed_articles=40)
    numbers = [0.84, 0.85, 0.86, 0.87, 0.97, 0.98, 0.99, 1.0]
    desk.feed(*(page(i) for i in range(40)), *(score(f"t{i}", x < 0.9, number=x) for i, x in enumerate(numbers)))
    assert (desk.row.mixed, desk.decisions) == (True, [])
    desk.feed(*(score(f"t{i}", True, number=0.86) for i in range(8, 40)))
    assert (desk.row.mixed, desk.row.verdict) == (False, "llm")
    assert [decision.reason for decision in desk.decisions] == ["decided_llm"]


@pytest.mark.parametrize("method", ["sprt", "gaussian", "deciles"])
def test_a_mixed_site_stops_once_it_has_closed(method: str) -> None:
    """Decided and mixed on the first day, and 300 pages on the third that are no evidence any more: crawling stops."""
    name = "binoculars/falcon-7b+falcon-7b-instruct@0a1b2c3d/bfloat16/512/accuracy"
    desk = Desk(name, method=method)
    flags = [True] * 2 + [False] * 4 + [True] * 9
    for number, flag in enumerate(flags):
        value = (0.84 if flag else 1.0) + 0.001 * number
        desk.feed(page(number, visit=1 + number), score(f"t{number}", flag, name, value))
    assert (desk.row.mixed, desk.row.verdict, desk.decisions) == (True, "llm", [])
    for number in range(100, 400):
        desk.feed(page(number, visit=2 * DAY_MS + number), score(f"t{number}", True, name, 0.85))
    assert [decision.reason for decision in desk.decisions] == ["decided_llm"]


def test_one_decision_per_site() -> None:
    """A decided site is told to stop once, with the reason; later flags tell nothing more."""
    desk = Desk(sprt=SPRT).feed(*(page(i) for i in range(8)), *(score(f"t{i}", True) for i in range(8)))
    assert [(d.stop, d.reason, d.site) for d in desk.decisions] == [(True, "decided_llm", SITE)]
    human = Desk(sprt=SPRT).feed(*(page(i) for i in range(8)), *(score(f"t{i}", False) for i in range(8)))
    assert [d.reason for d in human.decisions] == ["decided_human"]


def test_enough_articles_stop_an_undecided_site() -> None:
    """A site that stays between the bounds is stopped at the number of usable scores in the settings."""
    desk = Desk(sprt=SPRT, enough_articles=6).feed(*(page(i) for i in range(7)))
    desk.feed(*(score(f"t{i}", i % 3 == 0) for i in range(5)))
    assert desk.decisions == []
    desk.feed(score("t5", False), score("t6", True))
    assert [d.reason for d in desk.decisions] == ["enough_articles"]
    assert desk.row.verdict == "undecided"
