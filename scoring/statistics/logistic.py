"""The logistic function: from log odds to a probability, without overflow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BEYOND = 500.0  # log odds at which a probability is 0 or 1 to every digit


def logistic(logit: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """1 / (1 + exp(-logit)), in the shape of `logit`."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logit, -_BEYOND, _BEYOND))))
