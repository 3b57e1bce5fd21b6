"""Shares: exact for independent texts, wider for correlated texts of a site, and with the stated coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.statistics.shares import exact_interval, incomplete_beta, quantile_of_sum, share, t_quantile


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [  # Clopper and Pearson's limits as tables and other programs give them
        (0, 10, 0.0, 0.3084971),
        (3, 10, 0.0667395, 0.6524529),
        (10, 10, 0.6915029, 1.0),
        (5, 3000, 0.00054138, 0.00388512),
        (100, 100_000, 0.00081371, 0.00121614),
    ],
)
def test_exact_interval_is_clopper_and_pearsons(count: int, total: int, low: float, high: float) -> None:
    """The limits agree with published ones to their last digit."""
    assert exact_interval(count, total) == pytest.approx((low, high), rel=1e-4, abs=1e-9)


def test_the_distribution_functions_are_right() -> None:
    """I_x(1, b) = 1 - (1 - x)^b, I_x(a, b) = 1 - I_(1-x)(b, a), and Student's quantiles are those of the tables."""
    for x in (0.001, 0.3, 0.9, 0.9999):
        assert incomplete_beta(1, 7, x) == pytest.approx(1 - (1 - x) ** 7, rel=1e-12)
        assert incomplete_beta(2.5, 40, x) == pytest.approx(1 - incomplete_beta(40, 2.5, 1 - x), abs=1e-12)
    tables = {1: 12.7062, 2: 4.30265, 10: 2.22814, 100: 1.98397}
    for degrees, quantile in tables.items():
        assert t_quantile(degrees) == pytest.approx(quantile, rel=1e-5)
    assert quantile_of_sum(11, 11, 11) == pytest.approx(tables[10], rel=1e-5)  # of parts 1 and -1: n - 1 degrees
    assert quantile_of_sum(11, 11, 11, 0.99) == pytest.approx(tables[10] * 2.575829 / 1.959964, rel=1e-5)


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(1, 12))
def test_an_interval_contains_its_share(hits: list[bool], sites: int) -> None:
    """For any hits and any sites: 0 <= low <= share <= high <= 1, and the counts are those given."""
    found = share(np.array(hits), np.arange(len(hits)) % sites)
    assert found.share is not None and found.low is not None and found.high is not None
    assert 0 <= found.low <= found.share <= found.high <= 1
    assert (found.count, found.total) == (sum(hits), len(hits))


def test_texts_that_each_have_a_site_are_independent() -> None:
    """With a site for each text the interval is the exact one."""
    hits = np.arange(200) < 13
    found = share(hits, np.arange(200))
    assert (found.low, found.high) == pytest.approx(exact_interval(13, 200))


def test_sites_whose_pages_agree_widen_the_interval() -> None:
    """For 20 sites of 10 pages with 2 wholly flagged, the interval is nearly as wide as for 2 of 20 texts."""
    sites = np.repeat(np.arange(20), 10)
    agreeing, spread = share(sites < 2, sites), share(np.arange(200) % 10 == 0, sites)
    assert (agreeing.count, spread.count) == (20, 20)
    width = [(found.high or 0) - (found.low or 0) for found in (agreeing, spread)]
    low, high = exact_interval(2, 20)
    assert width[0] > 2.5 * width[1] and width[0] > 0.95 * (high - low)


def test_without_a_hit_each_site_counts_once() -> None:
    """Without a hit there is no variance, so that 300 pages of 10 sites count as 10 texts."""
    found = share(np.zeros(300, bool), np.arange(300) % 10)
    assert found.high == pytest.approx(exact_interval(0, 10)[1])


def test_weights_count_as_they_say() -> None:
    """A hit with three times the weight counts three times, and unequal weights do not narrow the interval."""
    found = share(np.array([True, False]), np.arange(2), np.array([3.0, 1.0]))
    assert found.share == pytest.approx(0.75)
    even = share(np.arange(100) < 50, np.arange(100))
    uneven = share(np.arange(100) < 50, np.arange(100), np.where(np.arange(100) % 2, 1.0, 9.0))
    assert (uneven.high or 0) - (uneven.low or 0) > (even.high or 0) - (even.low or 0)


@pytest.mark.slow
def test_clustered_intervals_cover() -> None:
    """For 150 draws of 40 sites with rates from Beta(1, 9), the interval covers the true 10% in >= 91%.

    Without the clusters it would cover far less often, so that these draws test the clustering. At 95%, 91% of 150 or
    more cover with a probability of .98.
    """
    rng = np.random.default_rng(1)
    rounds, sites, pages = 150, 40, 20
    codes = np.repeat(np.arange(sites), pages)
    covered = naive = 0
    for _ in range(rounds):
        hits = rng.random(sites * pages) < np.repeat(rng.beta(1, 9, sites), pages)
        clustered = share(hits, codes)
        assert clustered.low is not None and clustered.high is not None
        covered += clustered.low <= 0.1 <= clustered.high
        low, high = exact_interval(int(hits.sum()), len(hits))
        naive += low <= 0.1 <= high
    assert covered / rounds >= 0.91
    assert naive / rounds < 0.85
