"""How unlikely the sentences of a text are, as measures of a page."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from filters.perplexity.model import NgramModel, load_model
from filters.perplexity.names import UNLIKELY, PerplexityMeasure

_DIGITS = 4


def perplexity_measures(text: str, model: str) -> dict[str, float | None]:
    """Each of PerplexityMeasure by a model of this name; None for a text without words."""
    found = _model(model).surprisals(text)
    has_words = found.words > 0
    if not has_words.any():
        return dict.fromkeys(PerplexityMeasure)
    bits = found.bits()[has_words]
    above = found.above(UNLIKELY)[has_words]
    return {
        PerplexityMeasure.UNLIKELY_SHARE: round(int(above.sum()) / len(above), _DIGITS),
        PerplexityMeasure.SURPRISAL_MEDIAN: round(float(np.median(bits)), _DIGITS),
    }


@lru_cache(maxsize=1)
def _model(name: str) -> NgramModel:
    return load_model(name)
