"""The visible text of a parsed page, with a mark where an element begins or ends, and its lines.

Lines are cut at the edges of block elements and at `br`. A line of the main text is one of them, if the extractor took
it whole. An XSLT takes half the time of a walk. The posts of pages that need scripts are often in a `noscript`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
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


class TextMark:
    """What begins or ends at a mark: a character of private use. All but the last four cut lines."""

    BLOCK = 0x10FFF0
    RUNNING = 0x10FFF1  # a block that is a part of one text
    WIDGET = 0x10FFF2  # a block without prose
    NOSCRIPT = 0x10FFF3  # the outermost
    END_OF_NOSCRIPT = 0x10FFF4
    END_OF_BLOCK = 0x10FFF5
    END = 0x10FFF6
    INLINE = 0x10FFF7
    LINK = 0x10FFF8
    UNSEEN = 0x10FFF9  # its text is left out


Characters = npt.NDArray[np.uint32]

_EDGE, _NOSCRIPT, _END_OF_NOSCRIPT = map(chr, (TextMark.BLOCK, TextMark.NOSCRIPT, TextMark.END_OF_NOSCRIPT))
_MARK_BYTES, _SAME_BYTES = len(_EDGE.encode()), _EDGE.encode()[:-1]
_WITHOUT_SCRIPTS = re.compile(f"{_NOSCRIPT}.*?{_END_OF_NOSCRIPT}".encode(), re.DOTALL)
_OWN_MARKS = re.compile("[\U0010ffc0-\U0010ffff]")  # with the same first bytes as the marks
_TEXT = "<xsl:apply-templates/>"


def _template(pattern: str, start: int, end: int, inside: str = _TEXT) -> str:
    return f'<xsl:template match="{pattern}">{chr(start)}{inside}{chr(end)}</xsl:template>'


_MARKED = etree.XSLT(
    etree.XML(
        '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:output method="text"/>'
        + _template("*|noscript//noscript", TextMark.BLOCK, TextMark.END_OF_BLOCK)
        + _template("|".join(_RUNNING), TextMark.RUNNING, TextMark.END_OF_BLOCK)
        + _template("|".join(_WIDGETS), TextMark.WIDGET, TextMark.END_OF_BLOCK)
        + _template("noscript", TextMark.NOSCRIPT, TextMark.END_OF_NOSCRIPT)
        + _template("|".join(INLINE[1:]), TextMark.INLINE, TextMark.END)
        + _template(INLINE[0], TextMark.LINK, TextMark.END)
        + _template(
            "|".join(UNSEEN[1:]),
            TextMark.UNSEEN,
            TextMark.END,
            f'<xsl:for-each select=".//*">{chr(TextMark.UNSEEN)}{chr(TextMark.END)}</xsl:for-each>',
        )
        + "</xsl:stylesheet>"
    )
)


def marked_text(root: Any) -> bytes:
    """The text of a tree with a mark where an element begins and one where it ends; the tree stays."""
    return bytes(_MARKED(root))


def without_marks(elements: Sequence[Any], marked: bytes) -> bool:
    """Take marks of its own out of the texts of a tree of these elements; tells if there were any."""
    if marked.count(_SAME_BYTES) == 2 * len(elements):
        return False
    for element in elements:
        element.text, element.tail = (text and _OWN_MARKS.sub("", text) for text in (element.text, element.tail))
    return True


def visible_part(marked: bytes) -> bytes:
    """The part of a marked text that a reader sees whose browser runs scripts."""
    return _WITHOUT_SCRIPTS.sub(b"", marked) if _NOSCRIPT.encode() in marked else marked


def visible_text(root: Any) -> bytes:
    """The text of a tree that a reader sees, with marks; the tree stays."""
    return visible_part(marked_text(root))


def visible_bytes(visible: bytes) -> int:
    """Bytes of a visible text without white space and marks."""
    return len(visible.translate(None, BLANKS)) - _MARK_BYTES * visible.count(_SAME_BYTES)


def characters_of(visible: bytes) -> Characters:
    """The characters of a visible text, and its marks."""
    return np.frombuffer(visible.decode().encode("utf-32-le"), "<u4")


def page_lines(characters: Characters) -> set[str]:
    """The different lines of a visible text, with single spaces."""
    pieces = set(_cut(characters[characters < TextMark.END]).split(_EDGE))
    return {line for piece in pieces if (line := " ".join(piece.split()))}


def lines_of_parts(characters: Characters, owners: npt.NDArray[np.uint32], parts: int) -> list[list[str]]:
    """The lines of each part of a text in order, with single spaces; `owners`: the part of each character, 0 = none."""
    is_shown = (owners > 0) & (characters < TextMark.END)
    characters, owners = characters[is_shown], owners[is_shown]
    text = _cut(characters[owners.argsort(kind="stable")])
    ends = np.bincount(owners, minlength=parts + 1).cumsum().tolist()
    pieces = (text[begin:end].split(_EDGE) for begin, end in pairwise(ends))
    return [[line for piece in of_one if (line := " ".join(piece.split()))] for of_one in pieces]


def _cut(characters: Characters) -> str:
    return np.minimum(characters, np.uint32(TextMark.BLOCK)).tobytes().decode("utf-32-le")
