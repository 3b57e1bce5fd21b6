"""Shares of search results: one definition, whose counts are of the results."""

from __future__ import annotations

from datetime import date

import pytest

from scoring.estimate.definitions import RANKED_RESULTS, RESULTS
from scoring.estimate.rank_weights import rank_weight
from scoring.rates.cuts import Cut
from scoring.rates.results import RankedHit, Results
from scoring.rates.split_rates import RateQuery, rate_lines
from stream.schema.records import SiteState
from tests.support.site_rows import cell_rows, result

DAY = 20_000  # 2024-10-04
ROWS: list[SiteState] = [
    *(row for n in range(20) for row in cell_rows([(9, 8)], f"l{n}.com", hits=99, best_rank=1)),
    *(row for n in range(40) for row in cell_rows([(9, 0)], f"h{n}.org", hits=99, best_rank=2)),
]


def hits() -> list[RankedHit]:
    """LLM sites are once first and nine times fiftieth, the others twice second."""
    found = [result(f"l{n} {m}", f"l{n}.com", 1 if m == 0 else 50, DAY) for n in range(20) for m in range(10)]
    return found + [result(f"h{n} {m}", f"h{n}.org", 2, DAY) for n in range(40) for m in range(2)]


def query(definition: str, cut: Cut, more: list[RankedHit] | None = None) -> RateQuery:
    return RateQuery(definition=definition, cut=cut, results=Results([*hits(), *(more or [])], "", cut, {}))


def test_a_share_of_results_is_of_the_hits_and_never_of_sums() -> None:
    """Each result weighs by its own rank, once; without hits there is no share of results."""
    of_llm = 20 * (rank_weight(1) + 9 * rank_weight(50))
    for definition, expected in ((RANKED_RESULTS, of_llm / (of_llm + 80 * rank_weight(2))), (RESULTS, 200 / 280)):
        (line,) = rate_lines(ROWS, query(definition, Cut()))
        assert line.share == pytest.approx(expected, abs=0.04)
        assert line.results == 280
        with pytest.raises(AssertionError, match="hits"):
            rate_lines(ROWS, RateQuery(definition=definition))


def test_counts_beside_a_share_of_results_are_of_its_results() -> None:
    """A site at ranks 1 and 50 counts in the ranks 11 to 60, whatever its best rank."""
    asked = query(RESULTS, Cut(ranks=(11, 60)))
    assert len(asked.chosen(ROWS)) == 20
    (line,) = rate_lines(ROWS, asked)
    assert (line.scored_sites, line.results) == (20, 180)


def test_results_without_a_day_are_left_out_by_a_cut_of_days_and_counted() -> None:
    """Only sites that no result of the cut names are left out; a row's own days do not count."""
    more = [result("a", "h0.org", 3), result("b", "new.org", 3), result("c", "low.org", 90)]
    rows = [*ROWS, *(row for site in ("new.org", "low.org") for row in cell_rows([(9, 0)], site, days=[DAY]))]
    cut = Cut(ranks=(1, 60), since=date(2024, 1, 1))
    assert query(RESULTS, cut, more).undated(rows) == 1
    assert query(RESULTS, Cut(), more).undated(rows) == 0


def test_a_cut_by_engine_is_of_results_that_the_engine_gave() -> None:
    """SearXNG names several engines of one result."""
    found = [result("a", "h0.org", 1, engine="brave,bing"), result("b", "h1.org", 1, engine="bing")]
    results = Results(found, "", Cut(engine="brave"), {})
    assert [row.site for row in results.named(ROWS)] == ["h0.org"]
