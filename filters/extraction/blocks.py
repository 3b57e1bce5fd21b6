"""The block table: the pieces of the main text, with their characters in links and code.

A row is four integers: kind, characters, link characters, code characters. A list item or table cell of several rows
(with a line break, a paragraph, inline code, a nested list, …) has a number, which stands in the kind of its rows, so
that it can be measured as a whole. A ruleset chooses the definition of a block:

- `paragraph`: each row is a block, as in the users' notes.
- `run`: adjacent paragraphs are one block. A heading, list, table, code or quote ends it; a `JOINED` row does not.
"""

from __future__ import annotations

import operator
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROW = struct.Struct("<4I")
ROW_BYTES = _ROW.size


class BlockKind(IntEnum):
    """The kind of a row of text."""

    PARAGRAPH = 0
    HEADING = 1
    ITEM = 2
    CELL = 3
    CODE = 4
    QUOTE = 5


KIND_MASK = 7
_PARAGRAPH = int(BlockKind.PARAGRAPH)  # comparing enum members is slow
JOINED = 8
"""Flag in a row's kind: the row continues the line of the row before it."""
ITEM_SHIFT = 4
"""The bits of a row's kind from here are the number of its item or cell in the page; 0 = that has no other row."""
_FLAGS = (1 << ITEM_SHIFT) - 1
LISTED = (int(BlockKind.ITEM), int(BlockKind.CELL))


class Block(NamedTuple):
    """A row of the table, or merged rows. `kind` is a BlockKind, with JOINED and the number of its item above it."""

    kind: int
    chars: int
    link_chars: int
    code_chars: int


class Definition(StrEnum):
    """The definition of a block when a page is judged."""

    PARAGRAPH = "paragraph"
    RUN = "run"


def pack(rows: Iterable[Block]) -> bytes:
    """Pack the table for a features record: 16 bytes per row, little-endian."""
    return b"".join(_ROW.pack(*row) for row in rows)


def unpack(table: bytes) -> list[Block]:
    """The rows of a packed table. Raises ValueError for a truncated table."""
    refuse_truncated(table)
    return [Block(*row) for row in _ROW.iter_unpack(table)]


def refuse_truncated(table: bytes) -> None:
    """Raises ValueError if the length is not a multiple of a row."""
    if len(table) % ROW_BYTES:
        raise ValueError(f"truncated block table: {len(table)} bytes, rows have {ROW_BYTES} bytes")


def without_single_numbers(rows: Sequence[Block]) -> list[Block]:
    """The rows, of which those that are a whole item or cell have no number."""
    rows_of = Counter([row.kind >> ITEM_SHIFT for row in rows])
    return [row if rows_of[row.kind >> ITEM_SHIFT] > 1 else row._replace(kind=row.kind & _FLAGS) for row in rows]


class Sizes(NamedTuple):
    """Characters of blocks or items, in the order of their pages."""

    page: NDArray[np.intp]
    chars: NDArray[np.int64]


class SumsByLimit(dict[int, list[int]]):
    """Limit -> characters of each page in the blocks or items that it counts; found when first asked for."""

    def __init__(self, pages: int, sizes: Sizes, counts: Callable[[Any, int], Any]) -> None:
        super().__init__()
        self._pages = pages
        self._sizes = sizes
        self._counts = counts

    def __missing__(self, limit: int) -> list[int]:
        import numpy as np

        page, chars = self._sizes
        # float64 holds the sums: a record has fewer than 2^18 rows of fewer than 2^32 characters
        sums = np.bincount(page, chars * self._counts(chars, limit), self._pages)
        found: list[int] = sums.astype(np.int64).tolist()
        self[limit] = found
        return found


class PageBlocks:
    """The blocks of many pages, measured together; each list has a number for each page.

    A nested list's items have their own rows. A row without a number is an item of its own, but for rows of one line.
    """

    def __init__(self, tables: Sequence[bytes], definition: Definition) -> None:
        """Read packed tables. Raises ValueError for a truncated table."""
        import numpy as np  # slow to import: JUDGE needs it, most commands do not

        for table in tables:
            refuse_truncated(table)
        rows = np.frombuffer(b"".join(tables), "<u4").reshape(-1, 4)
        page = np.repeat(np.arange(len(tables)), [len(table) // ROW_BYTES for table in tables])
        flagged, chars, kind = rows[:, 0], rows[:, 1].astype(np.int64), rows[:, 0] & KIND_MASK
        is_like_last = np.zeros(len(rows), bool)
        is_like_last[1:] = (page[1:] == page[:-1]) & (kind[1:] == kind[:-1])
        goes_on = is_like_last & (flagged & JOINED != 0)

        is_run = definition is Definition.RUN
        starts = np.flatnonzero(~(is_run & (goes_on | is_like_last & (kind == _PARAGRAPH))))
        self.blocks = Sizes(page[starts], np.add.reduceat(chars, starts))

        listed = np.flatnonzero((kind == LISTED[0]) | (kind == LISTED[1]))
        number, of_page = flagged[listed].astype(np.int64) >> ITEM_SHIFT, page[listed]
        _, first, same = np.unique(of_page << 32 | number, return_index=True, return_inverse=True)
        opens = np.where(number, first[same] == np.arange(len(listed)), ~goes_on[listed])
        place = np.cumsum(opens) - 1
        place = np.where(number, place[first[same]], place)
        self.listed = Sizes(of_page[opens], np.bincount(place, chars[listed]).astype(np.int64))

        self._pages = len(tables)
        self.in_large = SumsByLimit(self._pages, self.blocks, operator.ge)
        self.in_small_listed = SumsByLimit(self._pages, self.listed, operator.le)

    @property
    def chars(self) -> list[int]:
        return self.in_large[0]

    @cached_property
    def longest(self) -> list[int | None]:
        """Characters of the longest block; None for a page without blocks."""
        import numpy as np

        longest = np.full(self._pages, -1)
        np.maximum.at(longest, *self.blocks)
        return [None if chars < 0 else chars for chars in longest.tolist()]


def link_code_share(rows: Iterable[Block]) -> float | None:
    """Share of characters in links or code; None for a table without characters."""
    chars = linked = 0
    for row in rows:
        chars += row.chars
        linked += row.link_chars + row.code_chars
    return linked / chars if chars else None
