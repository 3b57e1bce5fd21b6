"""Rounds computed numbers, so that they are the same on every processor.

BLAS and the mathematical library choose their code by the processor, which changes the last bits of a fit or a score,
and so a digest. So computed numbers are rounded before they are hashed, written or compared with a threshold. Two
results on either side of a rounding boundary still differ: one in 100,000 where results agree to 11 digits and 6 are
kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SCORE_DIGITS = 6
"""Significant digits of a pair's score, of the slope of a curve, and of the numbers of a calibration's report."""

WEIGHT_DIGITS = 9
"""Significant digits of the scale and the intercept of weights."""

OFFSET_PLACES = 6
"""Digits after the point of a curve's offset, log odds: large where the scores' zero is far off, and then exact."""


def significant(number: float, digits: int) -> float:
    """The number rounded to this many significant digits."""
    return float(f"{number:.{digits}g}")


def each_float(value: Any, change: Callable[[float], float]) -> Any:
    """Builtins (as of `msgspec.to_builtins`) with every float changed, at any depth."""
    if isinstance(value, float):
        return change(value)
    if isinstance(value, dict):
        return {key: each_float(item, change) for key, item in value.items()}
    return [each_float(item, change) for item in value] if isinstance(value, list) else value
