"""The block table: which pieces the main text has, and how much of each is link or code.

A row is four integers: kind, characters, link characters, code characters. When a page is judged, a block is

- `paragraph`: each row, as the users' notes have it.
- `run`: adjacent paragraphs merged until a heading, list, table, code or quote; `JOINED` rows do not end them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntEnum, StrEnum
from typing import NamedTuple

_ROW = struct.Struct("<4I")


class BlockKind(IntEnum):
    """The kind of a row of text."""

    PARAGRAPH = 0
    HEADING = 1
    ITEM = 2
    CELL = 3
    CODE = 4
    QUOTE = 5


_KIND_MASK = 7
_PARAGRAPH = int(BlockKind.PARAGRAPH)  # an enum's members compare slowly
JOINED = 8
"""Flag on a row's kind: the row continues the line of the row before it."""


class Block(NamedTuple):
    """A row of the table, or rows merged. `kind` is a Kind, with JOINED added where it continues a line."""

    kind: int
    chars: int
    link_chars: int
    code_chars: int


class Definition(StrEnum):
    """The rows that make one block when a page is judged."""

    PARAGRAPH = "paragraph"
    RUN = "run"


def pack(rows: Iterable[Block]) -> bytes:
    """The table in the form of a features record: 16 bytes a row, little-endian."""
    return b"".join(_ROW.pack(*row) for row in rows)


def unpack(table: bytes) -> list[Block]:
    """Rows of a packed table. Raises ValueError when its length is no multiple of a row."""
    try:
        return [Block(*row) for row in _ROW.iter_unpack(table)]
    except struct.error as error:
        raise ValueError(f"a block table of {len(table)} bytes is cut off: rows have {_ROW.size} bytes") from error


def columns(table: bytes, definition: Definition) -> tuple[list[int], list[int]]:
    """Kinds, without flags, and characters of all blocks of a packed table. Raises struct.error for a cut-off row."""
    numbers = struct.unpack(f"<{len(table) // _ROW.size * 4}I", table)
    flagged_kinds, chars = numbers[0::4], numbers[1::4]
    if definition is Definition.PARAGRAPH:
        return [kind & _KIND_MASK for kind in flagged_kinds], list(chars)
    kinds: list[int] = []
    lengths: list[int] = []
    last_kind = -1
    for flagged, length in zip(flagged_kinds, chars, strict=True):
        kind = flagged & _KIND_MASK
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
