"""Rates of site rows: canaries left out, nothing pooled, windows by the days of the hits."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.errors import PooledDetectors
from scoring.rates.groups import day_of, group_key, grouped, last_days, query_groups
from scoring.rates.site_rates import rate_of
from stream.schema.records import SiteState


def row(site: str, verdict: str = "llm", **more: Any) -> SiteState:
    """A site's row of one detector and ruleset."""
    return SiteState(id=site, site=site, verdict=verdict, **{"detector": "x/1", "ruleset": "r", "digest": "d1", **more})


def test_bands_of_ranks_stand_in_the_order_of_ranks() -> None:
    """Bands of ranks are sorted by rank (1-3, 4-10, 11-20), other groups by name."""
    rows = [row(f"s{rank}", "human", best_rank=rank) for rank in (60, 50, 21, 20, 11, 10, 4, 3, 1, 0)]
    found = grouped(rows, group_key("rank", {}, rows))
    assert {band: len(sites) for band, sites in found.items()} == {
        "1-3": 2, "4-10": 2, "11-20": 2, "21-50": 2, "51+": 1, "unknown": 1,
    }  # fmt: skip
    assert list(found) == ["1-3", "4-10", "11-20", "21-50", "51+", "unknown"]


@pytest.mark.parametrize(
    ("other", "names"),
    [
        ({"detector": "y/2"}, "detectors cannot be counted together: x/1 and y/2"),
        ({"digest": "d2"}, "rulesets cannot be counted together: r d1 and r d2"),
        ({"method": "deciles"}, "site methods cannot be counted together: deciles and sprt"),
        ({"method_digest": "0a"}, "site methods cannot be counted together: sprt and sprt 0a"),
        ({"run": "replay-7"}, "runs cannot be counted together: live and replay-7"),
    ],
)
def test_nothing_is_pooled(other: dict[str, str], names: str) -> None:
    """Sites of two detectors, rulesets, site methods or runs are refused with both names, in any order."""
    rows = [row("a"), row("b", **other)]
    with pytest.raises(PooledDetectors, match=names):
        rate_of(rows)


@given(st.lists(st.integers(-5, 10**7), max_size=20), st.sampled_from(["day", "week", "month"]))
def test_every_day_has_its_window(days: list[int], window: str) -> None:
    """A site is in at most as many windows as it has days, each once, in order of time."""
    known = [day for day in days if day >= 0]
    names = list(last_days(window)(row("a", days=days)))
    assert names == sorted(set(names))
    assert len(names) <= len(known)
    assert bool(names) == any(day <= (date.max - date(1970, 1, 1)).days for day in known)


def test_windows_are_those_of_the_calendar() -> None:
    """ISO weeks belong to the year of their Thursday; days beyond the calendar count as its last day."""
    new_year = (date(2027, 1, 1) - date(1970, 1, 1)).days
    assert list(last_days("week")(row("a", days=[new_year]))) == ["2026-W53"]
    assert list(last_days("month")(row("a", days=[new_year]))) == ["2027-01"]
    assert day_of(10**9) == date.max


def test_patterns_match_whole_ids_and_case() -> None:
    """`*`, `?` and sets work as in file name patterns, on whole ids and with case; the first matching group applies."""
    group_of = query_groups({"a": ["x-*"], "b": ["x-1", "[pq]?"]})
    assert [group_of(query) for query in ("x-1", "p7", "p77", "X-1", "")] == ["a", "b", "other", "other", "other"]
