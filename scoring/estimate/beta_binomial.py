"""The beta-binomial distribution, with the derivatives that a fit needs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_LOG, _INVERSE, _SQUARE = range(3)


class LogTerm(NamedTuple):
    """Log probabilities of cells, with gradients (c, 2) and Hessians (c, 2, 2) by log a, log b."""

    value: Floats
    gradient: Floats
    hessian: Floats


def log_beta_binomial(n: Ints, k: Ints, log_a: float, log_b: float) -> LogTerm:
    """Log of BB(k | n, a, b) for cells (c,). Sums of logarithms, because lgamma loses digits if a is large."""
    a, b, m = math.exp(log_a), math.exp(log_b), n - k
    x, most = np.array([a, b, a + b, 1.0]), int(n.max(initial=0))
    terms = x[:, None] + np.arange(most)
    inverse = 1 / terms
    # sums over i < j of log(x + i), 1 / (x + i) and 1 / (x + i)^2, for j = 0 to `most`: (x, 3, j)
    sums = np.zeros((len(x), 3, most + 1))
    np.cumsum(np.stack([np.log(terms), inverse, inverse * inverse], axis=1), axis=2, out=sums[:, :, 1:])
    of_a, of_b, of_both, of_one = sums
    ways = of_one[_LOG][n] - of_one[_LOG][k] - of_one[_LOG][m]
    by_a = a * (of_a[_INVERSE][k] - of_both[_INVERSE][n])
    by_b = b * (of_b[_INVERSE][m] - of_both[_INVERSE][n])
    hessian = np.empty((len(n), 2, 2))
    hessian[:, 0, 0] = by_a - a * a * (of_a[_SQUARE][k] - of_both[_SQUARE][n])
    hessian[:, 1, 1] = by_b - b * b * (of_b[_SQUARE][m] - of_both[_SQUARE][n])
    hessian[:, 0, 1] = hessian[:, 1, 0] = a * b * of_both[_SQUARE][n]
    return LogTerm(ways + of_a[_LOG][k] + of_b[_LOG][m] - of_both[_LOG][n], np.stack([by_a, by_b], axis=1), hessian)
