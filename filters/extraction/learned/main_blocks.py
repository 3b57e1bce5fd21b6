"""The extractor `blocks`: the text blocks of a page that a learned classifier takes for main text.

Trafilatura runs instead where they have next to no words, as with embedded data. To run it where the expected F1 is low
as well was measured: on 2,246 labelled pages, out of fold, the mean F1 of six sources is the same.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from typing import Any

from filters.extraction.blocks import ITEM_SHIFT, Block, link_code_share, pack, without_single_numbers
from filters.extraction.interface import ExtractError, Extraction
from filters.extraction.learned.model import BlockModel, best_blocks
from filters.extraction.learned.page_blocks import page_blocks

_LEAST_WORDS = 10
_MODE = "blocks"


def by_blocks(model: BlockModel, html: str, tree: Any) -> Extraction:
    """Extract the main text of a tree. Raises ParseFailed."""
    found = main_blocks(model, tree)
    if not found.error:
        return found
    from filters.extraction.trafilatura_text import by_trafilatura  # takes half a second

    other = by_trafilatura(html, tree)
    return replace(other, tried=(*found.tried, *other.tried), expected_f1=found.expected_f1)


def main_blocks(model: BlockModel, tree: Any) -> Extraction:
    """The text of the blocks that the model takes for main text; an error if they have next to no words."""
    page, expected_f1 = page_blocks(tree), 0.0
    if page is not None:
        kept, expected_f1 = best_blocks(model.probabilities(page), page.words)
        if page.words[kept].sum() >= _LEAST_WORDS:
            kinds = page.kind | page.item << ITEM_SHIFT
            columns = (column[kept].tolist() for column in (kinds, page.chars, page.link_chars, page.code_chars))
            rows = without_single_numbers([Block(*row) for row in zip(*columns, strict=True)])
            text = "\n".join(compress(page.lines, kept.tolist()))
            return Extraction(text, pack(rows), _MODE, "", link_code_share(rows), (_MODE,), expected_f1=expected_f1)
    return Extraction(error=ExtractError.NO_TEXT, tried=(_MODE,), expected_f1=expected_f1)
