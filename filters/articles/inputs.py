"""The inputs of an article model: numbers from a features record."""

from __future__ import annotations

from collections.abc import Mapping

from filters.extraction.blocks import BlockKind, Definition, columns
from filters.quality.names import MEANINGS as QUALITY_MEANINGS
from filters.quality.names import MEASURES as QUALITY
from filters.structure.names import MEANINGS as STRUCTURE_MEANINGS
from filters.structure.names import MEASURES as STRUCTURE
from stream.schema.records import Features

_LARGE_CHARS = 200
_C4_WORDS = QUALITY.index("words")
_OF_PAGE = {
    "tokens": "whitespace words",
    "chars": "characters",
    "link_code_share": "characters in links or code / characters",
}
_BLOCKS = {
    "block_chars": "mean characters of blocks",
    "large_block_share": f"characters in blocks of at least {_LARGE_CHARS} / characters",
    "heading_blocks": "headings / blocks",
    "item_share": "characters in list items / characters",
    "cell_share": "characters in table cells / characters",
    "code_share": "characters in code / characters",
}
MEANINGS: Mapping[str, str] = {
    **_OF_PAGE,
    **_BLOCKS,
    "c4_words": "words of the lines that C4 keeps",
    **QUALITY_MEANINGS,
    **STRUCTURE_MEANINGS,
}
INPUTS = tuple(MEANINGS)
"""Names of all inputs. Blocks are paragraphs; quality is that of the main text."""


def inputs_of(features: Features) -> Mapping[str, float | None]:
    """Name -> value of the inputs of a page with a text and a parsed structure; None = unknown."""
    kinds, chars = columns(features.blocks, Definition.PARAGRAPH)
    of_kind = [0] * len(BlockKind)
    for kind, length in zip(kinds, chars, strict=True):
        of_kind[kind] += length
    total, count = sum(chars), len(chars)
    main, cleaned = features.quality.get("main", []), features.quality.get("c4", [])
    found: dict[str, float | None] = dict(zip(STRUCTURE, features.structure, strict=False))
    found.update(zip(QUALITY, main, strict=False))
    for name in _OF_PAGE:
        value = features.measures.get(name)
        found[name] = value if isinstance(value, int | float) else None
    found["c4_words"] = cleaned[_C4_WORDS] if cleaned else None
    if total:
        found["block_chars"] = total / count
        found["large_block_share"] = sum([length for length in chars if length >= _LARGE_CHARS]) / total
        found["heading_blocks"] = kinds.count(BlockKind.HEADING) / count
        found["item_share"] = of_kind[BlockKind.ITEM] / total
        found["cell_share"] = of_kind[BlockKind.CELL] / total
        found["code_share"] = of_kind[BlockKind.CODE] / total
    return found
