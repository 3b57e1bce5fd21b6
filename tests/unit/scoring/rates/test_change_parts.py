"""`change_parts`: the parts add up to the change, and each cause shows in its own part."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.errors import BadParameters
from scoring.rates.change_parts import change_parts
from scoring.rates.split_rates import RateLine, rate_lines
from stream.schema.records import RatePoint, SiteState

DAY = 20_000
DAY_MS = 86_400_000
SINCE, NOW = DAY * DAY_MS, (DAY + 10) * DAY_MS
VERSIONS = {"digest": "d1", "detector": "lite", "run": "live", "site_method": "sprt", "site_method_digest": "m"}
(EMPTY,) = rate_lines([])


def point(share: float, at: int = SINCE, **more: Any) -> RatePoint:
    """A point of all sites."""
    fields = {"share": share, "share_method": "direct", "scored_sites": 9, **VERSIONS, **more}
    return RatePoint(id=str(at), site="", at=at, **fields)


def line(share: float | None, **more: Any) -> RateLine:
    """The share now."""
    return msgspec.structs.replace(EMPTY, share=share, **{"method": "direct", **VERSIONS, **more})


def row(site: str, day: int, *sources: str, until: int = 0) -> SiteState:
    """A site with the day of its first hit; its verdict expires on the day `until`."""
    start, end = ((until - 50) * DAY_MS, (until - 10) * DAY_MS) if until else (0, 0)
    return SiteState(id=site, site=site, scored=5, days=[day], sources=list(sources), term_start=start, term_end=end)


PARTS = ("new_sites", "sources", "left_sites", "known_sites", "instrument")
SHARES = st.floats(0, 1)


@given(
    st.lists(st.tuples(SHARES, st.sampled_from(["d1", "d2"])), min_size=1, max_size=5),
    SHARES,
    st.lists(
        st.tuples(
            SHARES, st.sampled_from([(DAY - 1, 0), (DAY - 1, DAY + 2), (DAY, 0), (DAY + 3, 0)]), st.sampled_from("ab")
        ),
        max_size=9,
    ),
)
def test_the_parts_add_up(
    kept: list[tuple[float, str]], now: float, sites: list[tuple[float, tuple[int, int], str]]
) -> None:
    """The parts add up for any points, sites, terms and sources."""
    points = [point(share, SINCE + n, digest=digest) for n, (share, digest) in enumerate(kept)]
    rows = [row(str(n), day, source, until=until) for n, (_, (day, until), source) in enumerate(sites)]
    found = change_parts(points, line(now), rows, {str(n): likely for n, (likely, *_) in enumerate(sites)}, NOW)
    assert sum(getattr(found, part) for part in PARTS) == pytest.approx(found.after - found.before, abs=1e-7)
    assert found.new + found.known + found.left == len(sites)


@pytest.mark.parametrize(
    ("sites", "then", "now", "wanted"),
    [
        (
            [(0, -9, "s", 0), (1, -1, "s", 0), (1, 0, "s", 0), (1, 5, "s", 0)],
            *(0.5, 0.75, {"new_sites": 0.25, "new": 2, "known": 2}),
        ),
        (
            [(0, -9, "low", 0), (1, -1, "high", 0), (1, 0, "high", 0), (1, 0, "new", 0)],
            *(0.5, 0.75, {"sources": 0.25, "new": 2, "known": 2}),
        ),
        ([(1, -1, "s", 0), (0, -1, "s", 0)], 0.25, 0.5, {"known_sites": 0.25, "known": 2}),
        ([(0, -9, "s", 0), (1, -9, "s", 2), (1, -99, "s", -1)], 0.5, 0, {"left_sites": -0.5, "known": 1, "left": 1}),
        ([(1, 0, "s", 0), (0, 1, "s", 0)], 0.25, 0.5, {"new_sites": 0.25, "new": 2}),
    ],
    ids=["new sites differ", "more of a source", "known sites say else", "verdicts too old", "young log"],
)
def test_a_cause_shows_in_its_own_part(
    sites: list[tuple[int, int, str, int]], then: float, now: float, wanted: dict[str, float]
) -> None:
    """Of sites with a probability, days of their first hit and of the end of their verdict, and a source.

    Verdicts that had expired before the first point are no part of a change. Parts that are not named are 0.
    """
    likely = {str(n): float(probability) for n, (probability, *_) in enumerate(sites)}
    rows = [row(str(n), DAY + day, of, until=end and DAY + end) for n, (_, day, of, end) in enumerate(sites)]
    found = change_parts([point(then)], line(now), rows, likely, NOW)
    nothing = dict.fromkeys((*PARTS, "new", "known", "left"), 0)
    assert {name: getattr(found, name) for name in nothing} == nothing | wanted
    assert found.seams == []


@pytest.mark.parametrize(("first_page", "term", "new"), [(1, 0, 1), (-1, 0, 0), (0, 2, 0), (100, 2, 1)])
def test_a_site_is_new_by_its_first_page(first_page: int, term: int, new: int) -> None:
    """A site whose first page came after the point is new, however old its hits are; a later term does not make it so.

    `first_page`: days after the point.
    """
    start = SINCE + (first_page + 50 * term) * DAY_MS
    site = SiteState(id="a", site="a", scored=5, days=[DAY - 400], term=term, term_start=start)
    site = msgspec.structs.replace(site, term_end=start + 50 * DAY_MS)
    found = change_parts([point(0.5)], line(0.7), [site], {"a": 1.0}, start)
    assert (found.new, found.known) == (new, 1 - new)


@pytest.mark.parametrize("more", [{"digest": "d2"}, {"detector": "pair"}, {"run": "r2"}, {"share_method": "ppi"}])
def test_a_step_where_the_instrument_changed_is_the_instruments(more: dict[str, str]) -> None:
    """A step between two instruments belongs to the instrument, also between the last point and now."""
    points = [point(0.1), point(0.2, SINCE + 1), point(0.5, SINCE + 2, **more), point(0.6, SINCE + 3, **more)]
    named = {("method" if name == "share_method" else name): value for name, value in more.items()}
    found = change_parts(points, line(0.6, **named), [row("a", DAY - 1)], {"a": 0.6}, NOW)
    assert (round(found.instrument, 6), round(found.known_sites, 6), found.seams) == (0.3, 0.2, [SINCE + 2])
    assert change_parts(points[:2], line(0.5, **named), [row("a", DAY - 1)], {"a": 0.5}, NOW).instrument == 0.3


def test_without_a_share_then_or_now_nothing_is_split() -> None:
    """Points without the direct estimate, and points of groups, are not used."""
    old, group = point(0.5, SINCE), point(0.5, SINCE, by="source", group="a")
    for points in ([], [msgspec.structs.replace(old, share=None)], [group]):
        with pytest.raises(BadParameters, match="no share was kept"):
            change_parts(points, line(0.5), [], {}, NOW)
