"""The names of n-gram models. Does not import numpy."""

from __future__ import annotations

from enum import StrEnum

SHIPPED = "english"
"""Name of the model in the package."""
UNLIKELY = 40_000.0
"""Perplexity above which a sentence is unlikely: best on CleanEval, see docs/explanation/perplexity.md."""
DANGER = (
    "Human text without its least likely sentences looks more like a language model's to a detector that divides by"
    " perplexity: measure your detector on human pages before you rely on its scores of such text."
)


class PerplexityMeasure(StrEnum):
    """Measures of a page, where MEASURE has a model."""

    UNLIKELY_SHARE = "unlikely_share"
    SURPRISAL_MEDIAN = "surprisal_median"
