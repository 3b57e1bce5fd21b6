"""The direct estimate: likelihood against scipy, interval against a constrained maximum, errors over many draws."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.estimate import mixture
from scoring.estimate.beta_binomial import log_beta_binomial
from scoring.estimate.fit import WIDE, CellCounts, Cells, Fit, KnownSites
from scoring.estimate.mixture import estimate_share
from tests.support.lazily import Lazily
from tests.support.sizes import LONG

if TYPE_CHECKING:
    from scipy import optimize, stats
else:
    optimize, stats = Lazily("scipy.optimize"), Lazily("scipy.stats")

pytestmark = pytest.mark.slow

NOTHING = KnownSites({}, {})
HUMAN, LLM = (0.5, 10.0), (19.0, 5.0)  # beta of the flagged shares: means .048 and .79
DRAWS = 30 if LONG else 4  # of each kind of web


def drawn(rng: np.random.Generator, lengths: np.ndarray, beta: tuple[float, float]) -> np.ndarray:
    """Flagged pages of sites with this many pages."""
    found: np.ndarray = rng.binomial(lengths, rng.beta(*beta, len(lengths)))
    return found


def cells(n: np.ndarray, k: np.ndarray) -> Counter[tuple[int, int]]:
    """Sites by pages and flagged pages."""
    return Counter(zip(n.tolist(), k.tolist(), strict=True))


def web(
    rng: np.random.Generator,
    sites: int,
    share: float,
    human: tuple[float, float] = HUMAN,
    llm: tuple[float, float] = LLM,
) -> tuple[CellCounts, float]:
    """Sites of 1 to 20 pages, mostly short, with this share of LLM sites."""
    is_llm = rng.random(sites) < share
    lengths = np.minimum(rng.geometric(0.25, sites), 20)
    return cells(lengths, np.where(is_llm, drawn(rng, lengths, llm), drawn(rng, lengths, human))), float(is_llm.mean())


def canaries(rng: np.random.Generator, sites: int = 40) -> KnownSites:
    """Sites of known truth."""
    lengths = rng.integers(5, 20, sites)
    return KnownSites(*(cells(lengths, drawn(rng, lengths, beta)) for beta in (HUMAN, LLM)))


def fitted(counts: CellCounts, known: KnownSites = NOTHING, confidence: float = 0.95) -> Fit:
    """The estimate; it must exist."""
    found = estimate_share(counts, WIDE, known, confidence)
    assert found is not None
    return found


@given(st.integers(1, 60), st.floats(-4, 5), st.floats(-4, 5))
def test_the_beta_binomial_is_scipys(n: int, log_a: float, log_b: float) -> None:
    """The log probabilities of all k equal scipy's; gradient and Hessian equal differences."""
    k = np.arange(n + 1)
    at = (np.full(n + 1, n), k)
    found = log_beta_binomial(*at, log_a, log_b)
    np.testing.assert_allclose(found.value, stats.betabinom.logpmf(k, n, np.exp(log_a), np.exp(log_b)), atol=1e-7)
    step = 1e-4
    for place, (da, db) in enumerate(((step, 0), (0, step))):
        up, down = (log_beta_binomial(*at, log_a + s * da, log_b + s * db) for s in (1, -1))
        np.testing.assert_allclose(found.gradient[:, place], (up.value - down.value) / (2 * step), atol=1e-5)
        np.testing.assert_allclose(found.hessian[:, place], (up.gradient - down.gradient) / (2 * step), atol=1e-4)


def test_the_interval_is_that_of_the_profile_likelihood() -> None:
    """At each end of the interval, the constrained maximum (scipy's SLSQP) lies 1.92 below the maximum."""
    counts, _ = web(np.random.default_rng(1), 120, 0.3)
    known = canaries(np.random.default_rng(2), 10)
    found = fitted(counts, known)
    model = mixture.Mixture(Cells.of(counts), known, WIDE)
    best = model.best()

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        point = model._at(theta, 0.0)
        return -point.value, -point.gradient

    for end in (found.low, found.high):
        under = optimize.minimize(
            loss,
            best.theta,
            jac=True,
            method="SLSQP",
            constraints={"type": "eq", "fun": lambda theta: model._at(theta, 0.0).share - end},  # noqa: B023
            options={"maxiter": 500, "ftol": 1e-10},
        )
        assert under.success
        assert 2 * (best.value + under.fun) == pytest.approx(1.96**2, abs=0.1)


def test_the_share_is_unbiased_and_its_interval_covers() -> None:
    """With 40 + 40 known sites, the mean error is small for each kind of web, and 15 of 16 intervals cover the truth.

    The kinds: few LLM sites, half of all, hardly any, and LLM sites that are flagged in 62% of pages, not in 80%. The
    intervals are wide for the share of these very sites: its errors are half of the standard errors that they allow. Of
    16, the root mean square is above .75 with a probability of .003; of intervals half as wide, it would be with .91.
    """
    covered, squares = 0, []
    for sites, share, llm, bias in (
        (300, 0.15, LLM, 0.02),
        (300, 0.5, LLM, 0.02),
        (600, 0.02, LLM, 0.01),
        (300, 0.3, (15.0, 9.0), 0.03),
    ):
        rng = np.random.default_rng(7)
        errors = []
        for _ in range(DRAWS):
            counts, truth = web(rng, sites, share, llm=llm)
            found = fitted(counts, canaries(rng))
            errors.append(found.share - truth)
            covered += found.low <= truth <= found.high
            half = found.high - found.share if truth > found.share else found.share - found.low
            squares.append((1.96 * (found.share - truth) / half) ** 2)
        chance = 0.0 if LONG else 2 * float(np.std(errors)) / math.sqrt(DRAWS)  # two standard errors of the mean
        assert abs(float(np.mean(errors))) < bias + chance
    assert covered >= 4 * DRAWS * 15 / 16
    assert np.mean(squares) < 0.75**2


def test_short_sites_count() -> None:
    """Sites of one page, too short for a verdict, have a share with a wide interval."""
    rng = np.random.default_rng(3)
    is_llm = rng.random(2000) < 0.4
    flagged = np.where(is_llm, rng.random(2000) < 0.8, rng.random(2000) < 0.05).astype(int)
    found = fitted(cells(np.ones(2000, dtype=int), flagged), canaries(rng, 200))
    assert found.low <= is_llm.mean() <= found.high
    assert abs(found.share - is_llm.mean()) < 0.06
    assert 0.05 < found.high - found.low < 0.4


def test_early_stopping_does_not_bias() -> None:
    """Scoring each site only until flagged and clear pages differ by 5 does not bias the estimate."""
    rng = np.random.default_rng(4)
    is_llm = rng.random(800) < 0.3
    rates = np.where(is_llm, rng.beta(*LLM, 800), rng.beta(*HUMAN, 800))
    stopped: Counter[tuple[int, int]] = Counter()
    for rate in rates:
        walk = np.cumsum(np.where(rng.random(20) < rate, 1, -1))
        at = int(np.argmax(np.abs(walk) == 5)) if (np.abs(walk) == 5).any() else 19
        stopped[at + 1, int((walk[at] + at + 1) // 2)] += 1
    found = fitted(stopped, canaries(rng))
    assert abs(found.share - is_llm.mean()) < 0.02


@pytest.mark.parametrize("pages", [1, 12])
def test_sites_of_one_kind_only(pages: int) -> None:
    """With no flagged page, or only flagged pages, the interval begins at 0 or ends at 1."""
    none = fitted({(pages, 0): 200})
    every = fitted({(pages, pages): 200})
    assert none.low == 0 and every.high == 1
    assert none.share < 0.5 < every.share


def test_more_sites_narrow_the_interval() -> None:
    """With a hundred times the sites the interval is far narrower, because they show how often each kind is flagged."""
    rng = np.random.default_rng(5)
    known = canaries(rng)
    few, many = (fitted(web(rng, sites, 0.3)[0], known) for sites in (300, 30_000))
    assert many.high - many.low < 0.25 * (few.high - few.low)


def test_known_sites_narrow_the_interval() -> None:
    """Over 4 draws of 300 sites, canaries of both kinds narrow the interval on average."""
    rng = np.random.default_rng(14)
    widths = []
    for _ in range(4):
        counts, _ = web(rng, 300, 0.3)
        found = fitted(counts), fitted(counts, canaries(rng))
        widths.append([fit.high - fit.low for fit in found])
    alone, helped = np.mean(widths, axis=0)
    assert helped < 0.9 * alone


def test_the_posterior_orders_sites_by_their_flags() -> None:
    """A site with more flagged pages is likelier an LLM site, even with one page."""
    found = fitted(web(np.random.default_rng(8), 500, 0.3)[0], canaries(np.random.default_rng(9)))
    assert found.posterior[1, 0] < found.share < found.posterior[1, 1]
    of_4 = [found.posterior[4, k] for k in range(5)]
    assert of_4 == sorted(of_4) and of_4[0] < 0.05 and of_4[4] > 0.95


def test_a_part_of_the_sites_is_estimated_with_the_components_of_all() -> None:
    """A group of 20 sites uses the components of all sites, which narrows its interval."""
    rng = np.random.default_rng(10)
    whole = fitted(web(rng, 1000, 0.3)[0])
    part, truth = web(rng, 20, 0.3)
    alone, helped = fitted(part), estimate_share(part, whole.components)
    assert helped is not None
    assert helped.low <= truth <= helped.high
    assert helped.high - helped.low < alone.high - alone.low


def test_a_wider_confidence_is_a_wider_interval() -> None:
    """The interval at 80% lies within that at 95%, and that within 99%."""
    counts, _ = web(np.random.default_rng(11), 300, 0.2)
    found = [fitted(counts, confidence=confidence) for confidence in (0.8, 0.95, 0.99)]
    assert found[2].low < found[1].low < found[0].low < found[0].high < found[1].high < found[2].high


def test_sites_that_are_of_no_two_kinds_widen_the_interval() -> None:
    """If short and long sites are flagged differently, the mixture does not fit, and the interval widens."""
    rng = np.random.default_rng(12)
    short, long = rng.binomial(2, 0.5, 3000), rng.binomial(12, 0.02, 3000)
    odd = cells(np.repeat(2, 3000), np.where(rng.random(3000) < 0.5, 1, short)) + cells(np.repeat(12, 3000), long)
    assert fitted(odd).misfit > 1
    assert fitted(web(rng, 1000, 0.3)[0], canaries(rng)).misfit == 1


def test_no_scored_site_is_no_share() -> None:
    """Sites without a usable score do not count; if there are no others, there is no share."""
    assert estimate_share({}, WIDE) is None
    assert estimate_share({(0, 0): 7}, WIDE) is None
    assert fitted({(0, 0): 7, (9, 0): 20, (2, 3): 1}).sites == 20  # more flagged than scored pages is not a site


def test_a_site_of_many_thousand_pages_is_one_site() -> None:
    """A site of many thousand pages counts once, at the cost of a table of that length, without overflow."""
    found = fitted({(20_000, 18_000): 1, (20_000, 10): 1, (3, 0): 20, (3, 3): 5})
    assert 0 < found.low < found.share < found.high < 1
    assert found.posterior[20_000, 18_000] > 0.99 > 0.01 > found.posterior[20_000, 10]
