"""The block table: the pieces of the main text, with their characters in links and code.

A row is four integers: kind, characters, link characters, code characters. A list item or table cell of several rows
(with a line break, a paragraph, inline code, a nested list, …) has a number, which stands in the kind of its rows, so
that it can be measured as a whole. A ruleset chooses the definition of a block:

- `paragraph`: each row is a block, as in the users' notes.
- `run`: adjacent paragraphs are one block. A heading, list, table, code or quote ends it; a `JOINED` row does not.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import IntEnum, StrEnum
from typing import NamedTuple

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
    """The rows of a packed table. Raises ValueError if its length is not a multiple of a row."""
    try:
        return [Block(*row) for row in _ROW.iter_unpack(table)]
    except struct.error as error:
        raise ValueError(f"truncated block table: {len(table)} bytes, rows have {_ROW.size} bytes") from error


def without_single_numbers(rows: Sequence[Block]) -> list[Block]:
    """The rows, of which those that are a whole item or cell have no number."""
    rows_of = Counter([row.kind >> ITEM_SHIFT for row in rows])
    return [row if rows_of[row.kind >> ITEM_SHIFT] > 1 else row._replace(kind=row.kind & _FLAGS) for row in rows]


def listed_chars(table: bytes) -> list[int]:
    """Characters of each list item and table cell of a packed table; those of a nested list's items are their own.

    A row without a number is an item of its own, but for rows of one line. Raises struct.error for a truncated row.
    """
    numbers = struct.unpack(f"<{len(table) // _ROW.size * 4}I", table)
    of_lines: list[int] = []
    place_of: dict[int, int] = {}
    last_kind = -1
    for flagged, chars in zip(numbers[0::4], numbers[1::4], strict=True):
        kind, number = flagged & KIND_MASK, flagged >> ITEM_SHIFT
        if kind in LISTED:
            joins = flagged & JOINED and kind == last_kind
            place = place_of.setdefault(number, len(of_lines)) if number else len(of_lines) - bool(joins)
            if place == len(of_lines):
                of_lines.append(chars)
            else:
                of_lines[place] += chars
        last_kind = kind
    return of_lines


def columns(table: bytes, definition: Definition) -> tuple[list[int], list[int]]:
    """Kinds without flags, and characters, of all blocks of a packed table. Raises struct.error for a truncated row."""
    numbers = struct.unpack(f"<{len(table) // _ROW.size * 4}I", table)
    flagged_kinds, chars = numbers[0::4], numbers[1::4]
    if definition is Definition.PARAGRAPH:
        return [kind & KIND_MASK for kind in flagged_kinds], list(chars)
    kinds: list[int] = []
    lengths: list[int] = []
    last_kind = -1
    for flagged, length in zip(flagged_kinds, chars, strict=True):
        kind = flagged & KIND_MASK
        if kind == last_kind and (kind == _PARAGRAPH or flagged & JOINED):
            lengths[-1] += length
        else:
            kinds.append(kind)
            lengths.append(length)
            last_kind = kind
    return kinds, lengths


def link_code_share(rows: Iterable[Block]) -> float | None:
    """Share of characters in links or code; None for a table without characters."""
    chars = linked = 0
    for row in rows:
        chars += row.chars
        linked += row.link_chars + row.code_chars
    return linked / chars if chars else None
