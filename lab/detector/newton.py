"""Logistic regression with an L2 penalty on sparse rows, by Newton's method with conjugate gradients.

The same rows give the same bytes on every processor. BLAS and the mathematical library choose their code by the
processor, which changes the last bits. So this uses neither: only additions, multiplications, divisions and roots,
which IEEE 754 defines, in an order that no processor changes.

    minimum of  sum weight_i ln(1 + exp(-y_i m_i)) / sum weight_i + penalty/2 |v|^2,   m = X (scale v) + b, y = 1 or -1

The intercept b has no penalty. A step solves the Newton system loosely at first and closely near the minimum (Nocedal
and Wright, Numerical Optimization, section 7.1). Along a step the loss is convex: where its slope at the end is up by
more than a tenth of the slope down at its start, the step is cut at the slope's secant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MOST_STEPS, _MOST_GRADIENTS = 60, 400
_OVERSHOT = 0.1
_LN2, _TERMS = 0.6931471805599453, 14  # of exp's series, up to ln(2)/2: its rest is below double precision
_BEYOND = 500.0  # log odds at which a probability is 0 or 1 to every digit

Floats = NDArray[np.float64]


class Fit(NamedTuple):
    """The minimum: margins are X vector + intercept."""

    vector: Floats
    intercept: float


def fit_logistic(
    matrix: Any, llm: NDArray[np.bool_], weights: Floats, scale: Floats, *, penalty: float, tolerance: float
) -> Fit:
    """Minimise until the gradient is `tolerance` of that at zero. `matrix` is a scipy.sparse matrix."""
    transposed, weight = matrix.T, weights / weights.sum()

    def spread(way: Floats) -> Floats:
        return np.asarray(matrix @ (scale * way[:-1]) + way[-1])

    def gather(rows: Floats, way: Floats) -> Floats:
        return np.append(scale * (transposed @ rows) + penalty * way[:-1], rows.sum())

    point, margin, first = np.zeros(matrix.shape[1] + 1), np.zeros(matrix.shape[0]), 0.0
    for _ in range(_MOST_STEPS):
        chance = probability(margin)
        gradient = gather(weight * (chance - llm), point)
        length = np.sqrt(_dot(gradient, gradient))
        first = first or length
        if length <= tolerance * first:
            break
        curvature = weight * chance * (1.0 - chance)

        def bend(way: Floats, curvature: Floats = curvature) -> Floats:
            return gather(curvature * spread(way), way)

        step = _solved(bend, -gradient, min(0.3, np.sqrt(length / first)) * length)
        moved, slope, size = spread(step), _dot(gradient, step), 1.0
        while True:
            errors = weight * (probability(margin + size * moved) - llm)
            end = _dot(errors, moved) + penalty * _dot(point[:-1] + size * step[:-1], step[:-1])
            if end <= -_OVERSHOT * slope:
                break
            size *= slope / (slope - end)
        point, margin = point + size * step, margin + size * moved
    return Fit(scale * point[:-1], float(point[-1]))


def _solved(bend: Callable[[Floats], Floats], wanted: Floats, enough: float) -> Floats:
    """The `way` with bend(way) = wanted, up to a rest of the length `enough`, by conjugate gradients."""
    way, rest = np.zeros_like(wanted), wanted
    search, size = rest, _dot(rest, rest)
    for _ in range(_MOST_GRADIENTS):
        bent = bend(search)
        far = size / _dot(search, bent)
        way, rest = way + far * search, rest - far * bent
        before, size = size, _dot(rest, rest)
        if np.sqrt(size) <= enough:
            break
        search = rest + size / before * search
    return way


def probability(logit: Floats) -> Floats:
    """1 / (1 + exp(-logit)), the same bits on every processor."""
    exponent = -np.clip(logit, -_BEYOND, _BEYOND)
    doublings = np.rint(exponent / _LN2)
    rest = exponent - doublings * _LN2
    power = np.ones_like(rest)
    for term in range(_TERMS, 0, -1):
        power = 1.0 + power * rest / term
    return np.asarray(1.0 / (1.0 + np.ldexp(power, doublings.astype(np.int64))))


def _dot(one: Floats, other: Floats) -> float:
    return float((one * other).sum())
