"""The inputs of an article model: numbers from a features record."""

from __future__ import annotations

from collections.abc import Mapping

from filters.extraction.blocks import KIND_MASK, BlockKind
from filters.quality.names import MEANINGS as QUALITY_MEANINGS
from filters.quality.names import MEASURES as QUALITY
from filters.structure.names import MEANINGS as STRUCTURE_MEANINGS
from filters.structure.names import MEASURES as STRUCTURE
from stream.schema.records import Features

_LARGE_CHARS = 200
_COLUMNS = 4  # of the block table
_HEADING = int(BlockKind.HEADING)
_SHOWN_KINDS = (int(BlockKind.ITEM), int(BlockKind.CELL), int(BlockKind.CODE))
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


def inputs_of(features: Features) -> list[float | None] | None:
    """The inputs of a page in the order of INPUTS, None = unknown; None for a page without text or parsed structure."""
    if not features.structure or features.extract_error:
        return None
    measures = features.measures
    main, cleaned = features.quality.get("main", []), features.quality.get("c4", [])
    return [
        *[value if isinstance(value := measures.get(name), int | float) else None for name in _OF_PAGE],
        *_of_blocks(features.blocks),
        cleaned[_C4_WORDS] if cleaned else None,
        *_whole(main, len(QUALITY)),
        *_whole(features.structure, len(STRUCTURE)),
    ]


def _of_blocks(table: bytes) -> list[float | None]:
    import numpy as np  # slow to import: JUDGE needs it, most commands do not

    rows = np.frombuffer(table, "<u4").reshape(-1, _COLUMNS)
    chars = rows[:, 1].astype(np.int64)
    total = int(chars.sum())
    if not total:
        return [None] * len(_BLOCKS)
    kinds = rows[:, 0] & KIND_MASK
    of_kind = np.bincount(kinds, chars, len(BlockKind)).tolist()
    return [
        total / len(rows),
        int(chars[chars >= _LARGE_CHARS].sum()) / total,
        int((kinds == _HEADING).sum()) / len(rows),
        *[of_kind[kind] / total for kind in _SHOWN_KINDS],
    ]


def _whole(values: list[float | None], length: int) -> list[float | None]:
    """Values of an earlier epoch lack the last measures."""
    return values if len(values) == length else [*values, *[None] * length][:length]
