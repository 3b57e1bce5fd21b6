"""The names of n-gram models. Does not import numpy."""

from __future__ import annotations

from enum import StrEnum

SHIPPED = "english"
"""Name of the model in the package."""
UNLIKELY = 8_000.0
"""Perplexity above which a sentence is unlikely, as published for bigrams (M. Fernández-Pichel et al. 2023)."""


class PerplexityMeasure(StrEnum):
    """Measures of a page, where MEASURE has a model."""

    UNLIKELY_SHARE = "unlikely_share"
    SURPRISAL_MEDIAN = "surprisal_median"
