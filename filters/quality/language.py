"""The language of a text, offline: py3langid, a fork of langid.py (M. Lui and T. Baldwin, ACL 2012).

Chosen by measurement (docs/reference/languages.md). Its time is proportional to the bytes read, so it reads only
passages, spread over the page: a single passage could be a quotation in another language, or code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

Classify = Callable[[str], tuple[str | None, float]]
"""Text to ISO 639 code and probability."""

FIRST_LOOK = (4, 80)  # number of passages, and characters per passage
SECOND_LOOK = (16, 150)  # if the first look is unsure
SURE = 0.95  # a lower probability needs a second look, for example in a page of two languages


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
    """Take `count` passages from the middles of equal parts of the text, or the whole text if it is short."""
    if len(text) <= passages * chars:
        return text
    middles = (len(text) * (2 * part + 1) // (2 * passages) for part in range(passages))
    return " ".join(text[middle - chars // 2 : middle - chars // 2 + chars] for middle in middles)


@lru_cache(maxsize=1)
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
