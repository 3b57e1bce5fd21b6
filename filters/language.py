"""Which language a text is in, offline: py3langid, a fork of langid.py (M. Lui and T. Baldwin, ACL 2012)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

SAMPLE_CHARS = 400
"""Characters looked at first, from the middle of the text: a whole text costs a third of its extraction."""

SURE = 0.9
"""Probability below which more of the text is looked at. Of 1,060 real pages, 6 were called otherwise by their sample
than by their whole text, all of them with less than .7."""

LIMIT_CHARS = 8_000
"""Characters looked at where the sample is not enough, from the middle of the text."""


def identify(text: str) -> tuple[str | None, float]:
    """ISO 639 code and probability (0..1, normalised over all languages); (None, 0.0) for text without letters.

    The model is part of the package and is loaded at the first call (.4 s).
    """
    if not any(map(str.isalpha, text)):
        return None, 0.0
    code, probability = _identifier().classify(_middle(text, SAMPLE_CHARS))
    if probability < SURE and len(text) > SAMPLE_CHARS:
        code, probability = _identifier().classify(_middle(text, LIMIT_CHARS))
    return str(code), float(probability)


def _middle(text: str, chars: int) -> str:
    start = max(0, (len(text) - chars) // 2)
    return text[start : start + chars]


@lru_cache(maxsize=1)
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
