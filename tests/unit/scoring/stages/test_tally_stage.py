"""TALLY: one row per site from hits, verdicts and scores; the end of corrections, and the end of crawling."""

from __future__ import annotations

import math

import msgspec
import pytest

from scoring.sites.settings import TallySettings
from scoring.stages.site_tally import MAX_SIGNALS
from stream.schema.records import Record
from tests.support.logs.tally_desk import DAY_MS, DETECTOR, FALCON, SPRT, Desk, hit, page, score, site_of


def test_a_hit_alone_makes_a_row() -> None:
    """A site without pages has a row: unclassifiable, with its sources, queries and best rank."""
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


def test_pages_that_count_by_their_segments_are_articles_and_are_counted_apart() -> None:
    """Their scores count as any, in every order; the rules that they fail as articles dropped no page.

    Fetched again, the first fetch is still the evidence. Without a score a page is no evidence.
    """
    records = [*(page(i, segments=i > 0) for i in range(4)), *(score(f"t{i}", True) for i in range(4))]
    row, again = (Desk(sprt=SPRT).feed(*some).row for some in (records, records[::-1]))
    assert (row.verdict, row.articles, row.through_segments, row.scored, row.dropped_by) == ("llm", 4, 3, 4, {})
    assert row == again
    now = Desk(sprt=SPRT).feed(*records, page(0, visit=2, article=False), page(1, visit=2)).row
    assert (now.articles, now.through_segments, now.dropped_by) == (3, 3, {"short_text": 1})
    now = Desk(sprt=SPRT).feed(*records, page(0, visit=2, segments=True), page(7, segments=True)).row
    assert (now.articles, now.through_segments, now.scored) == (5, 3, 4)


def test_scored_control_pages_are_counted_with_their_flags() -> None:
    """Of the newest fetch of each, by class, whatever the order; without a score or as no article they do not count."""
    ages = ["control", "control", "declared", "", "control"]
    pages = [page(i, age=age, article=i < 4) for i, age in enumerate(ages)]
    records = [*pages, page(9, age="control"), *(score(f"t{i}", i in (1, 2)) for i in range(5))]
    for some in (records, records[::-1]):
        row = Desk(sprt=SPRT).feed(*some).row
        assert (row.control_scored, row.control_flagged) == (2, 1)
        assert (row.declared_scored, row.declared_flagged) == (1, 1)
        assert (row.scored, row.flagged) == (4, 2)
    changed = Desk(sprt=SPRT).feed(*records, page(1, visit=2)).row
    assert (changed.control_scored, changed.control_flagged, changed.scored) == (1, 0, 4)


def dated(flags: str, day: str, first: int) -> list[Record]:
    """Articles of this day of publication from page `first` on, of which those marked x are flagged: low scores."""
    numbers = range(first, first + len(flags))
    pages: list[Record] = [page(number, published=day) for number in numbers]
    flagged = [flag == "x" for flag in flags]
    return [*pages, *(score(f"t{n}", flag, number=n / 100 - flag) for n, flag in zip(numbers, flagged, strict=True))]


def test_a_row_has_the_flags_of_dated_texts_and_the_test_of_a_turn() -> None:
    """Whatever the order: each text once, on its first day; not those without a day, a score or an article."""
    records = [*dated(".....", "2022-11-29", 0), *dated("xxxx.x", "2022-11-30", 5), *dated("x", "", 20)]
    records += [page(21, text="t0", published="2024-01-01"), page(22, published="2021-01-01")]
    records += [page(23, article=False, published="2021-01-01"), score("t23", True)]
    for some in (records, records[::-1]):
        row = Desk(sprt=SPRT).feed(*some).row
        assert (row.before_scored, row.before_flagged, row.since_scored, row.since_flagged) == (5, 0, 6, 5)
        assert row.turn_p == pytest.approx(19 / 462)  # one of the later ones is the least like a model
        assert row.quarters == {"2022-Q4": [11, 5]}


def test_a_followed_site_with_dates_on_both_sides_is_decided_with_enough_articles() -> None:
    """It is stopped at enough_articles; without dates on both sides, or if it is not followed, at its verdict."""
    both = [*dated("xx", "2021-05-01", 0), *dated("xxxxxx", "2024-05-01", 2)]
    late = dated("xxxxxxxx", "2024-05-01", 0)
    for follows, records, stopped in ((True, both, False), (True, late, True), (False, both, True)):
        desk = Desk(sprt=SPRT, enough_articles=10, follows=follows).feed(*records)
        assert (desk.row.verdict, bool(desk.decisions)) == ("llm", stopped)
    desk = Desk(sprt=SPRT, enough_articles=10, follows=True).feed(*both, *dated("xx", "2024-05-02", 8))
    assert [decision.reason for decision in desk.decisions] == ["decided_llm"]


def test_a_row_unites_the_signals_of_its_pages() -> None:
    """With the number of pages, of the newest fetch of each, articles or not, whatever the order; a bounded number."""
    pages = [page(1, signals=["ads:gam", "cms:wordpress"]), page(2, signals=["ads:gam"], article=False), page(3)]
    for records in (pages, pages[::-1]):
        assert list(Desk().feed(*records).row.signals.items()) == [("ads:gam", 2), ("cms:wordpress", 1)]
    assert Desk().feed(*pages, page(1, visit=2)).row.signals == {"ads:gam": 1}
    many = Desk().feed(page(1, signals=[f"cms:{i:03}" for i in range(300)]), page(2, signals=["cms:299"])).row.signals
    assert len(many) == MAX_SIGNALS
    assert many["cms:299"] == 2


def test_a_row_is_emitted_only_when_it_differs() -> None:
    """Records without a change emit nothing, at any time."""
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
    """An abstained score is counted as abstained and is not evidence."""
    row = Desk(sprt=SPRT).feed(*(page(i) for i in range(5)), *(score(f"t{i}", None) for i in range(5))).row
    assert (row.abstained, row.scored, row.flagged, row.pages_used) == (5, 0, 0, 0)
    assert row.verdict == "unclassifiable"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_is_absent(number: float) -> None:
    """A score of NaN or infinity keeps its flag; a method that reads scores ignores it."""
    pages = [page(i) for i in range(16)]
    assert Desk(sprt=SPRT).feed(*pages, *(score(f"t{i}", True, number=number) for i in range(8))).row.pages_used == 4
    records = [*pages, *(score(f"t{i}", True, FALCON, number) for i in range(16))]
    row = Desk(FALCON, method="deciles").feed(*records).row
    assert (row.pages_used, row.llr, row.verdict) == (0, 0.0, "unclassifiable")


def test_later_pages_correct_a_site_until_it_closes() -> None:
    """Flagged pages after five clear ones correct the row to llm until the site closes, and not afterwards."""
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
    """A site with two clear groups of scores is mixed and crawled up to mixed_articles (default: twice as many)."""
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
    """The stop decision waits only while the site is mixed."""
    desk = Desk(sprt=msgspec.structs.replace(SPRT, min_pages=8), mixed_articles=40)
    numbers = [0.84, 0.85, 0.86, 0.87, 0.97, 0.98, 0.99, 1.0]
    desk.feed(*(page(i) for i in range(40)), *(score(f"t{i}", x < 0.9, number=x) for i, x in enumerate(numbers)))
    assert (desk.row.mixed, desk.decisions) == (True, [])
    desk.feed(*(score(f"t{i}", True, number=0.86) for i in range(8, 40)))
    assert (desk.row.mixed, desk.row.verdict) == (False, "llm")
    assert [decision.reason for decision in desk.decisions] == ["decided_llm"]


@pytest.mark.parametrize("method", ["sprt", "deciles"])
def test_a_mixed_site_stops_once_it_has_closed(method: str) -> None:
    """A site decided and mixed on the first day stops on the third day, after 300 pages that are not evidence."""
    desk = Desk(FALCON, method=method)
    flags = [True] * 2 + [False] * 4 + [True] * 9
    for number, flag in enumerate(flags):
        value = (0.84 if flag else 1.0) + 0.001 * number
        desk.feed(page(number, visit=1 + number), score(f"t{number}", flag, FALCON, value))
    assert (desk.row.mixed, desk.row.verdict, desk.decisions) == (True, "llm", [])
    for number in range(100, 400):
        desk.feed(page(number, visit=2 * DAY_MS + number), score(f"t{number}", True, FALCON, 0.85))
    assert [decision.reason for decision in desk.decisions] == ["decided_llm"]


def test_enough_articles_stop_an_undecided_site() -> None:
    """A site that stays between the bounds stops at the configured number of usable scores."""
    desk = Desk(sprt=SPRT, enough_articles=6).feed(*(page(i) for i in range(7)))
    desk.feed(*(score(f"t{i}", i % 3 == 0) for i in range(5)))
    assert desk.decisions == []
    desk.feed(score("t5", False), score("t6", True))
    assert [d.reason for d in desk.decisions] == ["enough_articles"]
    assert desk.row.verdict == "undecided"
