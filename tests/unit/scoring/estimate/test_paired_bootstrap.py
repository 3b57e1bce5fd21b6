"""The paired bootstrap by sites: its coverage, and its results for few sites."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.errors import BadParameters
from scoring.estimate.paired_bootstrap import Numbers, PairedChange, paired_change
from tests.support.paired_sites import KINDS, PAGES, SITES, coverage, of_pages, of_sites
from tests.support.sizes import LONG

pytestmark = pytest.mark.slow

SIMULATIONS = 4000 if LONG else 60  # of samples that are slow to draw; of the others three times as many
RESAMPLES = 2000 if LONG else 200
COUNTS = [40, 150, 600] if LONG else [40, 150]  # of sites
EQUAL = np.repeat(KINDS[[0, 3]], [4, 36], axis=0)  # 40 sites without a flip


def least(simulations: int) -> float:
    """The coverage that 99% of such numbers of simulations exceed if it is .95, and .94 for many (normal bound)."""
    return 0.95 - max(0.01, 2.33 * math.sqrt(0.95 * 0.05 / simulations))


def changed(sums: Numbers, seed: int | np.random.Generator = 1, **more: Any) -> PairedChange:
    """The change; it must exist."""
    found = paired_change(sums, np.random.default_rng(seed), **more)
    assert found is not None
    return found


@pytest.mark.parametrize("sites", COUNTS)
@pytest.mark.parametrize("kind", SITES)
def test_the_interval_of_site_rates_holds_the_truth(kind: str, sites: int) -> None:
    """If verdicts flip and sites leave or enter the denominator, the 95% interval covers at least .94."""
    sample, truth = of_sites(SITES[kind])
    assert coverage(sample, truth, sites, 3 * SIMULATIONS, RESAMPLES)[0] >= least(3 * SIMULATIONS)


@pytest.mark.parametrize("sites", COUNTS)
@pytest.mark.parametrize("kind", PAGES)
def test_the_interval_of_page_shares_holds_the_truth_with_clustered_flips(kind: str, sites: int) -> None:
    """If a few sites have most of the flips, the 95% interval covers at least .94."""
    sample, truth = of_pages(*PAGES[kind])
    assert coverage(sample, truth, sites, SIMULATIONS, RESAMPLES)[0] >= least(SIMULATIONS)


def test_without_smoothing_the_interval_would_not_hold() -> None:
    """Without a flip in 40 sites, the interval is not the point 0, because another sample may have flips."""
    change = changed(EQUAL)
    assert change.difference == 0
    assert -0.15 < change.low < -0.03
    assert 0.03 < change.high < 0.15  # by the rule of three, 3 / 40 in either direction


def test_one_run_twice_has_no_interval() -> None:
    """A run compared with itself has a difference of exactly 0, from 0 to 0; other sums are an error."""
    change = changed(EQUAL, same=True)
    assert (change.difference, change.low, change.high) == (0, 0, 0)
    with pytest.raises(BadParameters, match="runs that are the same"):
        changed(np.append(EQUAL, KINDS[[2]], axis=0), same=True)


def test_no_denominator_is_no_difference() -> None:
    """If a run has no denominator, its share is None, not zero."""
    assert paired_change(np.empty((0, 4)), np.random.default_rng(1)) is None
    assert paired_change(np.array([[0.0, 0.0, 1.0, 1.0]]), np.random.default_rng(1)) is None


def test_a_seed_gives_one_interval() -> None:
    """The same seed gives the same interval, another seed another one; the estimate does not depend on it."""
    sample, _ = of_sites(SITES["as many in as out"])
    sums = sample(300, np.random.default_rng(5))
    first, again, other = (changed(sums, seed) for seed in (1, 1, 2))
    assert first == again
    assert first.difference == other.difference
    assert (first.low, first.high) != (other.low, other.high)


@pytest.mark.parametrize(
    ("sums", "more", "said"),
    [
        ([[2.0, 1.0, 0.0, 1.0]], {}, "paired sums"),
        ([[-1.0, 1.0, 0.0, 1.0]], {}, "paired sums"),
        ([[1.0, 1.0]], {}, "paired sums"),
        ([[1.0] * 4] * 30, {"resamples": 49}, "50 resamples"),
        ([[1.0] * 4] * 30, {"confidence": 1.0}, "50 resamples"),
    ],
)
def test_what_makes_no_sense_is_refused(sums: list[list[float]], more: dict[str, Any], said: str) -> None:
    """A part above its whole, a negative part, a missing column, too few resamples or a confidence of 1 is refused."""
    with pytest.raises(BadParameters, match=said):
        changed(np.array(sums), **more)


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 4), min_size=1, max_size=30))
def test_the_interval_holds_the_estimate(rows: list[tuple[int, int, int, int]]) -> None:
    """For any sums, low <= difference <= high within -1 and 1, and swapping the runs swaps the signs."""
    sums = np.array([[min(a, b), b, min(c, d), d] for a, b, c, d in rows], np.float64)
    change = paired_change(sums, np.random.default_rng(1), resamples=50)
    swapped = paired_change(sums[:, [2, 3, 0, 1]], np.random.default_rng(1), resamples=50)
    assert (change is None) == (swapped is None)
    if change is None or swapped is None:
        return
    assert -1 <= change.low <= change.difference <= change.high <= 1
    assert change.difference == pytest.approx(-swapped.difference)


def test_rows_and_sites_are_drawn_alike() -> None:
    """Equal sites drawn as counts and different sites drawn one by one give nearly the same interval."""
    sample, _ = of_sites(SITES["as many in as out"])
    sums = sample(800, np.random.default_rng(5))
    apart = sums + np.arange(800)[:, None] * 1e-9 * np.array([1, 1, 1, 1])  # no two rows are equal
    by_rows, by_sites = changed(sums, 1, resamples=4000), changed(apart, 2, resamples=4000)
    assert by_rows.low == pytest.approx(by_sites.low, abs=0.004)
    assert by_rows.high == pytest.approx(by_sites.high, abs=0.004)
