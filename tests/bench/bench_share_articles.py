"""Whether flags alone show which sites have any, mostly or only articles by a language model.

Run by `python -m tests.bench.bench_share_articles [DRAWS]`. The estimator gets more than it would know: how often human
and LLM pages are flagged, and how sites differ in that. It fits the distribution of a site's share of LLM pages to the
flags of 600 sites (nonparametric maximum likelihood on 11 shares, by EM), with the bootstrap's interval.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import beta, binom

from tests.bench.timing import argument

Floats = npt.NDArray[np.float64]
SITES, LONGEST, RESAMPLES, ROUNDS = 600, 20, 80, 300
PARTS = np.linspace(0, 1, 11)
HUMAN, LLM = (0.045, 11.5), (0.8, 24.0)  # mean and size of the beta of a site's flagged share


class Kind(NamedTuple):
    """Sites whose share of LLM pages is between two numbers."""

    share: float
    least: float
    most: float


WEBS = (
    (Kind(0.15, 1, 1),),
    (Kind(0.1, 0.05, 0.5), Kind(0.1, 1, 1)),
    (Kind(0.3, 0.1, 0.1), Kind(0.1, 1, 1)),
    (Kind(0.15, 0.9, 0.9),),
)


def main() -> None:
    """Print a line for each web."""
    draws, likelihoods = argument(1, 150), _likelihoods()
    print(f"{draws} draws: any, half or more, every: truth; bias; coverage; width")
    for web in WEBS:
        rows = [_drawn(np.random.default_rng(seed), web, likelihoods) for seed in range(draws)]
        truth, found, low, high = (np.array(column) for column in zip(*rows, strict=True))
        covered = ((low <= truth) & (truth <= high)).mean(axis=0)
        columns = (truth.mean(axis=0), (found - truth).mean(axis=0), covered, (high - low).mean(axis=0))
        print(web, "; ".join(str(column.round(3)) for column in columns), flush=True)


def _drawn(
    rng: np.random.Generator, web: tuple[Kind, ...], likelihoods: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """The truth of a web, its estimate, and the ends of the interval."""
    part = np.zeros(SITES)
    kind = rng.choice(len(web) + 1, SITES, p=[1 - sum(one.share for one in web), *(one.share for one in web)])
    for number, one in enumerate(web, 1):
        part[kind == number] = rng.uniform(one.least, one.most, int((kind == number).sum()))
    n = np.minimum(rng.geometric(0.25, SITES), LONGEST)
    llm = rng.binomial(n, part)
    human_flagged, llm_flagged = (rng.beta(mean * size, (1 - mean) * size, SITES) for mean, size in (HUMAN, LLM))
    k = rng.binomial(llm, llm_flagged) + rng.binomial(n - llm, human_flagged)
    pairs, counts = np.unique(np.stack([n, k]), axis=1, return_counts=True)
    like: Floats = likelihoods[pairs[0], pairs[1]]
    again = [_shares(rng.multinomial(SITES, counts / SITES), like) for _ in range(RESAMPLES)]
    low, high = np.quantile(again, [0.025, 0.975], axis=0)
    truth = np.array([(part > 0).mean(), (part >= 0.5).mean(), (part == 1).mean()])
    return truth, _shares(counts, like), low, high


def _shares(counts: npt.NDArray[np.int64], like: Floats) -> Floats:
    weights = np.full(len(PARTS), 1 / len(PARTS))
    for _ in range(ROUNDS):
        posterior = like * weights
        weights = counts @ (posterior / posterior.sum(axis=1, keepdims=True)) / counts.sum()
    return np.array([1 - weights[0], weights[PARTS >= 0.5].sum(), weights[-1]])


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
