"""The extractor `resiliparse`: several times as fast as Trafilatura, and its text is flat.

J. Bevendorff, B. Stein, M. Hagen and M. Potthast, "Elastic ChatNoir: search engine for the ClueWeb and the Common
Crawl", ECIR 2018. Its main-content rules leave lists out, and its time grows with the square of how deeply `div`s are
nested: the time limit of a worker is what bounds it.
"""

from __future__ import annotations

from resiliparse.extract.html2text import extract_plain_text

from filters.extraction.blocks import Block, BlockKind, pack
from filters.extraction.interface import ExtractError, Extraction
from filters.settings import MeasureSettings

_TRIED = ("plain",)


def by_resiliparse(html: str, settings: MeasureSettings) -> Extraction:  # noqa: ARG001  # as every extractor
    """Main text, a paragraph a line; what of it is link, code, list or table is unknown."""
    plain = extract_plain_text(
        html, preserve_formatting=True, main_content=True, list_bullets=False, alt_texts=False, comments=False
    )
    lines = [line for line in (" ".join(line.split()) for line in plain.split("\n")) if line]
    if not lines:
        return Extraction(error=ExtractError.NO_TEXT, tried=_TRIED)
    rows = [Block(BlockKind.PARAGRAPH, len(line), 0, 0) for line in lines]
    return Extraction("\n".join(lines), pack(rows), "plain", "", None, _TRIED)
