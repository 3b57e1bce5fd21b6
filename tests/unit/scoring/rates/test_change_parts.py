"""`change_parts`: the parts add up to the change, and each cause shows in its own part."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.errors import BadParameters
from scoring.rates.change_parts import ChangeParts, change_parts
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


def total(found: ChangeParts) -> float:
    """The sum of the parts."""
    return found.new_sites + found.sources + found.left_sites + found.known_sites + found.instrument


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
    assert total(found) == pytest.approx(found.after - found.before, abs=1e-7)
    assert found.new + found.known + found.left == len(sites)


def test_new_sites_that_differ_are_the_cause() -> None:
    """One of two known sites is an LLM site, and so are both new sites of the same source: 50% become 75%."""
    rows = [row("a", DAY - 9, "s"), row("b", DAY - 1, "s"), row("c", DAY, "s"), row("d", DAY + 5, "s")]
    found = change_parts([point(0.5)], line(0.75), rows, {"a": 0.0, "b": 1.0, "c": 1.0, "d": 1.0}, NOW)
    assert (found.new_sites, found.sources, found.known_sites, found.instrument) == (0.25, 0.0, 0.0, 0.0)
    assert (found.new, found.known, found.seams) == (2, 2, [])


def test_more_sites_of_a_source_with_a_larger_share_are_its_part() -> None:
    """If a source with a larger share gets more sites, that part is the mix of sources; each keeps its own share."""
    rows = [row("a", DAY - 9, "low"), row("b", DAY - 1, "high"), row("c", DAY, "high"), row("d", DAY, "new")]
    found = change_parts([point(0.5)], line(0.75), rows, {"a": 0.0, "b": 1.0, "c": 1.0, "d": 1.0}, NOW)
    assert (found.new_sites, found.sources, found.known_sites) == (0.0, 0.25, 0.0)


def test_what_known_sites_say_now_is_the_rest() -> None:
    """Without new sites, the whole change belongs to the known sites."""
    found = change_parts([point(0.25)], line(0.5), [row("a", DAY - 1), row("b", DAY - 1)], {"a": 1.0, "b": 0.0}, NOW)
    assert (found.new_sites, found.sources, found.known_sites) == (0.0, 0.0, 0.25)


def test_sites_whose_verdict_has_become_too_old_are_a_part() -> None:
    """Expired verdicts are a part of the change, unless they had expired before the first point."""
    rows = [row("a", DAY - 9), row("b", DAY - 9, until=DAY + 2), row("c", DAY - 99, until=DAY - 1)]
    found = change_parts([point(0.5)], line(0.0), rows, {"a": 0.0, "b": 1.0, "c": 1.0}, NOW)
    assert (found.left_sites, found.known_sites, found.new_sites) == (-0.5, 0.0, 0.0)
    assert (found.left, found.known, found.new) == (1, 1, 0)


def test_on_a_young_log_all_of_a_change_is_of_new_sites() -> None:
    """On a young log, no site was known before, so that all of the change belongs to new sites."""
    found = change_parts([point(0.25)], line(0.5), [row("a", DAY), row("b", DAY + 1)], {"a": 1.0, "b": 0.0}, NOW)
    assert (found.new_sites, found.sources, found.known_sites, found.known) == (0.25, 0.0, 0.0, 0)


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
