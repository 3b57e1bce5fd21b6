"""The lines of a parsed page: its visible text, cut at the edges of block elements and at `br`.

A line of the main text is one of them, if the extractor took it whole. An XSLT takes half the time of a walk.
"""

from __future__ import annotations

from typing import Any

from lxml import etree

from filters.structure.names import BLANKS, UNSEEN

INLINE = (
    *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img"),
    *("ins", "kbd", "label", "mark", "nobr", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong"),
    *("sub", "sup", "time", "tt", "u", "var", "wbr"),
)
EDGE = "\U0010fffd"  # of private use; a page that has it has one line more
_CUT = etree.XSLT(
    etree.XML(
        '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:output method="text"/>'
        f'<xsl:template match="*">{EDGE}<xsl:apply-templates/>{EDGE}</xsl:template>'
        f'<xsl:template match="{"|".join(INLINE)}"><xsl:apply-templates/></xsl:template>'
        f'<xsl:template match="{"|".join(UNSEEN)}"/></xsl:stylesheet>'
    )
)


def visible_text(root: Any) -> bytes:
    """The text of a tree that a reader sees, with `EDGE` around blocks and at `br`; the tree stays."""
    return bytes(_CUT(root))


def visible_bytes(visible: bytes) -> int:
    """Bytes of a visible text without white space."""
    return len(visible.translate(None, BLANKS)) - len(EDGE.encode()) * visible.count(EDGE.encode())


def page_lines(visible: bytes) -> set[str]:
    """The different lines of a visible text, with single spaces."""
    return {line for piece in set(visible.decode().split(EDGE)) if (line := " ".join(piece.split()))}


def ordered_lines(visible: bytes) -> list[str]:
    """The lines of a visible text in order, with single spaces."""
    return [line for piece in visible.decode().split(EDGE) if (line := " ".join(piece.split()))]
