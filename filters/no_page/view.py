"""A cheap view of an HTML document: title, headings, and the text outside of links, navigation and footer.

There is no tree: scripts and the like are cut by substring search, tags by regular expressions, both on a bounded
prefix. Each pattern looks at a character a bounded number of times, so the time is linear for any input.
"""

from __future__ import annotations

import html
import re
from typing import NamedTuple

from filters.charsets import decode

MAX_BYTES = 512 * 1024  # of a document that are looked at
MAX_MARKUP_BYTES = 96 * 1024  # of what is left without scripts and the like
NOSCRIPT_BYTES = 4 * 1024  # of one that asks for scripts; a longer one holds the page, as those of Discourse do
PROSE_SIZE = 160  # of a block that counts as a paragraph of prose
MAX_CUTS = 8_000  # scripts, comments and the like that are cut
MAX_HEADINGS = 8

_LOWER = bytes(ord(" ") if chr(code).isspace() or not code else ord(chr(code).lower()) for code in range(128)) + bytes(
    range(128, 256)
)
_CUT = re.compile(rb"<(?:!--|s(?:cript|tyle|vg|elect)|t(?:emplate|itle|extarea)|n(?:oscript|av)|iframe|object|footer)")
_UNCLOSED_HIDES_ALL = (b"<!--", b"<script", b"<style")  # as in browsers
_ANCHOR = re.compile(rb"<a [^<]*+(?:<(?!/?a[ >])[^<]*+){0,24}</a[ >]")
_INLINE = re.compile(rb"</?(?:span|b|i|em|strong|code|small|u|font|abbr|mark|sup|sub)(?: [^<>]*+)?>")
_TEXT = re.compile(rb"> *+([^< ][^<]*+)")
_TAG = re.compile(rb"<[^<>]*+>")
_TITLE = re.compile(rb"<title[^<>]*+>([^<]{1,300})")
_HEADING = re.compile(rb"<h[1-3][ >](?:[^<]*+<(?!/?h[1-6])){0,12}[^<]*+</h")
_BODY = re.compile(rb"<body [^<>]{0,1000}")
_CLASS = re.compile(rb" class *+= *+[\"']?([^\"'>]{1,400})")


class View(NamedTuple):
    """What a reader sees first, in lower case.

    Sizes are the mean of characters and UTF-8 bytes, so that a CJK character counts twice.
    """

    document: bytes  # UTF-8, ASCII letters in lower case
    visible: bytes  # the document without scripts and the like, bounded
    title: str
    headings: tuple[str, ...]  # h1 to h3, the first ones
    blocks: tuple[str, ...]  # of the text outside of links, bounded
    size: int  # of the blocks
    prose: int  # of the blocks that are as long as a paragraph

    def lines(self) -> list[str]:
        """The visible text with links, bounded, a block a line."""
        return _blocks(self.visible)


def view(document: bytes) -> View:
    """View a document that is UTF-8 with ASCII letters in lower case, see `lowered`."""
    visible = _without_hidden(document)
    blocks = tuple(_blocks(_ANCHOR.sub(b" ", visible)))
    sizes = [size_of(block) for block in blocks]
    title = _TITLE.search(document)
    return View(
        document=document,
        visible=visible,
        title=plain(title[1]) if title else "",
        headings=tuple(_headings(visible)),
        blocks=blocks,
        size=sum(sizes),
        prose=sum(size for size in sizes if size >= PROSE_SIZE),
    )


def lowered(body: bytes | str, encoding: str) -> bytes:
    """A body's prefix as UTF-8, ASCII letters in lower case, plain spaces. An unknown charset is read as UTF-8."""
    head = body[:MAX_BYTES]
    if isinstance(head, str):
        head = head.encode("utf-8", "replace")
    elif encoding.lower() not in ("", "utf-8", "utf8", "ascii", "us-ascii"):
        head = decode(head, encoding).encode("utf-8", "replace")
    return head.removeprefix(b"\xef\xbb\xbf").translate(_LOWER)


def plain(markup: bytes) -> str:
    """A piece of markup as one line of text."""
    return " ".join(_decoded(_TAG.sub(b" ", markup)).split())


def size_of(text: str) -> int:
    """The mean of characters and UTF-8 bytes."""
    return len(text) if text.isascii() else (len(text) + len(text.encode("utf-8", "replace"))) // 2


def body_class(document: bytes) -> str:
    """The class attribute of the body, "" for none."""
    body = _BODY.search(document)
    found = _CLASS.search(body[0]) if body else None
    return found[1].decode("utf-8", "replace") if found else ""


def _without_hidden(document: bytes) -> bytes:
    """The document without scripts, comments, navigation and what else is no text of the page, bounded."""
    kept: list[bytes] = []
    unclosed: set[bytes] = set()
    kept_bytes = at = start = 0
    for _ in range(MAX_CUTS):
        if kept_bytes >= MAX_MARKUP_BYTES or not (found := _CUT.search(document, at)):
            break
        opening, at = found[0], found.end()
        if opening in unclosed:
            continue
        end = document.find(b"-->" if opening == b"<!--" else b"</" + opening[1:], at)
        if end < 0 and opening not in _UNCLOSED_HIDES_ALL:
            unclosed.add(opening)
            continue
        if opening == b"<noscript" and end - at > NOSCRIPT_BYTES:
            continue
        kept.append(document[start : found.start()])
        kept_bytes += found.start() - start
        start = at = end if end >= 0 else len(document)
    kept.append(document[start : start + MAX_MARKUP_BYTES])
    return b"".join(kept)[:MAX_MARKUP_BYTES]


def _blocks(markup: bytes) -> list[str]:
    return _decoded(b"\n".join(_TEXT.findall(_INLINE.sub(b"", markup)))).split("\n")


def _headings(visible: bytes) -> list[str]:
    headings: list[str] = []
    at = 0
    while len(headings) < MAX_HEADINGS and (found := _HEADING.search(visible, at)):
        at = found.end()
        if line := plain(found[0][:400].removesuffix(b"</h")):
            headings.append(line)
    return headings


def _decoded(text: bytes) -> str:
    decoded = text.decode("utf-8", "replace")
    if "&" in decoded:
        decoded = html.unescape(decoded)
    return decoded.lower().replace("’", "'")
