"""The share by sites that people have labelled: prediction-powered inference.

The direct estimate takes from canaries and from the sites themselves how often sites of either kind are flagged. Where
a new generation of models is flagged less often, or a register of human pages more often, both can be wrong. n sites
that are drawn at random and labelled cannot. With f the probability of a site to be an LLM site, and Y its label,

    share = l mean f over all N sites + mean (Y - l f) over the n labelled ones
    variance = l^2 var f / N + var (Y - l f) / n,        l = cov(Y, f) / ((1 + n / N) var f), between 0 and 1

(Angelopoulos, Duchi and Zrnic, PPI++: Efficient prediction-powered inference, arXiv 2311.01453, 2023). Good
probabilities make it narrow, bad ones only as wide as the labels alone. As in `scoring.rates.share_change`, two
supposed residuals of weight 1/2, one of each sign, and tails by Student's t keep it honest where few labels contradict
f.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from scoring.rates.definitions import ANY_ARTICLE, EVERY_ARTICLE, SITES
from scoring.rates.intervals import Z95, Interval
from scoring.statistics.shares import degrees_of_freedom, t_quantile

FEWEST_LABELS = 20  # of sites, for a share by them


class Review(NamedTuple):
    """Labels of a random sample of sites."""

    llm_shares: Mapping[str, float]  # site -> of its labelled articles those by a language model
    at_ms: int  # of the newest label
    until_ms: int  # the labels are too old from then on

    def is_llm(self, definition: str = SITES) -> dict[str, bool]:
        """Site -> whether it is an LLM site: at least half of its labelled articles are, or any, or every one."""
        least = {SITES: 0.5, ANY_ARTICLE: 1e-9, EVERY_ARTICLE: 1.0}[definition]
        return {site: share >= least for site, share in self.llm_shares.items()}


def reviewed_share(likely: Mapping[str, float], is_llm: Mapping[str, bool], confidence: float) -> Interval | None:
    """The share of LLM sites among those of `likely` (site -> probability); None with too few labels of them."""
    labelled = sorted(is_llm.keys() & likely.keys())
    n, sites = len(labelled), len(likely)
    if n < FEWEST_LABELS:
        return None
    every = np.fromiter(likely.values(), np.float64, sites)
    f = np.array([likely[site] for site in labelled])
    y = np.array([is_llm[site] for site in labelled], dtype=np.float64)
    spread = float(every.var(ddof=1))
    power = float(np.cov(y, f)[0, 1]) / ((1 + n / sites) * spread) if spread > 1e-12 else 0.0
    power = min(max(power, 0.0), 1.0)
    residuals = y - power * f
    share = min(max(power * float(every.mean()) + float(residuals.mean()), 0.0), 1.0)
    apart = residuals - residuals.mean()
    squares, fourths = float((apart**2).sum()) + 1, float((apart**4).sum()) + 1
    degrees = round(degrees_of_freedom(squares, fourths, n), 1)
    variance = power**2 * spread / sites + squares / (n * (n - 1))
    half = NormalDist().inv_cdf((1 + confidence) / 2) * t_quantile(degrees) / Z95 * float(np.sqrt(variance))
    return Interval(share, max(share - half, 0.0), min(share + half, 1.0))
