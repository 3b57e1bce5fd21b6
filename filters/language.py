"""Which language a text is in, offline: py3langid, a fork of langid.py (M. Lui and T. Baldwin, ACL 2012)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

SAMPLE_CHARS = 400
"""Characters looked at, from the middle of the text. The whole text costs a third of its extraction, this a
fortieth, and one page in 160 then differs."""


def identify(text: str) -> tuple[str | None, float]:
    """ISO 639-1 code and probability (0..1, normalised over all languages); (None, 0.0) for text without letters.

    The model is part of the package and is loaded at the first call (.4 s).
    """
    start = max(0, (len(text) - SAMPLE_CHARS) // 2)
    sample = text[start : start + SAMPLE_CHARS]
    if not any(map(str.isalpha, sample)):
        return None, 0.0
    code, probability = _identifier().classify(sample)
    return str(code), float(probability)


@lru_cache(maxsize=1)
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
