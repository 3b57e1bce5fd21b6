"""The share by sites that people have labelled: prediction-powered inference.

The direct estimate takes from canaries and from the sites themselves how often sites of either kind are flagged. Where
a new generation of models is flagged less often, or a register of human pages more often, both can be wrong. n sites
that are drawn at random and labelled cannot. With f the probability of a site to be an LLM site, and Y its label,

    share = l mean f over the m other sites + mean (Y - l f) over the n labelled ones
    variance = l^2 var f / m + var (Y - l f) / n,        l = cov(Y, f) / ((1 + n / m) var f), between 0 and 1

(Angelopoulos, Duchi and Zrnic, PPI++: Efficient prediction-powered inference, arXiv 2311.01453, 2023). Good
probabilities make it narrow, bad ones only as wide as the labels alone. Means are weighted by what a site counts for.
As in `scoring.estimate.share_change`, two supposed residuals of weight 1/2, one of each sign, and tails by Student's t
keep it honest where few labels contradict f.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scoring.estimate.beta_binomial import Floats
from scoring.estimate.definitions import ANY_ARTICLE, EVERY_ARTICLE, SITES
from scoring.estimate.intervals import Interval
from scoring.statistics.shares import quantile_of_sum
from stream.schema.records import SiteState

FEWEST_LABELS = 50  # of sites, for a share: by simulation, see docs


class Review(NamedTuple):
    """Labels of a random sample of sites."""

    llm_shares: Mapping[str, float]  # site -> for each labelled article, whether it is by a language model
    drawn: int  # sites of the sample
    at_ms: int  # when it was drawn
    until_ms: int  # the labels expire then
    too_old: int = 0  # number of sites with expired labels

    @property
    def unlabelled(self) -> float:
        """The share of the drawn sites without a label."""
        return 1 - len(self.llm_shares) / max(self.drawn, len(self.llm_shares), 1)

    def is_llm(self, definition: str) -> dict[str, bool]:
        """Site -> whether it is an LLM site: at least half of its labelled articles are, or any, or every one."""
        least = {ANY_ARTICLE: 1e-9, EVERY_ARTICLE: 1.0}.get(definition, 0.5)
        return {site: share >= least for site, share in self.llm_shares.items()}


class ReviewedShare(NamedTuple):
    """A share in the interval of independent sites, and the effect of each site on it at weight 1."""

    interval: Interval
    moves: Floats


def reviewed_share(
    f: Floats, labels: Floats, confidence: float = 0.95, weights: Floats | None = None
) -> ReviewedShare | None:
    """The share of LLM sites by their probabilities and labels (1, 0; NaN: none); None with too few labels."""
    is_labelled = ~np.isnan(labels)
    n, m = int(is_labelled.sum()), int((~is_labelled).sum())
    if n < FEWEST_LABELS:
        return None
    w = np.ones(len(f)) if weights is None else weights
    v, u = w[is_labelled] / w[is_labelled].mean(), w[~is_labelled] / (w[~is_labelled].mean() if m else 1.0)
    y, likely, others = labels[is_labelled], f[is_labelled], f[~is_labelled]
    power = _power(y, likely, f, v, w, float(u @ u) / max(m, 1) ** 2)
    residuals = y - power * likely
    of_others = power * float(u @ others) / max(m, 1)
    of_labelled = float(v @ residuals) / n
    apart = residuals - of_labelled
    squares, fourths = float(((v * apart) ** 2).sum()) + 1, float(((v * apart) ** 4).sum()) + 1
    spread = float(((u * (power * others - of_others)) ** 2).sum())
    variance = squares / (n * (n - 1)) + (spread / (m * (m - 1)) if m > 1 else 0.0)
    half = quantile_of_sum(squares, fourths, n, confidence) * float(np.sqrt(variance))
    moves = np.empty(len(f))
    moves[is_labelled], moves[~is_labelled] = apart / w[is_labelled].sum(), (power * others - of_others)
    moves[~is_labelled] /= w[~is_labelled].sum() if m else 1.0
    share = min(max(of_others + of_labelled, 0.0), 1.0)
    return ReviewedShare(Interval(share, max(share - half, 0.0), min(share + half, 1.0)), moves)


def moves_by_review(
    posterior: Mapping[tuple[int, int], float], rows: Sequence[SiteState], review: Review, confidence: float
) -> Floats | None:
    """The effect of each of these sites with a scored article on the reviewed share; None with too few labels."""
    is_llm = review.is_llm(SITES)
    likely = np.array([posterior[row.scored, row.flagged] for row in rows])
    labels = np.array([is_llm.get(row.site, np.nan) for row in rows], dtype=float)
    reviewed = reviewed_share(likely, labels, confidence)
    return None if reviewed is None else reviewed.moves


def _power(y: Floats, likely: Floats, f: Floats, v: Floats, w: Floats, of_others: float) -> float:
    """l above: the weight of the probabilities. `of_others` is 1 / m if sites have equal weights."""
    n, squares = len(y), float(v @ v)
    spread = float(np.average((f - np.average(f, weights=w)) ** 2, weights=w**2)) * len(f) / (len(f) - 1)
    if spread <= 1e-12 or not of_others:
        return 0.0
    apart = (y - v @ y / n) * (likely - v @ likely / n)
    together = float(v**2 @ apart) / squares * n / (n - 1)
    return min(max(together / ((1 + of_others * n**2 / squares) * spread), 0.0), 1.0)
