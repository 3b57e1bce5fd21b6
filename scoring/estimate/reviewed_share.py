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

Where several people err, Y is a chance (`scoring.estimate.labeller_errors`). The variance is then that of draws of the
true labels, as for multiple imputation (Rubin, Multiple Imputation for Nonresponse in Surveys, 1987, 3.1): the mean of
the one above over the draws, and the variance of mean Y among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from scoring.estimate.beta_binomial import Floats
from scoring.estimate.definitions import ANY_ARTICLE, EVERY_ARTICLE, SITES
from scoring.estimate.intervals import Interval
from scoring.estimate.labeller_errors import chances_of_llm
from scoring.statistics.labeller_agreement import nominal_alpha
from scoring.statistics.shares import quantile_of_sum
from stream.schema.records import SiteState

FEWEST_LABELS = 20  # of sites, for a share: by simulation, see docs
_TIE = 0.5
FEWEST_TWICE = 20  # sites with two labellers, for an estimate of their errors
_LEAST = {ANY_ARTICLE: 1e-9, EVERY_ARTICLE: 1.0}  # share of the articles of an LLM site; of other definitions half


class SiteTruths(NamedTuple):
    """Site -> its chance to be an LLM site; and draws of the chances where labellers err, draws by sites."""

    likely: Mapping[str, float]
    chances: Floats | None = None
    tied: Set[str] = frozenset()  # sites that as many call llm as human: they have no label

    def chances_of(self, sites: Sequence[str]) -> Floats | None:
        """The draws of these labelled sites."""
        place = {site: number for number, site in enumerate(self.likely)}
        return None if self.chances is None else self.chances[:, [place[site] for site in sites]]


@dataclass(frozen=True)
class Review:
    """Labels of a random sample of sites."""

    labels: Mapping[str, Mapping[str, float]]  # person -> site -> share of its labelled articles by a language model
    drawn: int  # sites of the sample
    at_ms: int  # when it was drawn
    until_ms: int  # the labels expire then
    too_old: int = 0  # number of sites with expired labels
    _truths: dict[float, SiteTruths] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def sites(self) -> list[str]:
        """The labelled sites, in the order of their labels."""
        return list(dict.fromkeys(site for of_one in self.labels.values() for site in of_one))

    @property
    def unlabelled(self) -> float:
        """The share of the drawn sites without a label."""
        labelled = len(self.sites)
        return 1 - labelled / max(self.drawn, labelled, 1)

    @cached_property
    def twice(self) -> int:
        """The sites with more than one labeller."""
        return int(((~np.isnan(self._votes())).sum(0) > 1).sum())

    @cached_property
    def votes(self) -> dict[str, tuple[int, int]]:
        """Site -> the people who called it llm, and human."""
        votes = self._votes()
        counts = (((votes == kind).sum(0).tolist()) for kind in (1, 0))
        return dict(zip(self.sites, zip(*counts, strict=True), strict=True))

    @cached_property
    def alpha(self) -> float | None:
        """The agreement of the labellers; None if it is not known."""
        return nominal_alpha(votes[~np.isnan(votes)].tolist() for votes in self._votes().T)

    def truths(self, definition: str) -> SiteTruths:
        """The truth of the labelled sites.

        It is the vote of the majority until labellers differ and FEWEST_TWICE sites have two; then the errors of each
        labeller are estimated. Where as many say one as the other, either is as likely, and the interval carries it.
        """
        least = _LEAST.get(definition, 0.5)
        if least not in self._truths:
            votes = self._votes(least)
            means = np.nanmean(votes, axis=0) if votes.size else np.empty(0)
            chances = chances_of_llm(votes) if self.twice >= FEWEST_TWICE and (means % 1).any() else None
            tied = {site for site, mean in zip(self.sites, means, strict=True) if mean == _TIE}
            if chances is None and tied:
                chances = np.where(means == _TIE, _TIE, np.round(means))[np.newaxis]
            likely = np.round(means) if chances is None else chances.mean(0)
            self._truths[least] = SiteTruths(dict(zip(self.sites, likely.tolist(), strict=True)), chances, tied)
        return self._truths[least]

    def _votes(self, least: float = 0.5) -> Floats:
        """Whether at least this share of the articles that a person labelled on a site is by a language model.

        1, 0 or NaN, people by sites.
        """
        shares = [[of_one.get(site, np.nan) for site in self.sites] for of_one in self.labels.values()]
        found = np.array(shares, dtype=float).reshape(len(self.labels), len(self.sites))
        return np.where(np.isnan(found), np.nan, found >= least)


class ReviewedShare(NamedTuple):
    """A share in the interval of independent sites, and the effect of each site on it at weight 1."""

    interval: Interval
    moves: Floats
    widened: float = 1.0  # by this factor, because labellers err


def reviewed_share(
    f: Floats, labels: Floats, confidence: float = 0.95, weights: Floats | None = None, chances: Floats | None = None
) -> ReviewedShare | None:
    """The share of LLM sites by their probabilities and labels (NaN: none); None with too few labels.

    A label is 1, 0, or the chance of an LLM site; `chances` are draws of it for the labelled sites.
    """
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
    of_flags = spread / (m * (m - 1)) if m > 1 else 0.0
    half = quantile_of_sum(squares, fourths, n, confidence) * float(np.sqrt(squares / (n * (n - 1)) + of_flags))
    widened = 1.0
    if chances is not None:
        doubt = float(v**2 @ (chances * (1 - chances)).mean(0))
        squares, fourths = squares + float(v**2 @ (y * (1 - y))), fourths + float(v**4 @ (y * (1 - y)))
        variance = squares / (n * (n - 1)) + of_flags + (float((chances @ v).var()) + doubt) / n**2
        widened = max(quantile_of_sum(squares, fourths, n, confidence) * float(np.sqrt(variance)) / half, 1.0)
        half *= widened
    moves = np.empty(len(f))
    moves[is_labelled], moves[~is_labelled] = apart / w[is_labelled].sum(), (power * others - of_others)
    moves[~is_labelled] /= w[~is_labelled].sum() if m else 1.0
    share = min(max(of_others + of_labelled, 0.0), 1.0)
    return ReviewedShare(Interval(share, max(share - half, 0.0), min(share + half, 1.0)), moves, widened)


def moves_by_review(
    posterior: Mapping[tuple[int, int], float], rows: Sequence[SiteState], review: Review, confidence: float
) -> Floats | None:
    """The effect of each of these sites with a scored article on the reviewed share; None with too few labels."""
    truth = review.truths(SITES).likely
    likely = np.array([posterior[row.scored, row.flagged] for row in rows])
    labels = np.array([truth.get(row.site, np.nan) for row in rows], dtype=float)
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
