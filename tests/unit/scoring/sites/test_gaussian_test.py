"""The method `gaussian`: steps, clipping, fit and sentences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.errors import BadTrainingData
from scoring.interface import PageScore
from scoring.sites.gaussian import GaussianParams, GaussianTest, fit_gaussian

TEST = GaussianTest(GaussianParams())


def pages(*scores: float) -> list[PageScore]:
    """Pages fetched one ms after the other; flagged below Binoculars' accuracy threshold."""
    return [PageScore(score < 0.9015, score, place) for place, score in enumerate(scores, start=1)]


def step(score: float, test: GaussianTest = TEST) -> float:
    """The step of a page with this score."""
    found = test.step_of(PageScore(None, score))
    assert found is not None
    return found


def test_a_step_is_the_log_ratio_of_the_two_densities() -> None:
    """Without clipping, a step is ln N(x; mu1, sd1) - ln N(x; mu0, sd0), for unequal widths too."""
    params = GaussianParams(sd0=0.05, sd1=0.09, clip=1e9, low=-9, high=9)

    def density(x: float, mean: float, sd: float) -> float:
        return math.exp(-((x - mean) ** 2) / (2 * sd * sd)) / (sd * math.sqrt(2 * math.pi))

    for x in (0.8, 0.86, 0.92, 1.0):
        ratio = density(x, params.mu1, params.sd1) / density(x, params.mu0, params.sd0)
        assert math.isclose(step(x, GaussianTest(params)), math.log(ratio), rel_tol=1e-9)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_a_lower_score_never_speaks_less_for_llm(one: float, other: float) -> None:
    """With the defaults, a step falls as the score rises, and stays within the clip for any number."""
    low, high = sorted((one, other))
    assert -1.5 <= step(high) <= step(low) <= 1.5


def test_five_extreme_pages_decide_and_four_do_not() -> None:
    """At a clip of 1.5 nats per page, five extreme pages reach 6.89; pages without a score are skipped."""
    found = TEST.decide([*(PageScore(True) for _ in range(9)), *pages(*[0.5] * 6)])
    assert (found.verdict, found.pages_used, found.pages, found.flagged) == ("llm", 5, 6, 5)
    assert (found.method, found.decided_at) == ("gaussian", 5)
    assert TEST.evidence(found) == (
        "5 of the first 5 of 6 scored articles are flagged; log-likelihood ratio +7.50, at or above 6.89"
    )
    assert TEST.decide(pages(*[0.5] * 4)).verdict == "unclassifiable"
    assert TEST.decide(pages(*[1.5] * 5)).verdict == "human"
    assert TEST.decide(pages(*[0.9225] * 30)).verdict == "undecided"


def test_a_mixed_site_says_so() -> None:
    """If a site has two clear groups of scores, the sentence ends with them."""
    two_groups = [0.85, 0.99, 0.851, 0.991, 0.852, 0.992, 0.853, 0.993] * 2
    assert TEST.evidence(TEST.decide(pages(*two_groups))).endswith(
        ": not decided; mixed: two clear groups of scores, one on either side of the threshold"
    )


def test_the_fit_finds_means_and_widens_for_sites_that_differ() -> None:
    """From simulated sites, the fit finds both means, and an sd with the design effect of 8 pages, sqrt(w + 8 b)."""
    rng = np.random.default_rng(1)
    kinds = [
        [rng.normal(centre, 0.04, 200).tolist() for centre in rng.normal(mean, 0.02, 400)] for mean in (0.99, 0.86)
    ]
    found = fit_gaussian(*kinds)
    assert abs(found.mu0 - 0.99) < 0.005 and abs(found.mu1 - 0.86) < 0.005
    assert found.sd0 == found.sd1
    assert math.isclose(found.sd0, math.sqrt(0.04**2 + 8 * 0.02**2), rel_tol=0.05)
    assert found.low < found.mu1 < found.mu0 < found.high


def test_a_fit_without_sites_is_refused() -> None:
    """Fewer than two sites of a label, and equal scores, are refused."""
    with pytest.raises(BadTrainingData, match="1 llm sites"):
        fit_gaussian([[1.0, 1.1]] * 2, [[0.5, 0.6]])
    with pytest.raises(BadTrainingData, match="the same"):
        fit_gaussian([[1.0, 1.0]] * 2, [[0.5, 0.6]] * 2)
