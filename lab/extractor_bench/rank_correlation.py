"""Whether two metrics put the tools in the same order: Kendall's tau-b and Spearman's rho, with ties."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def kendall(first: ArrayLike, second: ArrayLike) -> float | None:
    """Tau-b of two sequences; None if one of them is constant."""
    signs = [np.sign(np.subtract.outer(*[np.asarray(values, float)] * 2)) for values in (first, second)]
    sizes = [np.abs(of).sum() for of in signs]
    return float((signs[0] * signs[1]).sum() / np.sqrt(sizes[0] * sizes[1])) if all(sizes) else None


def spearman(first: ArrayLike, second: ArrayLike) -> float | None:
    """Rho of two sequences; None if one of them is constant."""
    ranks = [_ranks(np.asarray(values, float)) for values in (first, second)]
    centred = [of - of.mean() for of in ranks]
    sizes = [float(of @ of) for of in centred]
    return float(centred[0] @ centred[1] / np.sqrt(sizes[0] * sizes[1])) if all(sizes) else None


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 0; equal values share the mean of theirs."""
    below = (values[:, None] > values[None]).sum(1)
    same = (values[:, None] == values[None]).sum(1)
    return np.asarray(below + (same - 1) / 2)
