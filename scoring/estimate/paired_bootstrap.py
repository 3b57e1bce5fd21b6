r"""The difference of one share in two runs over the same sites, with an interval in which whole sites vary.

Of each site four sums are known: part and whole under A, part and whole under B. Of the rate of LLM sites they are 0 or
1 (is it llm, is it classifiable), of the share of articles they count pages. What is estimated is

    d = sum part_B / sum whole_B - sum part_A / sum whole_A.

Sites are drawn with replacement, each with all four sums, so that what the two runs have in common cancels and the
pages of a site stay together: the paired bootstrap by clusters (Efron and Tibshirani, An Introduction to the Bootstrap,
1993, chapters 8 and 13; Field and Welsh, Bootstrapping clustered data, JRSS B 69, 2007, who show it consistent where
clusters are drawn). The plain percentile interval fails where few sites flip: of 40 sites of which each flips with
probability .01, most samples have no flip, no resample of them has one, and the interval is the point 0 (coverage .32).
Two things correct that:

- *Smoothing.* The sites are drawn from among the observed ones and four supposed ones of weight 1/2 each: of mean size,
  all or nothing of it part under A, and all or nothing under B. So do Agresti and Min (Simple improved confidence
  intervals for comparing matched proportions, Statistics in Medicine 24, 2005) with the four cells of matched
  proportions. The estimate itself is not smoothed.
- *Tails by Student's t.* The quantiles are taken at Phi(-z t_f / t_inf) in place of Phi(-z) (Hesterberg, What teachers
  should know about the bootstrap, The American Statistician 69, 2015), with as many degrees of freedom f as the
  variance is known by: 2 S / (K - 1), K the kurtosis of the sites' influence on d (Satterthwaite 1946), as in
  `scoring.statistics.shares`. Where a few large sites hold most of the pages, this widens the interval.

Studentised intervals were tried and left: they burst where a resample holds no flip. The coverage:
docs/explanation/compare.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scoring.errors import BadParameters
from scoring.statistics.shares import quantile_of_sum

RESAMPLES = 2000
FEWEST_RESAMPLES = 50
FEWEST_SITES = 20  # with fewer sites an interval is not reliable
_CELLS = 100_000  # weights held at a time: the size of a core's cache
_WORTH_CELLS = 16  # sites per distinct row above which counts are drawn per row, and not per site

Numbers = NDArray[np.float64]

_SUPPOSED = np.array([[1, 1, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1], [0, 1, 0, 1]], np.float64)  # part, whole; A, then B
_WEIGHT = 0.5  # of each pseudo-site; `_resampled` draws halves of sites


class PairedChange(NamedTuple):
    """Both shares, their difference b - a, and its interval; low <= difference <= high."""

    a: float
    b: float
    difference: float
    low: float
    high: float


def paired_change(
    sums: Numbers, rng: np.random.Generator, *, resamples: int = RESAMPLES, confidence: float = 0.95, same: bool = False
) -> PairedChange | None:
    """Shares and difference from `sums` [sites, 4]: part and whole under A, part and whole under B, 0 <= part <= whole.

    `same` says that the runs are one by construction: the interval is then the point 0. None where a whole is 0. Raises
    BadParameters, also where runs that are said to be the same are not.
    """
    if sums.ndim != 2 or sums.shape[1] != 4 or not (sums >= 0).all() or (sums[:, ::2] > sums[:, 1::2]).any():
        raise BadParameters("paired sums need 0 <= part <= whole of each site, for both runs")
    if not 0 < confidence < 1 or resamples < FEWEST_RESAMPLES:
        raise BadParameters(
            f"a bootstrap needs {FEWEST_RESAMPLES} resamples and a confidence in (0, 1), not {resamples}, {confidence}"
        )
    sums = sums[(sums[:, 1] > 0) | (sums[:, 3] > 0)]
    total = sums.sum(axis=0)
    if not (total[1] and total[3]):
        return None
    a, b = _shares(total[None, :])
    change = PairedChange(float(a[0]), float(b[0]), float(b[0] - a[0]), 0.0, 0.0)
    if same:
        if a != b:
            raise BadParameters(f"runs that are the same have one share, not {a[0]:g} and {b[0]:g}")
        return change
    drawn = np.concatenate(list(_resampled(sums, total, resamples, rng)))
    drawn = drawn[(drawn[:, 1] > 0) & (drawn[:, 3] > 0)]
    a, b = _shares(drawn)
    part_a, whole_a, part_b, whole_b = total
    influence = (sums[:, 2] - part_b / whole_b * sums[:, 3]) / whole_b
    influence = influence - (sums[:, 0] - part_a / whole_a * sums[:, 1]) / whole_a
    quantile = quantile_of_sum(float((influence**2).sum()), float((influence**4).sum()), len(sums), confidence)
    tail = NormalDist().cdf(-quantile)
    low, high = np.quantile(b - a, [tail, 1 - tail])
    return change._replace(low=min(float(low), change.difference), high=max(float(high), change.difference))


def _shares(sums: Numbers) -> tuple[Numbers, Numbers]:
    return sums[:, 0] / sums[:, 1], sums[:, 2] / sums[:, 3]


def _resampled(sums: Numbers, total: Numbers, resamples: int, rng: np.random.Generator) -> Iterator[Numbers]:
    """Sums over resampled sites [some resamples, 4], until there are `resamples` of them; memory bounded."""
    sites = len(sums)
    supposed = _SUPPOSED * (total / sites)[[1, 1, 3, 3]]  # of mean size
    rows, counts = np.unique(sums, axis=0, return_counts=True)
    if len(rows) * _WORTH_CELLS <= sites:
        rows, weights = np.concatenate([rows, supposed]), np.append(counts, [_WEIGHT] * len(supposed))
        step = max(1, _CELLS // len(rows))
        for start in range(0, resamples, step):
            yield _summed(rng.multinomial(sites, weights / weights.sum(), size=min(step, resamples - start)), rows)
        return
    rows = np.concatenate([sums, supposed])
    step = max(1, _CELLS // len(rows))
    for start in range(0, resamples, step):
        number = min(step, resamples - start)
        drawn = rng.integers(0, 2 * sites + len(_SUPPOSED), size=(number, sites))  # halves of sites: two of each
        drawn = np.where(drawn < 2 * sites, drawn >> 1, drawn - sites)
        drawn += np.arange(number)[:, None] * len(rows)
        yield _summed(np.bincount(drawn.ravel(), minlength=number * len(rows)).reshape(number, -1), rows)


def _summed(times: NDArray[np.int64], rows: Numbers) -> Numbers:
    """Sums of rows with these counts. Not by BLAS, whose threads wait for each other on a busy machine."""
    weights = times.astype(np.float64)
    return np.stack([np.einsum("ij,j->i", weights, np.ascontiguousarray(column)) for column in rows.T], axis=1)
