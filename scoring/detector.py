"""What a detector is, and how one is loaded by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from scoring.errors import UnknownDetector

BUILT_IN = "lite-ngram"


class TextScore(msgspec.Struct, frozen=True, kw_only=True):
    """What a detector says of one text. Where it abstains, score, p_llm and flag are None and `abstain` says why."""

    score: float | None = None  # the detector's own scale
    p_llm: float | None = None  # calibrated probability, where the detector has one
    flag: bool | None = None  # True = looks like a language model's
    abstain: str = ""  # a word: too_short, too_long, few_function_words, …; "" = not abstained
    tokens: int = 0  # tokens that the detector read


class Detector(Protocol):
    """Scores texts. Pure: the same texts give the same scores, in any batch."""

    @property
    def identity(self) -> str:
        """Name, weights and threshold in one string. Scores of two identities are never pooled."""

    @property
    def warning(self) -> str:
        """What must be said wherever its scores show, with its measured error rates."""

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """One TextScore per text, in order. Takes any string; it abstains, with the reason, where it cannot judge."""


def load_detector(name: str = BUILT_IN, weights: Path | None = None) -> Detector:
    """Load a detector by its name; `weights` is a file in place of the one that ships with farmwatch.

    Raises UnknownDetector, or BadWeights.
    """
    loader = _LOADERS.get(name)
    if loader is None:
        raise UnknownDetector(f"no detector is called {name!r}; this farmwatch has: {', '.join(sorted(_LOADERS))}")
    return loader(weights)


def detector_names() -> list[str]:
    """The names that `load_detector` takes."""
    return sorted(_LOADERS)


def _lite_ngram(weights: Path | None) -> Detector:
    from scoring.lite_ngram import LiteNgram  # numpy and the weights: not before they are wanted

    return LiteNgram.load(weights)


_LOADERS: dict[str, Callable[[Path | None], Detector]] = {BUILT_IN: _lite_ngram}
