"""A text without its sentences that are too unlikely.

What is left looks more like the text of a language model to a detector that divides by perplexity, as Binoculars does:
see docs/explanation/perplexity.md.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise

import numpy as np

from filters.perplexity.model import Formula, NgramModel, Surprisals
from filters.perplexity.words import Flags, Places


class Unit(StrEnum):
    """What is kept or dropped as a whole; a paragraph is a line."""

    SENTENCE = "sentence"
    PARAGRAPH = "paragraph"
    PAGE = "page"


def fluent_text(
    text: str, model: NgramModel, limit: float, formula: Formula = Formula.INTERPOLATED, unit: Unit = Unit.SENTENCE
) -> str:
    """The text without what is above a perplexity, or has no word. A text that loses nothing stays as it is."""
    parts = parts_of(text, model.surprisals(text, formula), unit)
    return kept_text(text, parts.bounds, parts.above(limit))


def kept_text(text: str, bounds: Places, is_above: Flags) -> str:
    """The text without the parts that are above; a line that keeps a part stays one."""
    if not is_above.any():
        return text
    kept = list[str]()
    for (start, end), goes in zip(pairwise(bounds.tolist()), is_above.tolist(), strict=True):
        part = text[start:end]
        if not goes:
            kept.append(part)
        elif kept and _ends_line(part) and not _ends_line(kept[-1]):
            kept[-1] = f"{kept[-1].rstrip()}\n"
    return "".join(kept).rstrip()


def parts_of(text: str, sentences: Surprisals, unit: Unit) -> Surprisals:
    """The sentences joined to paragraphs, or to one page."""
    if unit == Unit.SENTENCE:
        return sentences
    bounds = sentences.bounds.tolist()
    lines = [place for place in range(1, len(bounds) - 1) if _ends_line(text[bounds[place - 1] : bounds[place]])]
    first = np.array([0, *(lines if unit == Unit.PARAGRAPH else ())], np.intp)
    return Surprisals(
        np.append(sentences.bounds[first], sentences.bounds[-1]),
        np.add.reduceat(sentences.words, first),
        np.add.reduceat(sentences.units, first),
    )


def _ends_line(part: str) -> bool:
    return "\n" in part[len(part.rstrip()) :]
