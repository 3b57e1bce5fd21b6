"""Which verdict of a site counts: in a window the one that held, now the one whose term has not run out long ago."""

from __future__ import annotations

import tracemalloc

import msgspec
import pytest

from scoring.rates.split_rates import RateQuery, rate_lines
from scoring.rates.terms import GRACE, TOO_OLD, counted_at, is_too_old
from stream.schema.records import SiteState
from tests.support.logs.term_rows import DAY_MS, FIRST_DAY, TERM, at_day
from tests.support.logs.term_rows import term_row as row


def web(turned: int = 4) -> tuple[list[SiteState], list[SiteState]]:
    """Ten sites named in their first week and after 13 weeks; some are llm in their second term. Also earlier rows."""
    days = (1, 13 * 7 + 1)
    newest = [row(f"s{n}.test", "llm" if n < turned else "human", 1, days) for n in range(10)]
    return newest, [row(f"s{n}.test", "human") for n in range(10)]


def test_old_weeks_keep_their_verdicts() -> None:
    """A site that has turned is human in the weeks of its first term and llm in those of its second."""
    newest, earlier = web()
    weeks = rate_lines(newest, RateQuery(by="week", now_ms=at_day(95), earlier=earlier))
    assert [(line.llm, line.human, line.sites) for line in weeks] == [(0, 10, 10), (4, 6, 10)]
    assert weeks[0].group < weeks[1].group
    without = rate_lines(newest, RateQuery(by="week", now_ms=at_day(95)))
    assert [line.llm for line in without] == [4, 4]


def test_a_window_takes_the_verdict_of_its_last_day() -> None:
    """A site whose term changes within a month counts once, by the term of the last day on which it was named."""
    newest = [row("a.test", "llm", 1, (TERM - 1, TERM)), row("b.test", "llm", 1, (TERM - 1,))]
    earlier = [row("a.test", "human"), row("b.test", "human")]
    (month,) = rate_lines(newest, RateQuery(by="month", now_ms=at_day(95), earlier=earlier))
    assert (month.llm, month.human) == (1, 1)


def test_days_before_the_first_page_have_the_first_verdict() -> None:
    """A search names a site before the crawl has seen it."""
    newest = [row("a.test", "llm", 1, (-3,))]
    (week,) = rate_lines(newest, RateQuery(by="week", now_ms=at_day(95), earlier=[row("a.test", "human")]))
    assert (week.llm, week.human) == (0, 1)


def test_terms_of_another_ruleset_are_not_pooled() -> None:
    """An earlier term that another ruleset judged is passed over."""
    newest = [row("a.test", "llm", 1, (1,))]
    (week,) = rate_lines(newest, RateQuery(by="week", now_ms=at_day(95), earlier=[row("a.test", "human", digest="d0")]))
    assert (week.llm, week.human, week.digest) == (1, 0, "d1")


@pytest.mark.parametrize("late", [0, 1])
def test_a_verdict_counts_until_the_grace_after_its_term(late: int) -> None:
    """To the millisecond; a verdict that is too old leaves its site among the not judged, and is counted."""
    rows = [row(f"s{n}.test", "llm", 0, (1,)) for n in range(10)]
    end = rows[0].term_end + round(GRACE * TERM * DAY_MS) + late
    (line,) = rate_lines(rows, RateQuery(now_ms=end))
    assert (line.scored_sites, line.llm, line.sites, line.expired) == ((10, 10, 10, 0), (0, 0, 10, 10))[late]
    assert line.not_judged == ({TOO_OLD: 10} if late else {})
    assert line.without_pages == 0


@pytest.mark.parametrize("late", [0, 1])
def test_a_new_term_without_a_verdict_counts_when_the_grace_is_over(late: int) -> None:
    """Until then the verdict of the term before counts, in the rate of now and in windows."""
    former = [row(f"s{n}.test", "llm", 0) for n in range(10)]
    day = former[0].term_end // DAY_MS - FIRST_DAY + 1
    few = {"articles": 1, "scored": 1, "flagged": 0, "pages": 1}
    rows = [row(one.site, "unclassifiable", 1, (day,), former=one, **few) for one in former]
    end = former[0].term_end + round(GRACE * TERM * DAY_MS) + late
    (line,) = rate_lines(rows, RateQuery(now_ms=end))
    assert (line.llm, line.unclassifiable, line.scored_sites, line.expired) == ((10, 0, 10, 0), (0, 10, 10, 0))[late]
    (source,) = rate_lines(rows, RateQuery(by="source", now_ms=end))
    assert (source.group, source.llm) == ("file", line.llm)
    closed = [msgspec.structs.replace(one, former=None, days=[]) for one in rows]
    newest = [row(one.site, "human", 2, (day,)) for one in former]
    (week,) = rate_lines(newest, RateQuery(by="week", now_ms=end, earlier=[*former, *closed]))
    assert (week.llm, week.human) == (10, 0)


def test_rows_that_count_otherwise_are_no_copies() -> None:
    """A row whose verdict is too old shares its lists with the row that was read."""
    old = row("a.test", "llm", queries=["q" * 1000])
    tracemalloc.start()
    counted = [counted_at(old, 2**50) for _ in range(1000)]
    held = tracemalloc.get_traced_memory()[0] / len(counted)
    tracemalloc.stop()
    assert held < 600
    assert (counted[0].site, counted[0].pages, counted[0].articles, counted[0].verdict) == (
        "a.test",
        10,
        0,
        "unclassifiable",
    )


def test_a_site_that_is_not_crawled_never_expires() -> None:
    """Archives and rows of before terms have no end."""
    old = row("a.test", "llm", term_start=0, term_end=0)
    assert counted_at(old, 2**50) is old
    canary = row("x.llm.canary.invalid", "llm")
    assert not is_too_old(counted_at(canary, 2**50))
