"""A cheap view of an HTML document: title, headings, and the text outside of links, navigation and footer.

There is no tree: scripts and the like are cut by substring search, tags by regular expressions, both on a bounded
prefix, and only until there is enough text. Each pattern looks at a character a bounded number of times, so the time is
linear for any input.
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from filters.charsets import decode
from stream.text.invisible import without_invisible

MAX_BYTES = 512 * 1024  # of a document that are looked at
MAX_MARKUP_BYTES = 128 * 1024  # of what is left without scripts and the like
PIECE_BYTES = 8 * 1024  # of it that are read at once
NOSCRIPT_BYTES = 4 * 1024  # of one that asks for scripts; a longer one holds the page, as those of Discourse do
PROSE_SIZE = 160  # of a block that counts as a paragraph of prose
MAX_CUTS = 8_000  # scripts, comments and the like that are cut
MAX_HEADINGS = 3

_ASCII = (" " if chr(code).isspace() or not code else chr(code).lower() for code in range(128))
_LOWER = "".join(_ASCII).encode() + bytes(range(128, 256))
_CUT = re.compile(rb"<(?:!--|s(?:cript|tyle|vg|elect)|t(?:emplate|itle|extarea)|n(?:oscript|av)|iframe|object|footer)")
_UNCLOSED_HIDES_ALL = (b"<!--", b"<script", b"<style")  # as in browsers
_ANCHOR = re.compile(rb"<a [^<]*+(?:<(?!/?a[ >])[^<]*+){0,24}</a[ >]")
# [^>] takes a seventh of the time of [^<>], and is as linear where each match ends at the next ">"
_INLINE = rb"</?(?:span|b|i|em|strong|code|small|u|font|abbr|mark|sup|sub)(?: [^>]*+)?>"
_TEXT = re.compile(rb"> *+([^< ][^<]*+(?:" + _INLINE + rb"[^<]*+)*)")
_TAG = re.compile(rb"<[^>]*+>")  # in bounded or well-formed markup
_TITLE = re.compile(rb"<title[^<>]*+>([^<]{1,300})")
_HEADING = re.compile(rb"<h[1-3][ >](?:[^<]*+<(?!/?h[1-6])){0,12}[^<]*+</h")
_BODY = re.compile(rb"<body [^<>]{0,1000}")
_ENDLESS = re.compile(r"&#[0-9]{4000,}+;?")  # of more digits than Python reads a number of
_CLASS = re.compile(rb" class *+= *+[\"']?([^\"'>]{1,400})")


class View(NamedTuple):
    """What a reader sees first, in lower case.

    Sizes are the mean of characters and UTF-8 bytes, so that a CJK character counts twice. Of a document with more than
    enough text, all but title and document stop there.
    """

    document: bytes  # UTF-8, ASCII letters in lower case
    visible: bytes  # the document without scripts and the like, bounded
    blocks: tuple[str, ...]  # of the text outside of links, bounded
    size: int  # of the blocks
    prose: int  # of the blocks that are as long as a paragraph

    @property
    def title(self) -> str:
        return title_of(self.document)

    @property
    def headings(self) -> list[str]:
        """Headings h1 to h3, the first ones."""
        headings: list[str] = []
        at = 0
        while len(headings) < MAX_HEADINGS and (heading := _HEADING.search(self.visible, at)):
            at = heading.end()
            if line := markup_text(heading[0][:400].removesuffix(b"</h")):
                headings.append(line)
        return headings

    def lines(self) -> list[str]:
        """The visible text with links, bounded, a block a line."""
        return _blocks(self.visible)


def view(document: bytes, enough: int = sys.maxsize) -> View:
    """View a document that is UTF-8 with ASCII letters in lower case, see `lowered`, up to more than `enough` text."""
    pieces: list[bytes] = []
    blocks: list[str] = []
    size = prose = 0
    for piece in _pieces(_without_hidden(document)):
        text = _ANCHOR.sub(b" ", b">" + piece if pieces else piece)  # a later piece may begin within a text
        pieces.append(piece)
        found = _blocks(text)
        sizes = list(map(text_size, found))
        blocks += found
        size += sum(sizes)
        prose += sum(filter(PROSE_SIZE.__le__, sizes))
        if size > enough:
            break
    return View(document, b"".join(pieces), tuple(blocks), size, prose)


def title_of(document: bytes) -> str:
    """The title of a document like that of `view`, "" for none."""
    title = _TITLE.search(document)
    return markup_text(title[1]) if title else ""


def lowered(body: bytes | str, encoding: str) -> bytes:
    """A body's prefix as UTF-8, ASCII letters in lower case, plain spaces. An unknown charset is read as UTF-8."""
    head = body[:MAX_BYTES]
    if isinstance(head, str):
        head = head.encode("utf-8", "replace")
    elif encoding.lower() not in ("", "utf-8", "utf8", "ascii", "us-ascii"):
        head = decode(head, encoding).encode("utf-8", "replace")
    return head.removeprefix(b"\xef\xbb\xbf").translate(_LOWER)


def markup_text(markup: bytes) -> str:
    """A piece of markup as one line of text."""
    return " ".join(_decoded(_TAG.sub(b" ", markup)).split())


def text_size(text: str) -> int:
    """The mean of characters and UTF-8 bytes."""
    return len(text) if text.isascii() else (len(text) + len(text.encode("utf-8", "replace"))) // 2


def body_class(markup: bytes) -> str:
    """The class attribute of the body, "" for none."""
    body = _BODY.search(markup)
    classes = _CLASS.search(body[0]) if body else None
    return classes[1].decode("utf-8", "replace") if classes else ""


def _without_hidden(document: bytes) -> Iterator[bytes]:
    """The parts between scripts, comments, navigation and what else is no text of the page."""
    unclosed: set[bytes] = set()
    at = start = 0
    for _ in range(MAX_CUTS):
        if not (hidden := _CUT.search(document, at, start + MAX_MARKUP_BYTES)):
            break
        opening, at = hidden[0], hidden.end()
        if opening in unclosed:
            continue
        end = document.find(b"-->" if opening == b"<!--" else b"</" + opening[1:], at)
        if end < 0 and opening not in _UNCLOSED_HIDES_ALL:
            unclosed.add(opening)
            continue
        if opening == b"<noscript" and end - at > NOSCRIPT_BYTES:
            continue
        yield document[start : hidden.start()]
        start = at = end if end >= 0 else len(document)
    yield document[start : start + MAX_MARKUP_BYTES]


def _pieces(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The parts joined to pieces of about `PIECE_BYTES`, bounded in all."""
    left = MAX_MARKUP_BYTES
    piece = bytearray()
    for part in parts:
        for start in range(0, len(part), PIECE_BYTES):
            taken = part[start : start + min(PIECE_BYTES, left)]
            left -= len(taken)
            piece += taken
            if len(piece) >= PIECE_BYTES:  # cut at the last place in no tag and no link, unless in the first half
                link = piece.rfind(b"<a ")
                cut = link if piece.find(b"</a", link) < 0 <= link else piece.rfind(b"<")
                cut = cut if 2 * cut > len(piece) else len(piece)
                yield bytes(piece[:cut])
                del piece[:cut]
        if not left:
            break
    yield bytes(piece)


def _blocks(markup: bytes) -> list[str]:
    return _decoded(_TAG.sub(b"", b"\n".join(_TEXT.findall(markup)))).split("\n")


def _decoded(text: bytes) -> str:
    decoded = text.decode("utf-8", "replace")
    if "&" in decoded:
        decoded = html.unescape(_ENDLESS.sub("\ufffd", decoded))
    return without_invisible(decoded).lower().replace("’", "'")
