"""From an extracted tree to lines of text and the rows of the block table.

The tree is Trafilatura's `.body`: p, head, list/item, table/row/cell, quote, code, hi, ref, lb, nested divs, and text
directly in the body or after an element.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import Any

from lxml import etree

from filters.extraction.blocks import ITEM_SHIFT, JOINED, LISTED, Block, BlockKind, without_single_numbers
from stream.text.invisible import without_invisible

_KINDS = {
    "head": int(BlockKind.HEADING),
    "item": int(BlockKind.ITEM),
    "cell": int(BlockKind.CELL),
    "code": int(BlockKind.CODE),
    "quote": int(BlockKind.QUOTE),
}
_INLINE = frozenset({"hi", "ref", "del", "graphic", "a", "span", "figure"})
_LINKS = frozenset({"ref", "a"})
_RUNNING = frozenset({"p", "item", "cell", "head", "hi", "ref", "del"})  # elements with inline children
_PLAIN, _LINK, _CODE = 0, 1, 2


def read(body: Any) -> tuple[str, list[Block]]:
    """Read main text and block table from an lxml element. Line feeds in its text are layout. Does not recurse."""
    lines = _Lines()
    kind, mode, items = int(BlockKind.PARAGRAPH), _PLAIN, 0
    around: list[tuple[int, int, bool, bool]] = []  # the state to restore at the end of each open element
    for event, element in etree.iterwalk(body, events=("start", "end")):
        if event == "start":
            tag = element.tag
            soft = tag in _INLINE
            embedded = not soft and (tag == "code" or tag == "quote") and _stands_in_line(element, lines)
            around.append((kind, mode, soft, embedded))
            if embedded:
                lines.split()
            elif not soft:
                lines.end()
                kind = _KINDS.get(tag, kind)
                if kind in LISTED:
                    items += 1
                    kind |= items << ITEM_SHIFT
            if tag == "code":
                mode = _CODE
            elif tag in _LINKS and mode == _PLAIN:
                mode = _LINK
            text = element.text
        else:
            kind, mode, soft, embedded = around.pop()
            if embedded:
                lines.split()
            elif not soft:
                lines.end()
            text = element.tail if around else None
        if text:
            lines.add(text, kind, mode)
    lines.end()
    return "\n".join(lines.texts), without_single_numbers(lines.rows)


def read_flat(body: Any) -> tuple[str, list[Block]]:
    """Read a flat fallback's body. Its line feeds are the line breaks of the page's text."""
    lines = _Lines()
    for paragraph in body:
        for line in (paragraph.text or "").split("\n"):
            lines.add(line, BlockKind.PARAGRAPH, _PLAIN)
            lines.end()
    return "\n".join(lines.texts), lines.rows


def _stands_in_line(element: Any, lines: _Lines) -> bool:
    """Whether this is code or a quotation in running text: its edges end blocks, but not lines."""
    if "\n" in (element.text or "") or any(child.tag not in _INLINE for child in element):
        return False
    parent = element.getparent()
    in_text = parent is not None and parent.tag in _RUNNING
    return in_text or (element.tag == "code" and lines.begun)


class _Lines:
    """Collects pieces of text into fragments and fragments into lines. A fragment becomes a row of the block table."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.rows: list[Block] = []
        self._fragments: list[tuple[int, list[tuple[int, str]]]] = []
        self._open = False

    @property
    def begun(self) -> bool:
        return bool(self._fragments)

    def add(self, text: str, kind: int, mode: int) -> None:
        """Append text of one mode (plain, link, code) to the line. A line never begins with whitespace."""
        text = without_invisible(text)  # as in the strings of embedded data
        if self._open:
            self._fragments[-1][1].append((mode, text))
        elif self._fragments or not text.isspace():
            self._fragments.append((kind, [(mode, text)]))
            self._open = True

    def split(self) -> None:
        self._open = False

    def end(self) -> None:
        if not self._fragments:
            return
        self._open = False
        joined = 0
        text = ""
        for kind, pieces in self._fragments:
            text = " ".join((pieces[0][1] if len(pieces) == 1 else "".join([text for _, text in pieces])).split())
            if text:
                self.rows.append(_row(kind | joined, len(text), pieces))
                joined = JOINED
        if joined:
            if len(self._fragments) > 1:
                text = " ".join("".join([text for _, pieces in self._fragments for _, text in pieces]).split())
            self.texts.append(text)
        self._fragments.clear()


def _row(kind: int, chars: int, pieces: list[tuple[int, str]]) -> Block:
    """The row of a fragment with `chars` characters; neighbouring pieces of one mode are counted together."""
    if len(pieces) == 1:
        mode = pieces[0][0]
        return Block(kind, chars, chars if mode == _LINK else 0, chars if mode == _CODE else 0)
    counts = [0, 0, 0]
    for mode, group in groupby(pieces, _mode):
        if mode != _PLAIN:
            counts[mode] += len(" ".join("".join([text for _, text in group]).split()))
    return Block(kind, chars, counts[_LINK], counts[_CODE])


_mode = itemgetter(0)
