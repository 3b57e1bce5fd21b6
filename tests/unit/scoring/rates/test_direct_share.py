"""The published share: its sites, the cases without a number, and the effect of canaries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from scoring.estimate.remarks import RemarkKind
from scoring.rates.split_rates import RateLine, RateQuery, llm_probabilities, rate_lines
from scoring.stages.pipes import SiteVerdictLine, estimate_sites
from stream.schema.records import SiteState
from stream.schema.vocabulary import SiteClass

HUMAN_SITES = [(n, 0) for n in (1, 2, 3, 5, 8, 8, 11, 11, 12, 15)] * 2
LLM_SITES = [(1, 1), (2, 2), (3, 2), (6, 5), (9, 8), (11, 9), (15, 13), (15, 14)]


def row(site: str, scored: int, flagged: int, **fields: Any) -> SiteState:
    """A row of one ruleset and detector."""
    known: dict[str, Any] = {
        "ruleset": "default",
        "digest": "d1",
        "detector": "x/1",
        "pages": scored,
        "sources": ["file"],
    }
    return SiteState(id=site, site=site, scored=scored, flagged=flagged, **(known | fields))


def rows(cells: Iterable[tuple[int, int]], **fields: Any) -> list[SiteState]:
    """One site per cell."""
    return [row(f"s{number}.example", *cell, **fields) for number, cell in enumerate(cells)]


def canary_rows(cells: Iterable[tuple[int, int]], truth: str) -> list[SiteState]:
    """Complete canary sites, each with its own content."""
    return [
        row(f"c{at}.{at:016x}.{n}.1.{truth}.canary.invalid", n, k, pages=n, articles=n, updated_at=10**12)
        for at, (n, k) in enumerate(cells)
    ]


def share_of(found: Iterable[SiteState]) -> RateLine:
    """The line of all sites."""
    (line,) = rate_lines(list(found), RateQuery(now_ms=10**12))
    return line


def test_all_sites_with_a_scored_article_count_whatever_their_verdict() -> None:
    """8 of 28 sites are LLM, three of them too short for a verdict: the share is near 28.6%, the judged share 0."""
    line = share_of([*rows([*HUMAN_SITES, *LLM_SITES]), row("empty.example", 0, 0)])
    assert (line.method, line.scored_sites, line.sites, line.judged_share) == ("direct", 28, 29, None)
    assert line.share is not None and line.low is not None and line.high is not None
    assert line.low < 8 / 28 < line.high and abs(line.share - 8 / 28) < 0.06
    assert line.remarks[0].kind == RemarkKind.SHARE and line.remarks[0].facts["sites"] == 28


@pytest.mark.parametrize(
    ("cells", "method", "kind"),
    [
        ([], "no scored articles", RemarkKind.NO_SCORES),
        ([(9, 9)] * 20, "kinds not told apart", RemarkKind.KINDS_NOT_TOLD_APART),
        ([(9, 8), (9, 0)], "too few sites", RemarkKind.TOO_FEW),
        ([(1, 1)] * 3 + [(1, 0)] * 3, "too wide", RemarkKind.TOO_WIDE),
    ],
)
def test_no_number_is_named_without_ground(cells: list[tuple[int, int]], method: str, kind: RemarkKind) -> None:
    """With fewer than five sites, or an interval of over 60 points, the share is null and the headline says why."""
    line = share_of([*rows(cells), row("empty.example", 0, 0)])
    assert (line.share, line.method) == (None, method)
    assert line.remarks[0].kind == kind
    assert (line.low is None) == (not cells)


def test_canaries_are_sites_of_known_truth_and_not_counted() -> None:
    """Canaries show how often sites of each kind are flagged, which moves the share.

    They do not count as sites, also in pipes.
    """
    found = rows([(1, 0)] * 40 + [(2, 0)] * 20 + [(1, 1)] * 15 + [(2, 2)] * 6)
    canaries = [*canary_rows([(12, 0), (12, 1)] * 15, "human"), *canary_rows([(12, 9), (12, 10)] * 15, "llm")]
    alone, helped = share_of(found), share_of([*found, *canaries])
    assert helped.scored_sites == alone.scored_sites == 81
    assert helped.share != alone.share
    piped = estimate_sites(
        SiteVerdictLine(site=each.site, verdict=SiteClass.UNDECIDED, scored=each.scored, flagged=each.flagged)
        for each in [*found, *canaries]
    )
    assert (piped.share, piped.low, piped.high) == (helped.share, helped.low, helped.high)


def test_a_group_of_all_sites_has_the_share_of_all() -> None:
    """One source with all sites has the share of all; a source with some of them has its own interval."""
    found = rows([*HUMAN_SITES, *LLM_SITES])
    whole = share_of(found)
    (same,) = rate_lines(found, RateQuery(by="source", now_ms=10**12))
    assert (same.group, same.share, same.low, same.high) == ("file", whole.share, whole.low, whole.high)
    b, file = rate_lines([*found[:20], *rows(LLM_SITES, sources=["b"])], RateQuery(by="source"))
    assert (b.group, file.group) == ("b", "file")
    assert b.low is not None and file.high is not None and file.high < b.low


def test_each_site_with_a_scored_article_has_a_probability() -> None:
    """Each scored site has a probability, even with one article; their mean is the share. Canaries have none."""
    found = rows([*HUMAN_SITES, *LLM_SITES])
    likely = llm_probabilities([*found, row("empty.example", 0, 0), *canary_rows([(12, 0)], "human")], now_ms=10**12)
    assert set(likely) == {each.site for each in found}
    by_cell = {(each.scored, each.flagged): likely[each.site] for each in found}
    assert by_cell[1, 0] < 0.3 < by_cell[1, 1] < by_cell[15, 14] and by_cell[15, 0] < 0.01
    assert sum(likely.values()) / len(likely) == pytest.approx(share_of(found).share, abs=0.03)


def test_lines_without_scores_have_no_share() -> None:
    """Verdicts alone, as from other tools, give only the judged share."""
    found = estimate_sites([SiteVerdictLine(verdict=SiteClass.LLM), SiteVerdictLine(verdict=SiteClass.HUMAN)])
    assert (found.share, found.method, found.judged_share) == (None, "no scored articles", 0.5)
