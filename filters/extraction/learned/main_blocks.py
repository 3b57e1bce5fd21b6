"""The extractor `blocks`: the text blocks of a page that a learned classifier takes for main text.

Trafilatura runs as well if the expected F1 of its text is low or there is next to no text, as with embedded data.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from typing import Any

from filters.extraction.blocks import Block, link_code_share, pack
from filters.extraction.interface import ExtractError, Extraction
from filters.extraction.learned.model import BlockModel, best_blocks
from filters.extraction.learned.page_blocks import page_blocks
from filters.settings import MeasureSettings

_LEAST_F1 = 0.6
_LEAST_WORDS = 25
_MODE = "blocks"


def by_blocks(model: BlockModel, html: str, tree: Any, settings: MeasureSettings) -> Extraction:
    """Extract the main text of a tree. Raises ParseFailed."""
    page = page_blocks(tree)
    found = Extraction(error=ExtractError.NO_TEXT, tried=(_MODE,), expected_f1=0.0)
    if page is not None:
        kept, f1 = best_blocks(model.probabilities(page), page.words)
        if kept.any():
            columns = (column[kept].tolist() for column in (page.kind, page.chars, page.link_chars, page.code_chars))
            rows = [Block(*row) for row in zip(*columns, strict=True)]
            text = "\n".join(compress(page.lines, kept.tolist()))
            found = Extraction(text, pack(rows), _MODE, "", link_code_share(rows), (_MODE,), expected_f1=f1)
            if f1 >= _LEAST_F1 and page.words[kept].sum() >= _LEAST_WORDS:
                return found
    from filters.extraction.trafilatura_text import by_trafilatura  # takes half a second

    other = by_trafilatura(html, tree, settings)
    return replace(other, tried=(_MODE, *other.tried), expected_f1=found.expected_f1)
