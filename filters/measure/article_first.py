"""The extractor `auto`: the text by Trafilatura, or that of `blocks` where it is no article by the article model.

The shipped model decides, by the measures that JUDGE has of a text. So a page that a ruleset keeps as an article for
its first text keeps that text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from filters.articles.model import shipped_model
from filters.extraction.interface import Extraction
from filters.quality.measures import measure_quality
from filters.structure.names import BLANKS, MEASURES, Measures
from stream.schema.records import Features

LEAST_PROBABILITY = 0.2
"""Of an article, for the first text to stay: the largest tenth at which no source's F1 is clearly below Trafilatura's,
out of fold and with the source left out. At .3 that of blogs, `dragnet`, is (-.007, from -.014 to -.000)."""


def article_or_other(
    first: Extraction, structure: Measures, tokenizer: str, other_of: Callable[[], Extraction]
) -> Extraction:
    """The first text if it is an article; else the other one, if there is one. Most pages need no other."""
    quality = measure_quality(first.text, tokenizer) if first.text else {}
    features = Features(
        id="",
        site="",
        page_id="",
        url="",
        epoch="",
        extract_error=first.error,
        blocks=first.blocks,
        measures=size_measures(first),
        quality=quality,
        structure=in_order(structure, None if first.error else first.text),
    )
    model = shipped_model()
    logits = model.logits(features)
    probability = model.probability(logits) if logits else 0.0
    first = replace(first, quality=quality, first_article=probability)
    if probability > LEAST_PROBABILITY:
        return first
    other = other_of()
    tried = first.tried + other.tried
    if other.error:
        return replace(first, tried=tried, expected_f1=other.expected_f1)
    return replace(other, tried=tried, first_article=probability)


def size_measures(extracted: Extraction) -> dict[str, float | str | None]:
    """The measures of a text's size, and of its links and code."""
    return {
        "tokens": float(len(extracted.text.split())),
        "chars": float(len(extracted.text)),
        "link_code_share": extracted.link_code_share,
    }


def in_order(structure: Measures, text: str | None) -> list[float | None]:
    """The structure measures in the order of MEASURES; empty if the page was not parsed. None: text unknown."""
    if not structure:
        return []
    size = structure["page_bytes"]
    main_bytes = None if text is None else len(text.encode("utf-8", "replace").translate(None, BLANKS))
    known = {**structure, "main_share": min(main_bytes / size, 1.0) if size and main_bytes is not None else None}
    return [None if (value := known.get(name)) is None else float(f"{value:.4g}") for name in MEASURES]
