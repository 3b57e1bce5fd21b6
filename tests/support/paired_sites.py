"""Generated sites under two rulesets, the true difference of their shares, and the coverage of its interval."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scoring.estimate.paired_bootstrap import Numbers, paired_change

Sample = Callable[[int, np.random.Generator], Numbers]

# per site: llm and classifiable under A, the same under B
KINDS = np.array(
    [[1, 1, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1], [0, 1, 0, 1], [1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1]],
    np.float64,
)
SITES = {  # probability of each kind
    "as many in as out": [0.07, 0.03, 0.03, 0.79, 0.01, 0.02, 0.01, 0.04],
    "nearly all one way": [0.08, 0.005, 0.06, 0.785, 0.005, 0.02, 0.02, 0.025],
    "few flips": [0.03, 0.002, 0.006, 0.929, 0.0, 0.01, 0.001, 0.022],
}
PAGES = {  # share of articles under A, share of others let in by B, of articles thrown out, similarity of sites
    "a rule is loosened": (0.6, 0.10, 0.02, 1.0),
    "a rule is tightened, in few sites": (0.3, 0.02, 0.10, 0.5),
    "hardly a flip": (0.6, 0.02, 0.001, 0.3),
}


def small_sites(sites: int, rng: np.random.Generator) -> Numbers:
    """Pages of each site: 1 to 60, mostly few."""
    return np.minimum(rng.geometric(1 / 12, sites), 60).astype(np.float64)


def uneven_sites(sites: int, rng: np.random.Generator) -> Numbers:
    """Pages of each site: 1 to 200 by Pareto's law, exponent 1.5."""
    return np.minimum(np.floor(1 + rng.pareto(1.5, sites)), 200)


def of_sites(probabilities: list[float]) -> tuple[Sample, float]:
    """Sites whose verdicts flip, or that enter or leave the denominator, and the true difference of their rate."""
    p = np.array(probabilities)
    expected = p @ KINDS
    truth = expected[2] / expected[3] - expected[0] / expected[1]
    return lambda sites, rng: KINDS[rng.choice(len(p), sites, p=p / p.sum())], float(truth)


def of_pages(
    base: float, let_in: float, thrown_out: float, alike: float, pages_of: Sample = small_sites
) -> tuple[Sample, float]:
    """Sites of several pages with different shares of articles and rates of flips, and the true difference."""

    def sample(sites: int, rng: np.random.Generator) -> Numbers:
        def of_site(mean: float) -> Numbers:
            return rng.beta(mean * alike, (1 - mean) * alike, sites)

        pages = pages_of(sites, rng).astype(np.int64)
        before = rng.binomial(pages, of_site(base))
        gone = rng.binomial(before, of_site(thrown_out))
        come = rng.binomial(pages - before, of_site(let_in))
        return np.stack([before, pages, before - gone + come, pages], axis=1).astype(np.float64)

    return sample, (1 - base) * let_in - base * thrown_out


def coverage(sample: Sample, truth: float, sites: int, simulations: int, resamples: int) -> tuple[float, float]:
    """Share of 95% intervals that contain the truth, and their mean width."""
    rng = np.random.default_rng(sites)
    found = [paired_change(sample(sites, rng), rng, resamples=resamples) for _ in range(simulations)]
    known = [change for change in found if change is not None]
    held = sum(change.low <= truth <= change.high for change in known)
    return held / len(known), sum(change.high - change.low for change in known) / len(known)
