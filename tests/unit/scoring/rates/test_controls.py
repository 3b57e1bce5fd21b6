"""Controls: pages that are surely human by their dates, and the detector's errors on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scoring.estimate.fit import WIDE, KnownSites
from scoring.estimate.mixture import estimate_share
from scoring.rates.canary_counts import canary_summary
from scoring.rates.certain_sites import certain_llm_sites
from scoring.rates.controls import ControlCounts, control_cells, count_controls, count_declared
from scoring.rates.published import CONTROLS, QUARTER, published_lines
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import RateQuery, llm_probabilities, rate_lines
from scoring.statistics.shares import share
from stream.schema.control_sites import control_site
from stream.schema.records import SiteState


def row(site: str, scored: int, flagged: int, control: tuple[int, int] = (0, 0), **more: Any) -> SiteState:
    return SiteState(
        id=site,
        site=site,
        ruleset="r",
        scored=scored,
        flagged=flagged,
        control_scored=control[0],
        control_flagged=control[1],
        **more,
    )


def test_flagged_pages_are_counted_over_sites() -> None:
    """The interval is that of pages clustered by site; equal cells are as good as sites one by one."""
    cells = [(4, 1), (4, 1), (9, 0), (2, 2), (1, 0)]
    found = count_controls([row(f"s{at}.com", 20, 9, cell) for at, cell in enumerate(cells)])
    assert found is not None
    hits = np.concatenate([np.arange(n) < k for n, k in cells])
    wanted = share(hits, np.repeat(np.arange(len(cells)), [n for n, _ in cells]))
    assert (found.sites, found.pages, found.flagged) == (5, 20, 4)
    ends = wanted.share, wanted.low, wanted.high
    assert (found.share, found.low, found.high) == pytest.approx(ends)


def test_a_site_with_control_pages_alone_is_a_control_site() -> None:
    """Only such a site that is called llm is called so by error; sites too short for a verdict are left out."""
    rows = [
        row("all.com", 9, 8, (9, 8), verdict="llm"),
        row("clear.com", 9, 0, (9, 0), verdict="human"),
        row("short.com", 1, 0, (1, 0), verdict="unclassifiable"),
        row("later.com", 20, 12, (4, 0), verdict="llm"),
        row("none.com", 9, 8, verdict="llm"),
    ]
    found = count_controls(rows)
    assert found is not None
    assert (found.sites, found.control_sites, found.called_llm) == (4, 2, 1)


def test_without_such_pages_nothing_is_said() -> None:
    """Sites without control pages have no counts; declared ones are counted apart."""
    assert count_controls([row("a.com", 5, 1)]) is None
    assert ControlCounts.of({(0, 0): 3}) is None
    declared = count_declared([row("a.com", 5, 1, declared_scored=2, declared_flagged=1)])
    assert declared is not None and (declared.pages, declared.flagged, declared.control_sites) == (2, 1, 0)


def test_control_pages_are_known_human_sites_in_the_estimate() -> None:
    """Sites that are flagged in half of their pages may be of either kind, until controls show human sites to be so."""
    rows = [row(f"h{at}.com", 6, 3 + at % 2) for at in range(40)] + [row(f"l{at}.com", 6, 6) for at in range(10)]
    controls = [row(f"c{at}.com", 12, 6 + at % 2, (6, 3 + at % 2)) for at in range(20)]
    plain = [row(f"c{at}.com", 12, 6 + at % 2) for at in range(20)]
    (known,), (unknown,) = (rate_lines([*rows, *of], RateQuery()) for of in (controls, plain))
    assert unknown.share is None and known.share is not None and known.low is not None and known.high is not None
    assert known.low <= 10 / 70 <= known.high
    assert known.controls is not None and known.controls.flagged == 70 and unknown.controls is None


def test_control_pages_count_in_the_cell_of_their_site_too() -> None:
    """A site is asked for by all its scored pages, and its control pages are those of a known human site beside it."""
    rows = [row(f"c{at}.com", 9, 1 + at % 2, (4, at % 2)) for at in range(60)]
    rows += [row(f"l{at}.com", 9, 8) for at in range(30)]
    (line,) = rate_lines(rows, RateQuery())
    known = KnownSites({(4, 0): 30, (4, 1): 30}, {})
    wanted = estimate_share({(9, 1): 30, (9, 2): 30, (9, 8): 30}, WIDE, known)
    assert wanted is not None and line.share == pytest.approx(wanted.share, abs=1e-6)


def test_a_site_that_backdates_its_pages_does_not_become_human() -> None:
    """Of 60 LLM sites among 200, 30 say that all their pages are old: they stay in the share, likely, like the others.

    False controls cost certainty all the same: these sites are in a list with more false ones, not with 5%.
    """
    human = [row(f"h{at}.com", 9, at % 2) for at in range(140)]
    honest = [row(f"l{at}.com", 9, 8) for at in range(30)]
    backdated = [row(f"b{at}.com", 9, 8, (9, 8)) for at in range(30)]
    rows = [*human, *honest, *backdated]
    (line,) = rate_lines(rows, RateQuery())
    assert line.share is not None and line.share >= 0.2 and line.high is not None and line.high >= 0.3
    likely = llm_probabilities(rows)
    assert likely["b0.com"] == likely["l0.com"] > 0.5
    listed = certain_llm_sites(rows, RateSettings(), 0, 0.4).sites
    assert listed.keys() == {of.site for of in [*honest, *backdated]}


def test_a_host_and_its_archive_are_one_control_site() -> None:
    """Their pages are by the same people: two sites would count as two draws."""
    rows = [row("a.com", 9, 1, (4, 1)), row(control_site("a.com"), 8, 2, (8, 2)), row("b.com", 9, 0, (4, 1))]
    assert control_cells(rows) == {(12, 3): 1, (4, 1): 1}
    assert control_cells([row("", 9, 0, (4, 1))] * 2) == {(4, 1): 2}, "rows without names are of different sites"


def test_control_sites_of_archives_are_known_and_in_no_share() -> None:
    """They are human sites of the estimate, and among the controls that are shown; no site of the share, no canary."""
    rows = [row(f"h{at}.com", 9, at % 2) for at in range(60)] + [row(f"l{at}.com", 9, 8) for at in range(20)]
    arm = [row(control_site(f"c{at}.com"), 8, 1, (8, 1), verdict="human") for at in range(30)]
    (line,) = rate_lines([*rows, *arm], RateQuery())
    wanted = estimate_share({(9, 0): 30, (9, 1): 30, (9, 8): 20}, WIDE, KnownSites({(8, 1): 30}, {}))
    assert wanted is not None and line.share == pytest.approx(wanted.share, abs=1e-6)
    assert (line.sites, line.scored_sites, line.controls and line.controls.pages) == (80, 80, 240)
    assert {site for site in llm_probabilities([*rows, *arm]) if "invalid" in site} == set()
    assert not any(canary_summary(arm).sites.values())
    (by_source,) = rate_lines([*rows, *arm], RateQuery(by="source"))
    assert by_source.controls is None  # no group has them


def test_control_sites_of_archives_measure_the_series_by_publication() -> None:
    """Each is of the domain of its host: the interval of p0 is that of as many domains, not of one."""
    dated = [row(f"m{at}.com", 6, 4, quarters={"2024-Q1": [6, 4]}) for at in range(20)]
    arm = [row(control_site(f"c{at}.com"), 8, at % 2, (8, at % 2)) for at in range(40)]
    (line,) = published_lines([*dated, *arm], RateQuery(by=QUARTER))
    assert (line.p0_by, line.p0, line.sites) == (CONTROLS, 1 / 16, 20)
    assert line.low is not None and line.share is not None and line.share - line.low < 0.3
