"""AUROC, the probability that an LLM text lies above a human one, ties counting half: Mann and Whitney's statistic."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def share_below(values: Numbers, others: Numbers) -> Numbers:
    """Of each value, the share of `others` below it, equal ones counting half; there is at least one other."""
    ordered = np.sort(others)
    ranks = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return np.asarray(ranks / (2 * len(ordered)))


def auroc(human: Numbers, llm: Numbers) -> float | None:
    """Area under the ROC curve of numbers of which larger look more like llm. None without both."""
    return float(share_below(llm, human).mean()) if len(human) and len(llm) else None
