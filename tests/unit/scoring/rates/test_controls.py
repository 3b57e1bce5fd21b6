"""Controls: pages that are surely human by their dates, and the detector's errors on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scoring.rates.controls import ControlCounts, count_controls, count_declared
from scoring.rates.split_rates import RateQuery, rate_lines
from scoring.statistics.shares import share
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
    """Sites that are flagged in a third of their pages read as LLM sites, until controls show human sites to be so.

    Without the controls the same rows have a larger share, and a remark that no human site is known.
    """
    rows = [row(f"h{at}.com", 9, 3 + at % 2) for at in range(40)] + [row(f"l{at}.com", 9, 9) for at in range(10)]
    with_controls = rows + [row(f"c{at}.com", 9, 3 + at % 2, (8, 3)) for at in range(20)]
    plain = rows + [row(f"c{at}.com", 9, 3 + at % 2) for at in range(20)]
    (known,), (unknown,) = (rate_lines(of, RateQuery()) for of in (with_controls, plain))
    assert known.low is not None and known.high is not None and unknown.high is not None and unknown.low is not None
    assert known.low <= 10 / 70 <= known.high
    assert known.high - known.low < unknown.high - unknown.low
    assert known.controls is not None and known.controls.flagged == 60 and unknown.controls is None
