"""Points of series: one key per series and time, the largest groups, and fewer points with age."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from scoring.rates.series import interval_start, largest, point_of, thinned
from scoring.rates.site_rates import site_rate
from scoring.rates.split_rates import rate_lines
from stream.schema.records import RatePoint, SiteState

_DAY_MS = 86_400_000


def point(at: int, group: str = "", by: str = "", verdicts: Sequence[str] = ("llm", "human"), **more: str) -> RatePoint:
    """A point over two sites."""
    versions = {"run": "live", "ruleset": "r", "digest": "d", "detector": "x/1", "site_method": "sprt"} | more
    rows = [SiteState(id=str(n), site=f"{n}.test", verdict=verdict, mixed=not n) for n, verdict in enumerate(verdicts)]
    return point_of(msgspec.structs.replace(rate_lines(rows)[0], by=by, group=group, **versions), at)


def test_a_point_holds_rate_interval_and_counts() -> None:
    """A point has all numbers of a group's rate, with its versions."""
    found = point(5, "file", "source")
    rate = site_rate(Counter(["llm", "human"]))
    assert (found.rate, found.low, found.high) == (rate.rate, rate.low, rate.high)
    assert (found.llm, found.human, found.undecided, found.unclassifiable, found.mixed) == (1, 1, 0, 0, 1)
    assert (found.at, found.by, found.group, found.method, found.ruleset) == (5, "source", "file", "uncorrected", "r")


def test_one_key_a_series_and_time() -> None:
    """Another split, group, version or time gives another key; another rate does not."""
    others = [
        point(0),
        point(1),
        point(0, "a", "source"),
        point(0, "a", "rank"),
        point(0, detector="y/1"),
        point(0, digest="e"),
        point(0, run="replay"),
        point(0, site_method="deciles"),
        point(0, site_method_digest="4567abcd"),
    ]
    assert len({found.id for found in others}) == len(others)
    moved = point(0, verdicts=["llm"])
    assert moved.id == point(0).id


def test_a_point_is_small() -> None:
    """A point takes at most 300 bytes with a detector of two models, as the docs say."""
    detector = "binoculars/falcon-7b+falcon-7b-instruct@0123abcd/bfloat16/512/0.9015310749276843"
    versions = {"detector": detector, "digest": "0123456789abcdef", "site_method_digest": "0123abcd"}
    assert len(msgspec.msgpack.encode(point(10**12, "a-group-of-queries", "query-group", **versions))) < 300


@given(st.floats(0, 4e9), st.integers(60, 100_000))
def test_intervals_are_aligned_to_the_clock(now_s: float, interval_s: int) -> None:
    """An interval starts at a multiple of its length, at or before now, by less than its length."""
    start = interval_start(now_s, interval_s)
    assert start % (interval_s * 1000) == 0
    assert start / 1000 <= now_s < start / 1000 + interval_s


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=12), st.integers(1, 6))
def test_the_largest_groups_are_kept(sites: dict[str, int], cap: int) -> None:
    """At most `cap` groups are kept, and no other group is larger."""
    kept = largest(sites, cap)
    assert len(kept) == min(cap, len(sites))
    left = set(sites) - set(kept)
    assert not left or max(sites[group] for group in left) <= min(sites[group] for group in kept)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5), st.integers(0, 23)), unique=True, max_size=60))
def test_of_old_points_the_first_of_a_day_stays(places: list[tuple[str, int, int]]) -> None:
    """Old points are thinned to the first of each day per series; thinning again removes none."""
    points = [point(day * _DAY_MS + hour * 3_600_000, group, "source") for group, day, hour in places]
    gone = {found.id for found in thinned(points)}
    kept = [found for found in points if found.id not in gone]
    assert Counter((found.group, found.at // _DAY_MS) for found in kept) == Counter(
        {(group, day): 1 for group, day, _ in places}
    )
    firsts = {(group, day): min(h for g, d, h in places if (g, d) == (group, day)) for group, day, _ in places}
    assert all(found.at % _DAY_MS == firsts[found.group, found.at // _DAY_MS] * 3_600_000 for found in kept)
    assert not list(thinned(kept))
