r"""Shares with honest intervals, where texts come in clusters (the pages of a site) or carry weights.

A share p of k of n independent texts has the exact interval of Clopper and Pearson (Biometrika 26, 1934): from the 2.5%
quantile of Beta(k, n - k + 1) to the 97.5% quantile of Beta(k + 1, n - k). It also covers the true false-positive rate
of a threshold on the (k+1)-th human score, which is distributed as Beta(k + 1, n - k) for any law of the scores (Wilks
1941).

Pages of a site resemble each other, so n pages of C sites are less evidence than n independent texts. Korn and Graubard
(Survey Methodology 24, 1998) keep the exact interval and put the effective number in place of n: with weights w, y = 1
for a hit and p = sum wy / sum w,

    var = C/(C-1) sum over clusters (sum over its texts w (y - p))^2 / (sum w)^2      sites vary, never pages
    n'  = p (1 - p) / var * (t_{n-1} / t_d)^2           never above (sum w)^2 / sum w^2, which is n for equal weights

with Student's t at 97.5%, which widens it further for few sites. The degrees of freedom are d = 2C / (K - 1), at most
C - 1, with K the kurtosis of the clusters' sums (Satterthwaite, Biometrics Bulletin 2, 1946; d = C where they are
normal): where a few sites hold all hits, the others say little of how much sites vary. Where p is 0 or 1 no variance
shows, and n' is the number of clusters.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
_TAIL = (1 - CONFIDENCE) / 2

Numbers = NDArray[np.float64]
Codes = NDArray[np.intp]


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """`count` of `total` texts, their weighted share, and its 95% interval; all None if total is 0."""

    count: int
    total: int
    share: float | None
    low: float | None
    high: float | None


def share(hits: NDArray[np.bool_], clusters: Codes, weights: Numbers | None = None) -> Share:
    """Share of `hits` among texts [n], clustered by `clusters` [n] (equal numbers: one site)."""
    total, count = len(hits), int(hits.sum())
    if not total:
        return Share(count=0, total=0, share=None, low=None, high=None)
    w = np.ones(total) if weights is None else weights
    p = float((w * hits).sum() / w.sum())
    n = effective_number(hits, p, clusters, w)
    low, high = exact_interval(p * n, n)
    return Share(count=count, total=total, share=p, low=min(low, p), high=max(high, p))


def effective_number(hits: NDArray[np.bool_], p: float, clusters: Codes, weights: Numbers) -> float:
    """The number of independent texts that would give the share p with the same precision."""
    n = len(hits)
    kish = float(weights.sum() ** 2 / (weights**2).sum())
    sums = cluster_sums(weights * (hits - p), clusters)
    sites = len(sums)
    if sites == n:
        return kish
    if sites < 2 or not 0 < p < 1:
        return min(kish, float(sites))
    squares = float((sums**2).sum())
    variance = squares * sites / (sites - 1) / float(weights.sum()) ** 2
    degrees = degrees_of_freedom(squares, float((sums**4).sum()), sites)
    few = (t_quantile(n - 1) / t_quantile(degrees)) ** 2
    return max(1.0, min(kish, few * p * (1 - p) / variance)) if variance else kish


def degrees_of_freedom(squares: float, fourths: float, number: int) -> float:
    """Degrees of freedom of a variance, from the sums of squares and fourth powers of its parts; 1 to number - 1."""
    kurtosis = number * fourths / squares**2 if squares else 3.0
    return max(1.0, min(number - 1.0, 2 * number / max(kurtosis - 1, 1e-9)))


def quantile_of_sum(squares: float, fourths: float, number: int, confidence: float = CONFIDENCE) -> float:
    """Student's quantile for the interval of a sum of `number` parts, from the sums of their squares and fourth powers.

    At another confidence than 95% it is the normal quantile, widened by the factor of 95%.
    """
    degrees = round(degrees_of_freedom(squares, fourths, number), 1)  # so that `t_quantile` keeps few
    normal = NormalDist().inv_cdf
    return t_quantile(degrees) * normal((1 + confidence) / 2) / normal(1 - _TAIL)


def cluster_sums(values: Numbers, clusters: Codes) -> Numbers:
    """Sum of `values` in each cluster that occurs."""
    _, codes = np.unique(clusters, return_inverse=True)
    sums: NDArray[Any] = np.bincount(codes, values)
    return sums.astype(np.float64)


@lru_cache(maxsize=4096)
def exact_interval(count: float, total: float) -> tuple[float, float]:
    """Clopper and Pearson's 95% interval; `count` and `total` need not be whole. total > 0."""
    low = 0.0 if count <= 0 else _beta_quantile(_TAIL, count, total - count + 1)
    high = 1.0 if count >= total else _beta_quantile(1 - _TAIL, count + 1, total - count)
    return low, high


@lru_cache(maxsize=4096)
def t_quantile(degrees: float) -> float:
    """Student's t at 97.5%: |t| > x has probability I_{d/(d+x^2)}(d/2, 1/2)."""
    x = _beta_quantile(2 * _TAIL, degrees / 2, 0.5)
    return math.sqrt(degrees * (1 - x) / x)


def _beta_quantile(probability: float, a: float, b: float) -> float:
    """The point at which the distribution function of Beta(a, b) reaches `probability`, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if incomplete_beta(a, b, middle) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function I_x(a, b), the distribution function of Beta(a, b); a, b > 0.

    Its continued fraction (DLMF 8.17.22) by Lentz's method, on the side of the mean where it converges fast.
    """
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x) - math.log(a)
    )
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    value = d
    for m in range(1, 10_000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 + step * d, 1 + step / c
            d = 1 / (d if abs(d) > tiny else tiny)
            c = c if abs(c) > tiny else tiny
            value *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return front * value
