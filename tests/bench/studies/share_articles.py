"""Whether flags alone show which sites have any or only articles by a language model.

Run by `python -m tests.bench.studies.share_articles [draws, default 150]`. 15 % of 600 sites have nine articles in ten
by a language model, the others none. The estimator gets more than it would know: how often human and LLM pages are
flagged, and how sites differ in that. It fits the distribution of a site's share of LLM pages to the flags
(nonparametric maximum likelihood on 11 shares, by EM), with the bootstrap's interval.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import beta, binom

from tests.bench.timing import argument

Floats = npt.NDArray[np.float64]
SITES, SHARE, PART = 600, 0.15, 0.9
LONGEST, RESAMPLES, ROUNDS = 20, 80, 300
PARTS = np.linspace(0, 1, 11)
HUMAN, LLM = (0.045, 11.5), (0.8, 24.0)  # mean and size of the beta of a site's flagged share


def main() -> None:
    """Print the coverage and the mean error of both shares."""
    likelihoods = _likelihoods()
    rows = [_drawn(np.random.default_rng(seed), likelihoods) for seed in range(argument(1, 150))]
    truth, found, low, high = (np.array(column) for column in zip(*rows, strict=True))
    covered, bias = ((low <= truth) & (truth <= high)).mean(axis=0), (found - truth).mean(axis=0)
    for place, name in enumerate(("any", "every")):
        print(f"{name}: covered {covered[place]:.3f}, bias {bias[place]:+.3f}")


def _drawn(rng: np.random.Generator, likelihoods: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """The truth of a web, its estimate, and the ends of the interval."""
    part = np.where(rng.random(SITES) < SHARE, PART, 0)
    n = np.minimum(rng.geometric(0.25, SITES), LONGEST)
    llm = rng.binomial(n, part)
    human_flagged, llm_flagged = (rng.beta(mean * size, (1 - mean) * size, SITES) for mean, size in (HUMAN, LLM))
    k = rng.binomial(llm, llm_flagged) + rng.binomial(n - llm, human_flagged)
    pairs, counts = np.unique(np.stack([n, k]), axis=1, return_counts=True)
    like: Floats = likelihoods[pairs[0], pairs[1]]
    again = [_shares(rng.multinomial(SITES, counts / SITES), like) for _ in range(RESAMPLES)]
    low, high = np.quantile(again, [0.025, 0.975], axis=0)
    return np.array([(part > 0).mean(), (part == 1).mean()]), _shares(counts, like), low, high


def _shares(counts: npt.NDArray[np.int64], like: Floats) -> Floats:
    weights = np.full(len(PARTS), 1 / len(PARTS))
    for _ in range(ROUNDS):
        posterior = like * weights
        weights = counts @ (posterior / posterior.sum(axis=1, keepdims=True)) / counts.sum()
    return np.array([1 - weights[0], weights[-1]])


def _likelihoods() -> Floats:
    """(n, k, part) -> probability of k flagged of n pages, over quantiles of both betas."""
    quantiles = (np.arange(12) + 0.5) / 12
    human, llm = (beta.ppf(quantiles, mean * size, (1 - mean) * size) for mean, size in (HUMAN, LLM))
    found = np.zeros((LONGEST + 1, LONGEST + 1, len(PARTS)))
    for place, part in enumerate(PARTS):
        flagged = (part * llm[:, None] + (1 - part) * human).ravel()
        for n in range(1, LONGEST + 1):
            found[n, : n + 1, place] = binom.pmf(np.arange(n + 1)[:, None], n, flagged).mean(axis=1)
    return found


if __name__ == "__main__":
    main()
