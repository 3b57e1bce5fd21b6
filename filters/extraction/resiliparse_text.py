"""The extractor `resiliparse`: one line per paragraph; links, code and lists are unknown.

Its time grows with the square of the `div` nesting; the worker's time limit bounds it. J. Bevendorff et al., "Elastic
ChatNoir", ECIR 2018.
"""

from __future__ import annotations

from typing import Any

from resiliparse.extract.html2text import extract_plain_text

from filters.extraction.blocks import Block, BlockKind, pack
from filters.extraction.interface import ExtractError, Extraction


def by_resiliparse(html: str, tree: Any) -> Extraction:  # noqa: ARG001  # as every extractor
    """Extract the main text of a page."""
    plain = extract_plain_text(
        html, preserve_formatting=True, main_content=True, list_bullets=False, alt_texts=False, comments=False
    )
    lines = [line for line in (" ".join(line.split()) for line in plain.split("\n")) if line]
    if not lines:
        return Extraction(error=ExtractError.NO_TEXT, tried=("plain",))
    rows = [Block(BlockKind.PARAGRAPH, len(line), 0, 0) for line in lines]
    return Extraction("\n".join(lines), pack(rows), "plain", "", None, ("plain",))
