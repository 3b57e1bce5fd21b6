"""The visible text of a parsed page, with a mark where an element begins or ends, and its lines.

Lines are cut at the edges of block elements and at `br`. A line of the main text is one of them, if the extractor took
it whole. An XSLT takes half the time of a walk.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
from lxml import etree

from filters.structure.names import BLANKS, UNSEEN

INLINE = (
    *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img"),
    *("ins", "kbd", "label", "mark", "nobr", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong"),
    *("sub", "sup", "time", "tt", "u", "var", "wbr"),
)
_RUNNING = (
    *("p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "td", "th", "dt", "dd", "br", "hr", "figure"),
    *("figcaption", "picture", "source", "video", "audio", "center", "caption", "address", "details"),
)
_WIDGETS = ("button", "head", "iframe", "math", "object", "option", "select", "svg", "textarea")


class Mark(IntEnum):
    """What begins or ends at a mark: a character of private use. Those before END cut lines."""

    END_OF_BLOCK = 0x10FFF0
    BLOCK = 0x10FFF1
    RUNNING = 0x10FFF2  # a block that is a part of one text
    WIDGET = 0x10FFF3  # a block without prose
    END = 0x10FFF4
    INLINE = 0x10FFF5
    LINK = 0x10FFF6
    UNSEEN = 0x10FFF7  # its text is left out


Characters = npt.NDArray[np.uint32]

_EDGE = chr(Mark.END_OF_BLOCK)
_MARK_BYTES, _SAME_BYTES = len(_EDGE.encode()), _EDGE.encode()[:-1]


def _template(pattern: str, start: Mark, end: Mark, inside: str = "<xsl:apply-templates/>") -> str:
    return f'<xsl:template match="{pattern}">{chr(start)}{inside}{chr(end)}</xsl:template>'


_MARKED = etree.XSLT(
    etree.XML(
        '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:output method="text"/>'
        + _template("*", Mark.BLOCK, Mark.END_OF_BLOCK)
        + _template("|".join(_RUNNING), Mark.RUNNING, Mark.END_OF_BLOCK)
        + _template("|".join(_WIDGETS), Mark.WIDGET, Mark.END_OF_BLOCK)
        + _template("|".join(INLINE[1:]), Mark.INLINE, Mark.END)
        + _template(INLINE[0], Mark.LINK, Mark.END)
        + _template(
            "|".join(UNSEEN),
            Mark.UNSEEN,
            Mark.END,
            f'<xsl:for-each select=".//*">{chr(Mark.UNSEEN)}{chr(Mark.END)}</xsl:for-each>',
        )
        + "</xsl:stylesheet>"
    )
)


def visible_text(root: Any) -> bytes:
    """The text of a tree that a reader sees, with two marks for each element; the tree stays."""
    return bytes(_MARKED(root))


def visible_bytes(visible: bytes) -> int:
    """Bytes of a visible text without white space and marks."""
    return len(visible.translate(None, BLANKS)) - _MARK_BYTES * visible.count(_SAME_BYTES)


def characters_of(visible: bytes) -> Characters:
    """The characters of a visible text, and its marks."""
    return np.frombuffer(visible.decode().encode("utf-32-le"), "<u4")


def page_lines(visible: bytes) -> set[str]:
    """The different lines of a visible text, with single spaces."""
    return {line for piece in set(_pieces(characters_of(visible))) if (line := " ".join(piece.split()))}


def ordered_lines(characters: Characters) -> list[str]:
    """The lines of a part of a visible text in order, with single spaces."""
    return [line for piece in _pieces(characters) if (line := " ".join(piece.split()))]


def _pieces(characters: Characters) -> list[str]:
    shown = characters[characters < Mark.END]  # marks of inline elements cut nothing
    return np.minimum(shown, np.uint32(Mark.END_OF_BLOCK)).tobytes().decode("utf-32-le").split(_EDGE)
