"""Intervals of a share that are valid at one look, and at every look while sites come in."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

TIGHTEST_AT = 500  # sites at which the interval of every look is relatively narrowest
PLACES = 9  # the last digits depend on the processor


def every_look(sites: int, confidence: float) -> float:
    """The factor for an interval that is valid at every look while sites come in.

    The asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (Time-uniform central limit
    theory and asymptotic confidence sequences, Annals of Statistics 52, 2024), tightest at TIGHTEST_AT sites.
    """
    alpha = 1 - confidence
    longest = -2 * math.log(alpha)
    sure = sites * (longest + math.log(longest + 1)) / TIGHTEST_AT
    half = math.sqrt(2 * (1 + 1 / sure) * math.log(math.sqrt(1 + sure) / alpha))
    return half / NormalDist().inv_cdf((1 + confidence) / 2)


def ends_of(share: float, low: float, high: float, times: float, every: float) -> dict[str, Any]:
    """Both intervals of a share, `times` as wide, and the one of every look `every` times as wide as that."""
    stretched = {"low": (low, times), "high": (high, times), "look_low": (low, times * every)}
    stretched["look_high"] = (high, times * every)
    return {name: round(_stretched(share, end, by), PLACES) for name, (end, by) in stretched.items()}


def _stretched(share: float, end: float, times: float) -> float:
    """The end of an interval widened by a factor on the scale on which the variance of a share is constant."""
    if times == 1.0:
        return end
    at, at_end = (math.asin(math.sqrt(value)) for value in (share, end))
    return math.sin(min(max(at + times * (at_end - at), 0.0), math.pi / 2)) ** 2
