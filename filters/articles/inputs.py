"""The inputs of an article model: numbers from a features record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from filters.extraction.blocks import KIND_MASK, ROW_BYTES, BlockKind, refuse_truncated
from filters.quality.names import MEANINGS as QUALITY_MEANINGS
from filters.quality.names import MEASURES as QUALITY
from filters.structure.names import MEANINGS as STRUCTURE_MEANINGS
from filters.structure.names import MEASURES as STRUCTURE
from filters.structure.page_url import url_measures
from stream.schema.packed_features import is_parsed, quality_of, structure_of
from stream.schema.records import Features

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Floats = NDArray[float64]

_LARGE_CHARS = 200
_COLUMNS = 4  # of the block table
_HEADING = int(BlockKind.HEADING)
_SHOWN_KINDS = [int(BlockKind.ITEM), int(BlockKind.CELL), int(BlockKind.CODE)]
_C4_WORDS = QUALITY.index("words")
_OF_PAGE = {
    "tokens": "whitespace words",
    "chars": "characters",
    "link_code_share": "characters in links or code / characters",
}
_BLOCKS = {
    "block_chars": "mean characters of blocks",
    "large_block_share": f"characters in paragraphs of at least {_LARGE_CHARS} characters / characters",
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
URL_INPUTS = frozenset(url_measures("//"))
"""Measures of the page's URL. No model learns from them: whether a page has a URL, and of which form, says more about
its collection and its site than about its kind. A model of before may read them."""
LEARNED_INPUTS = tuple(name for name in INPUTS if name not in URL_INPUTS)
"""Names of the inputs that a model learns from."""
UNKNOWN = -1.0
"""The value of an unknown input, below every measure."""


def has_inputs(features: Features) -> bool:
    """Whether a page has a text and a parsed structure. Raises ValueError for a damaged block table."""
    refuse_truncated(features.blocks)
    return is_parsed(features) and not features.extract_error


def inputs_of(pages: Sequence[Features]) -> Floats:
    """The inputs of pages that have them [pages, INPUTS]; UNKNOWN where a page lacks a measure."""
    import numpy as np  # slow to import: JUDGE needs it, most commands do not

    if not pages:
        return np.empty((0, len(INPUTS)))
    numbers = [
        [value if isinstance(value := page.measures.get(name), int | float) else None for name in _OF_PAGE]
        for page in pages
    ]
    inputs = np.hstack(
        [
            np.array(numbers, np.float64),
            _of_blocks([page.blocks for page in pages]),
            _columns([quality_of(page, "c4")[_C4_WORDS : _C4_WORDS + 1] for page in pages], 1),
            _columns([quality_of(page, "main") for page in pages], len(QUALITY)),
            _columns([structure_of(page) for page in pages], len(STRUCTURE)),
        ]
    )
    inputs[np.isnan(inputs)] = UNKNOWN
    return inputs


def _of_blocks(tables: Sequence[bytes]) -> Floats:
    """The inputs of block tables [tables, _BLOCKS], all at once; nan = unknown."""
    import numpy as np

    rows = np.frombuffer(b"".join(tables), "<u4").reshape(-1, _COLUMNS)
    of_page = np.repeat(np.arange(len(tables)), [len(table) // ROW_BYTES for table in tables])
    chars, kinds = rows[:, 1].astype(np.float64), rows[:, 0] & KIND_MASK
    sums = partial(np.bincount, of_page, minlength=len(tables))
    blocks, total = sums(), sums(chars)
    of_kinds = np.bincount(of_page * (KIND_MASK + 1) + kinds, chars, len(tables) * (KIND_MASK + 1))
    with np.errstate(invalid="ignore"):  # 0 / 0 of a page without a character
        return np.column_stack(
            [
                np.where(total, total / blocks, np.nan),
                sums(chars * (chars >= _LARGE_CHARS)) / total,
                np.where(total, sums(kinds == _HEADING) / blocks, np.nan),
                of_kinds.reshape(len(tables), -1)[:, _SHOWN_KINDS] / total[:, None],
            ]
        )


def _columns(rows: Sequence[list[float | None]], length: int) -> Floats:
    """So many columns of values [rows, length]; nan = unknown. Rows of an earlier epoch lack the last ones."""
    import numpy as np

    whole = [row if len(row) == length else [*row, *[None] * length][:length] for row in rows]
    return np.array(whole, np.float64)
