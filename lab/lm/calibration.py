"""How near the texts of labelled pages come to their main texts without the sentences above each limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from filters.perplexity.fluent import Unit, kept_text, parts_of
from filters.perplexity.model import Formula, NgramModel
from lab.extractor.gold import GoldTexts

CURVE = (1_000, 2_000, 4_000, 6_000, 8_000, 10_000, 12_000, 14_000, 20_000, 40_000, 80_000, 160_000)


class AtLimit(NamedTuple):
    """Mean F1 of words over pages, and what goes of all sentences and of all characters."""

    limit: float | None  # None: nothing goes
    f1: float
    sentences: float
    chars: float


def curve(
    pages: Iterable[tuple[str, str]],
    model: NgramModel,
    formula: Formula,
    unit: Unit = Unit.SENTENCE,
    limits: Sequence[float] = CURVE,
) -> list[AtLimit]:
    """The numbers at each limit, and without one at the end; a page is its text and its labelled main text."""
    every = (*limits, None)
    f1, sentences, chars = ([0.0] * len(every) for _ in range(3))
    total_sentences = total_chars = total = 0
    for text, gold in pages:
        parts, truth = parts_of(text, model.surprisals(text, formula), unit), GoldTexts(gold)
        total += 1
        total_sentences += len(parts.words)
        total_chars += len(text)
        for place, limit in enumerate(every):
            above = parts.above(limit) if limit else None
            kept = text if above is None else kept_text(text, parts.bounds, above)
            f1[place] += truth.hits(kept)[0]
            sentences[place] += 0 if above is None else int(above.sum())
            chars[place] += len(text) - len(kept)
    return [
        AtLimit(limit, f1[place] / total, sentences[place] / total_sentences, chars[place] / max(total_chars, 1))
        for place, limit in enumerate(every if total else ())
    ]


def best(points: Sequence[AtLimit]) -> AtLimit:
    """The limit with the highest F1, the highest of those alike."""
    return max(reversed(points), key=lambda point: point.f1)
