"""The functions of the pipes give the stages' results, with stable field names."""

from __future__ import annotations

from typing import Any

import pytest

from scoring.errors import PooledDetectors
from scoring.estimate.error_counts import ErrorCounts
from scoring.sites.deciles import DecileTest, load_deciles
from scoring.sites.sprt import SiteTest, SprtParams
from scoring.stages.pipes import FlagLine, SiteVerdictLine, estimate_sites, tally_scores
from stream.schema.vocabulary import SiteClass


def test_tally_gives_a_line_per_site_with_evidence() -> None:
    """Sites come in the order of their first line, abstentions are skipped, and the evidence has the numbers."""
    flags = [FlagLine(site=site, flag=flag) for flag in (None, *[True] * 6) for site in ("b", "a")]
    first, second = tally_scores([*flags, FlagLine(site="c", flag=False)], SiteTest(SprtParams()), "d/1")[1:]
    assert (first.site, first.verdict, first.pages_used, first.pages, first.mixed) == ("a", "llm", 6, 7, False)
    assert "6 of the first 6 of 6" in first.evidence and "6.89" in first.evidence
    assert (second.site, second.verdict) == ("c", "unclassifiable")
    assert "at least 5 are needed" in second.evidence


def test_tally_gives_each_method_what_it_reads() -> None:
    """A flag without a score counts for sprt only, a score without a flag for deciles only.

    Both report mixed sites.
    """
    scores = [0.85, 0.99, 0.86, 1.0] * 4
    lines = [FlagLine(site="a", flag=score < 0.9, score=score) for score in scores]
    lines += [FlagLine(site="b", flag=True)] * 16 + [FlagLine(site="c", flag=None, score=0.8)] * 16
    by_flags = tally_scores(lines, SiteTest(SprtParams()), "d/1")
    by_scores = tally_scores(lines, DecileTest(load_deciles("binoculars")), "d/1")
    assert [line.mixed for line in by_flags] == [line.mixed for line in by_scores] == [True, False, False]
    assert [line.verdict for line in by_flags] == ["undecided", "llm", "unclassifiable"]
    assert [line.verdict for line in by_scores] == ["human", "unclassifiable", "llm"]


def test_estimate_counts_every_kind_of_site() -> None:
    """Denominators add up, the last line of a site counts, and error counts correct the rate."""
    lines = [SiteVerdictLine(site=str(i), verdict=v) for i, v in enumerate([*SiteClass, SiteClass.HUMAN])]
    found = estimate_sites([SiteVerdictLine(site="0", verdict=SiteClass.HUMAN), *lines])
    assert (found.llm, found.human, found.undecided, found.unclassifiable) == (1, 2, 1, 1)
    assert (found.classifiable, found.sites, found.judged_share, found.judged_method) == (4, 5, 0.25, "uncorrected")
    corrected = estimate_sites(lines, ErrorCounts(50, 50, 50, 45))
    assert corrected.judged_method == "corrected" and corrected.judged_share is not None
    assert estimate_sites([]).judged_share is None
    unknown = estimate_sites([SiteVerdictLine(verdict=SiteClass.UNCLASSIFIABLE)] * 3)
    assert (unknown.judged_share, unknown.sites, unknown.classifiable) == (None, 3, 0)


@pytest.mark.parametrize(
    ("what", "one", "other"),
    [
        ("detector", {"detector": "x/1"}, {"detector": "y/1"}),
        ("ruleset", {"ruleset": "r", "digest": "d1"}, {"ruleset": "r", "digest": "d2"}),
        ("site method", {"method": "sprt", "method_digest": "d1"}, {"method": "sprt", "method_digest": "d2"}),
        ("run", {"run": "live"}, {"run": "again"}),
    ],
)
def test_estimate_pools_nothing(what: str, one: dict[str, Any], other: dict[str, Any]) -> None:
    """Lines of two identities, or of one and none, are refused with both names, in each order."""
    for first, second in ((one, other), (other, one), (one, {}), ({}, one)):
        for site in ("a", "b"):
            lines = [
                SiteVerdictLine(site="a", verdict=SiteClass.LLM, **first),
                SiteVerdictLine(site=site, verdict=SiteClass.HUMAN, **second),
            ]
            with pytest.raises(PooledDetectors, match=f"two {what}s") as caught:
                estimate_sites(lines)
            assert all(name in str(caught.value) for name in [*first.values(), *second.values()])
            assert bool(first and second) != (f"a {what} that is not named" in str(caught.value))
        assert estimate_sites([SiteVerdictLine(site="a", verdict=SiteClass.LLM, **first)] * 2).sites == 1


def test_a_site_without_a_page_counts_with_any_ruleset() -> None:
    """A row without a ruleset is unclassifiable, and other rows are accepted."""
    rows = [
        SiteVerdictLine(site="a", verdict=SiteClass.UNCLASSIFIABLE, ruleset=""),
        SiteVerdictLine(site="b", verdict=SiteClass.LLM, ruleset="r"),
    ]
    assert estimate_sites(rows).sites == estimate_sites(rows[::-1]).sites == 2


def test_sites_of_one_operator_or_query_are_not_as_many_draws() -> None:
    """A hundred subdomains of ten operators, or sites of ten queries, have a wider interval than single sites."""

    def width(name: str, queries: int) -> float:
        lines = [
            SiteVerdictLine(
                site=name.format(n, n // 10),
                verdict=SiteClass.UNDECIDED,
                scored=4,
                flagged=4 * (n // 10 % 3 == 0),
                queries=[f"q{n // 10}"] * queries,
            )
            for n in range(100)
        ]
        found = estimate_sites(lines)
        assert found.low is not None and found.high is not None
        return found.high - found.low

    alone = width("s{}.example", 0)
    assert width("s{}.operator{}.example", 0) > 1.5 * alone
    assert width("s{}.example", 1) > 1.5 * alone
