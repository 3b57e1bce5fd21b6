"""The extractor `blocks`: the text blocks of a page that a learned classifier takes for main text.

Trafilatura is asked as well where the classifier is in doubt or finds next to nothing, and for text in embedded data.
"""

from __future__ import annotations

from itertools import compress
from typing import Any

from filters.extraction.blocks import Block, link_code_share, pack
from filters.extraction.interface import ExtractError, Extraction
from filters.extraction.learned.model import best_blocks, load_model
from filters.extraction.learned.page_blocks import page_blocks
from filters.extraction.trafilatura_text import by_trafilatura
from filters.settings import MeasureSettings

_LEAST_F1 = 0.6  # expected
_LEAST_WORDS = 25
MODE = "blocks"


def is_sure(f1: float, words: int) -> bool:
    """Whether a text of so many words with this expected F1 stands without another extractor."""
    return f1 >= _LEAST_F1 and words >= _LEAST_WORDS


def by_blocks(html: str, tree: Any, settings: MeasureSettings) -> Extraction:
    """Extract the main text of a tree. Raises ParseFailed, BadModel."""
    page = page_blocks(tree)
    found = Extraction(error=ExtractError.NO_TEXT, tried=(MODE,))
    if page is not None:
        words = page.first_word[1:] - page.first_word[:-1]
        kept, f1 = best_blocks(load_model(settings.extractor_model).probabilities(page), words)
        if kept.any():
            columns = (column[kept].tolist() for column in (page.kind, page.chars, page.link_chars, page.code_chars))
            rows = [Block(*row) for row in zip(*columns, strict=True)]
            text = "\n".join(compress(page.lines, kept.tolist()))
            found = Extraction(text, pack(rows), MODE, "", link_code_share(rows), (MODE,))
            if is_sure(f1, int(words[kept].sum())):
                return found
    other = by_trafilatura(html, tree, settings)
    if other.error and found.text:
        other = found
    return Extraction(other.text, other.blocks, other.path, other.error, other.link_code_share, (MODE, *other.tried))
