"""The beta-binomial distribution, with the derivatives that a fit needs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class LogTerm(NamedTuple):
    """Log probabilities of cells, with gradients (c, 2) and Hessians (c, 2, 2) by log a, log b."""

    value: Floats
    gradient: Floats
    hessian: Floats


def log_beta_binomial(n: Ints, k: Ints, log_a: float, log_b: float) -> LogTerm:
    """Log of BB(k | n, a, b) for cells (c,). Sums of logarithms, since lgamma loses digits where a is large."""
    a, b, most = math.exp(log_a), math.exp(log_b), int(n.max(initial=0))
    of_a, of_b, of_both = _sums(a, most), _sums(b, most), _sums(a + b, most)
    m = n - k
    ways = _log_choose(n, k)
    by_a = a * (of_a.inverse[k] - of_both.inverse[n])
    by_b = b * (of_b.inverse[m] - of_both.inverse[n])
    mixed = a * b * of_both.square[n]
    hessian = np.empty((len(n), 2, 2))
    hessian[:, 0, 0] = by_a - a * a * (of_a.square[k] - of_both.square[n])
    hessian[:, 1, 1] = by_b - b * b * (of_b.square[m] - of_both.square[n])
    hessian[:, 0, 1] = hessian[:, 1, 0] = mixed
    return LogTerm(ways + of_a.log[k] + of_b.log[m] - of_both.log[n], np.stack([by_a, by_b], axis=1), hessian)


class _Sums(NamedTuple):
    """Sums over i < j of log(x + i), 1 / (x + i) and 1 / (x + i)^2, for j = 0, 1, ..."""

    log: Floats
    inverse: Floats
    square: Floats


def _sums(x: float, most: int) -> _Sums:
    terms = x + np.arange(most)
    sums = np.zeros((3, most + 1))
    np.cumsum([np.log(terms), 1 / terms, 1 / terms**2], axis=1, out=sums[:, 1:])
    return _Sums(*sums)


def _log_choose(n: Ints, k: Ints) -> Floats:
    factorials = _sums(1.0, int(n.max(initial=0))).log
    result: Floats = factorials[n] - factorials[k] - factorials[n - k]
    return result
