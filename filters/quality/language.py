"""The language of a text, offline: py3langid, a fork of langid.py (M. Lui and T. Baldwin, ACL 2012).

Chosen by measurement (docs/reference/languages.md). Its time goes with the bytes read, so only passages of a page are
looked at: spread over it, since its middle may be its one quotation in another language, or its code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

Classify = Callable[[str], tuple[str | None, float]]
"""Text to ISO 639 code and probability."""

FIRST_LOOK = (4, 80)  # passages looked at first, and characters of each
SECOND_LOOK = (16, 150)  # where the first look leaves a doubt
SURE = 0.95  # probability below which a second look is taken, as for a page in two languages


def identify(text: str, classify: Classify | None = None) -> tuple[str | None, float]:
    """ISO 639 code and probability (0..1); (None, 0.0) without letters, `zxx` for letters in no language."""
    if not any(map(str.isalpha, text)):
        return None, 0.0
    classify = classify or _identifier().classify
    code, probability = classify(_spread(text, *FIRST_LOOK))
    if probability < SURE and len(text) > FIRST_LOOK[0] * FIRST_LOOK[1]:
        code, probability = classify(_spread(text, *SECOND_LOOK))
    return code, probability


def _spread(text: str, passages: int, chars: int) -> str:
    """So many passages of so many characters, each from the middle of its equal part of the text; or all of it."""
    if len(text) <= passages * chars:
        return text
    middles = (len(text) * (2 * part + 1) // (2 * passages) for part in range(passages))
    return " ".join(text[middle - chars // 2 : middle - chars // 2 + chars] for middle in middles)


@lru_cache(maxsize=1)
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
