"""The entries of a sitemap, a sitemap index or a feed, read as XML from end to end, however damaged it is.

| in | an entry is |
|---|---|
| a sitemap, an index | the `loc` of a `url` or a `sitemap`, or their own text; not that of an image or a video |
| RSS 1.0 and 2.0 | the `link` of an `item` |
| Atom | the `link` of an `entry` to itself, by its `href` |

A page has the month of its `lastmod`, before or behind its `loc`.

Names count in any namespace and case. Before it is parsed, a text loses its document type, and an ampersand that begins
no reference to a character becomes one, as does `<` that begins no tag: so nothing is left to expand or to fetch, and
neither ends the parser.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lxml import etree

from crawler.web.urls import URL_CAP

_PIECE_BYTES = 64 * 1024  # parsed at a time
_HELD = 32  # innermost open elements; one that is never closed holds all that follow
_DEPTH_CAP = 20_000  # open elements, of which the parser holds each
_REPAIRED = re.compile(
    rb"(?P<kept><!\[(?-i:CDATA)\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z))"
    rb"|<\?xml\s[^>]*+(?:>|\Z)|<!DOCTYPE[^\[>]*+(?:\[.*?(?:\]\s*+>|\Z)|>|\Z)"
    # halves of a surrogate pair, as some generators write emoji, are no characters
    rb"|(?P<amp>&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[\da-f]{1,6});)"
    rb"|&(?=#(?:x0*d[89a-f]..|0*(?:5529[6-9]|55[3-9]..|56...|57[0-2]..|573[0-3].|5734[0-3]));))"
    rb"|(?P<lt><(?!/?[a-z_:\x80-\xff]|\?[a-z_:]))",
    re.IGNORECASE | re.DOTALL,
)
_SOME = re.compile(rb"<(?:[\w.-]{1,20}:)?(?:loc|url|sitemap|item|entry)\b", re.IGNORECASE)  # not in most pages
_PLACES = frozenset({"url", "urlset", "sitemap", "sitemapindex"})
_READ = _PLACES | {"loc", "lastmod", "link", "item", "entry"}
_MONTH = re.compile(r"(?:199[5-9]|20[0-9]{2})-(?:0[1-9]|1[0-2])(?![0-9])")


@dataclass(slots=True)
class Entry:
    """An entry as written: a page, or a further sitemap. `month` may come later: it is known when all are read."""

    url: str
    is_file: bool
    month: str = ""  # "2024-05", of its `lastmod`; "" = none


def sitemap_entries(xml: bytes) -> Iterator[Entry]:
    """The entries of a sitemap in XML, as UTF-8. Never raises: of a damaged one, those that can be made out."""
    if not _SOME.search(xml):
        return
    target = _Target()
    parser = etree.XMLParser(
        target=target, encoding="utf-8", recover=True, resolve_entities=False, no_network=True, load_dtd=False
    )
    parser.feed(b"<all>")  # a root for what stands before and behind the sitemap's own
    # the same bytes if there is nothing to repair
    repaired = _REPAIRED.sub(lambda m: b"&amp;" if m["amp"] else b"&lt;" if m["lt"] else m["kept"] or b"", xml)
    for start in range(0, len(repaired), _PIECE_BYTES):
        is_over = False
        try:
            parser.feed(repaired[start : start + _PIECE_BYTES])
        except (etree.XMLSyntaxError, UnicodeError, _TooDeep):
            is_over = True
        yield from target.entries
        target.entries.clear()
        if is_over:
            return


class _TooDeep(Exception):
    """More elements are open than in any sitemap that is only careless."""


@dataclass(slots=True)
class _Element:
    name: str
    href: str = ""
    text: list[str] = field(default_factory=list)
    length: int = 0
    entry: Entry | None = None  # that it has
    month: str = ""


_OTHER = _Element("", length=URL_CAP + 1)  # its text is not kept


class _Target:
    """What the parser calls. Holds the innermost open elements, and the entries."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._open: deque[_Element] = deque(maxlen=_HELD)
        self._depth = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth > _DEPTH_CAP:
            raise _TooDeep
        name = tag.rpartition("}")[2].lower()
        element = _Element(name) if name in _READ else _OTHER
        if name == "link" and attributes.get("rel", "alternate") == "alternate":
            element.href = attributes.get("href", "")
        self._open.append(element)

    def data(self, text: str) -> None:
        if self._open and self._open[-1].length <= URL_CAP:
            self._open[-1].text.append(text)
            self._open[-1].length += len(text)

    def end(self, _tag: str) -> None:
        self._depth -= 1
        element = self._open.pop() if self._open else _OTHER
        if not self._open:
            return
        outer = self._open[-1]
        url = element.href or "".join(element.text).strip()
        if element.name == "loc" and outer.name in _PLACES:
            outer.entry = Entry(url, outer.name.startswith("sitemap"), outer.month)
            self.entries.append(outer.entry)
        elif element.name == "lastmod":
            if outer.name == "url" and (month := _MONTH.match(url)):
                outer.month = month[0]
                if outer.entry is not None:
                    outer.entry.month = month[0]
        elif element.name in ("url", "sitemap") and url and element.entry is None:
            self.entries.append(Entry(url, element.name == "sitemap", element.month))
        elif element.name == "link" and outer.name in ("item", "entry") and url:
            self.entries.append(Entry(url, is_file=False))

    def close(self) -> None:
        """The parser's result, which no one reads."""
