"""From an extracted tree to lines of text and the rows of the block table.

The tree is Trafilatura's `.body`: p, head, list/item, table/row/cell, quote, code, hi, ref, lb, nested divs, and text
that stands directly in the body or after an element.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from lxml import etree

from filters.blocks import JOINED, Block, Kind

_INLINE = frozenset({"hi", "ref", "del", "graphic", "a", "span", "figure"})
_KINDS = {"head": Kind.HEADING, "item": Kind.ITEM, "cell": Kind.CELL, "code": Kind.CODE, "quote": Kind.QUOTE}
_RUNNING = frozenset({"p", "item", "cell", "head", "hi", "ref", "del"})  # elements whose children stand in a line
_PLAIN, _LINK, _CODE = 0, 1, 2


def read(body: Any) -> tuple[str, list[Block]]:
    """Main text (one line per block boundary that breaks a line) and the rows of its block table.

    `body` is an lxml element. Nothing is recursive, so depth costs no stack.
    """
    lines = _Lines()
    kinds = [Kind.PARAGRAPH]
    links = codes = 0
    inline: list[bool] = []
    for event, element in etree.iterwalk(body, events=("start", "end")):
        tag = element.tag
        soft = tag in _INLINE
        if event == "start":
            embedded = not soft and tag in ("code", "quote") and _stands_in_line(element, lines)
            inline.append(embedded)
            if embedded:
                lines.split()
                kinds.append(kinds[-1])
            elif not soft:
                lines.end()
                kinds.append(_KINDS.get(tag, kinds[-1]))
            else:
                kinds.append(kinds[-1])
            links += tag in ("ref", "a")
            codes += tag == "code"
            if element.text:
                lines.add(element.text, kinds[-1], _CODE if codes else _LINK if links else _PLAIN)
            continue
        embedded = inline.pop()
        kinds.pop()
        links -= tag in ("ref", "a")
        codes -= tag == "code"
        if embedded:
            lines.split()
        elif not soft:
            lines.end()
        if element.tail and element is not body:
            lines.add(element.tail, kinds[-1], _CODE if codes else _LINK if links else _PLAIN)
    lines.end()
    return "\n".join(lines.texts), lines.rows


def _stands_in_line(element: Any, lines: _Lines) -> bool:
    """True for code or a quotation within running text: its edges are block boundaries, but no line breaks."""
    if "\n" in (element.text or "") or any(child.tag not in _INLINE for child in element):
        return False
    parent = element.getparent()
    in_text = parent is not None and parent.tag in _RUNNING
    return in_text or (element.tag == "code" and lines.begun())


class _Lines:
    """Collects pieces of text into fragments, fragments into lines; a fragment becomes a row."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.rows: list[Block] = []
        self._fragments: list[tuple[Kind, list[tuple[int, str]]]] = []
        self._open = False

    def add(self, text: str, kind: Kind, mode: int) -> None:
        """Text of one mode (plain, link, code) at the end of the line."""
        if not self._open:
            self._fragments.append((kind, []))
            self._open = True
        self._fragments[-1][1].append((mode, text))

    def split(self) -> None:
        """A block boundary within the line."""
        self._open = False

    def begun(self) -> bool:
        """True when the line has visible text."""
        return any(not text.isspace() for _, pieces in self._fragments for _, text in pieces)

    def end(self) -> None:
        """A line break: the fragments become rows, the line becomes text."""
        if not self._fragments:
            return
        self._open = False
        joined = 0
        for kind, pieces in self._fragments:
            row = _row(kind | joined, pieces)
            if row is not None:
                self.rows.append(row)
                joined = JOINED
        if joined:
            self.texts.append(_squeezed("".join(text for _, pieces in self._fragments for _, text in pieces)))
        self._fragments.clear()


def _row(kind: int, pieces: list[tuple[int, str]]) -> Block | None:
    if len(pieces) == 1:
        mode, text = pieces[0]
        chars = len(_squeezed(text))
        return Block(kind, chars, chars * (mode == _LINK), chars * (mode == _CODE)) if chars else None
    chars = len(_squeezed("".join(text for _, text in pieces)))
    if not chars:
        return None
    counts = [0, 0, 0]
    for mode, text in _by_mode(pieces):
        counts[mode] += len(_squeezed(text))
    return Block(kind, chars, counts[_LINK], counts[_CODE])


def _by_mode(pieces: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    for mode, group in groupby(pieces, key=lambda piece: piece[0]):
        yield mode, "".join(text for _, text in group)


def _squeezed(text: str) -> str:
    return " ".join(text.split())
