"""Parses HTML to a complete tree, or reports the reason for failing.

libxml2's HTML parser stops silently: the tree ends at its limits (depth 256, 10 MB of text or attribute), and text
after the end tag of `html` gets a second root. This module parses such a document again without limits, moves further
roots to the end of the body as `div`s, and raises on other failures. A text without an element is not HTML.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import lru_cache
from html import unescape
from html.entities import html5
from typing import Any

from lxml import etree
from lxml.html import HtmlComment, HtmlElement, HtmlEntity, HTMLParser, HtmlProcessingInstruction

from filters.extraction.interface import ExtractError
from stream.text.invisible import without_invisible

MAX_DEPTH = 512
"""Limit of element nesting. The extractors' time grows with its square, and at about 700 they exceed Python's recursion
limit."""

MAX_ROOTS = 1_000  # limit of further root elements: one for each end tag of `html` with text after it

_ELEMENT = re.compile("<[a-zA-Z]")
_NAMES = sorted((name for name, text in html5.items() if not without_invisible(text)), reverse=True)  # "shy;", "shy"
_REFERENCE = re.compile(
    "&(?:#0{0,99}[0-9]{1,8}(?![0-9]);?|#[xX]0{0,99}[0-9a-fA-F]{1,7}(?![0-9a-fA-F]);?|" + "|".join(_NAMES) + ")"
)
_PARSERS = threading.Lock()  # the parsers are shared
_INVALID = bytes(set(range(0x20)) - set(b"\t\n\r"))  # not allowed in XML
_NONCHARACTERS = ("\ufffe".encode(), "\uffff".encode())


class ParseFailed(ValueError):
    """The document cannot be parsed completely; `error` is the reason."""

    def __init__(self, error: ExtractError) -> None:
        super().__init__(error)
        self.error = error


@lru_cache
def new_parser(huge: bool) -> HTMLParser:
    """Create Trafilatura's parser; `huge` = without limits. One class for all elements saves a tenth of the time."""
    parser = HTMLParser(
        collect_ids=False,
        default_doctype=False,
        encoding="utf-8",
        remove_comments=True,
        remove_pis=True,
        huge_tree=huge,
    )
    parser.set_element_class_lookup(
        etree.ElementDefaultClassLookup(
            element=HtmlElement, comment=HtmlComment, pi=HtmlProcessingInstruction, entity=HtmlEntity
        )
    )
    return parser


def readable(html: str) -> str:
    """The HTML without NUL and the characters that no reader sees, as such or as references."""
    html = without_invisible(html.replace("\0", ""))
    unseen = {reference for reference in set(_REFERENCE.findall(html)) if not without_invisible(unescape(reference))}
    return _REFERENCE.sub(lambda match: "" if match[0] in unseen else match[0], html) if unseen else html


def parse(html: str, parser: Callable[[bool], HTMLParser] = new_parser) -> Any:
    """Parse to the `html` element, without comments and characters that XML forbids. Raises ParseFailed."""
    if not _ELEMENT.search(html):
        raise ParseFailed(ExtractError.NOT_HTML)
    data = html.encode("utf-8", "replace").translate(None, _INVALID)
    for character in _NONCHARACTERS:
        data = data.replace(character, b"")
    root, stopped = _parsed(data, parser(False))
    if stopped:
        root, stopped = _parsed(data, parser(True))
        depth = deepest = 0
        for event, _ in etree.iterwalk(root, events=("start", "end")):
            depth += 1 if event == "start" else -1
            deepest = max(deepest, depth)
        if deepest > MAX_DEPTH:
            raise ParseFailed(ExtractError.TOO_DEEP)
        if stopped:
            raise ParseFailed(ExtractError.PARSER_STOPPED)
    _gather(root)
    return root


def _parsed(data: bytes, parser: HTMLParser) -> tuple[Any, bool]:
    try:
        with _PARSERS:
            root = etree.fromstring(data, parser)
            errors = parser.error_log
    except etree.XMLSyntaxError as error:
        raise ParseFailed(ExtractError.NO_TEXT) from error
    if root is None:
        raise ParseFailed(ExtractError.NO_TEXT)
    return root, any(entry.level == etree.ErrorLevels.FATAL for entry in errors)


def _gather(root: Any) -> None:
    """Move each further root to the end of the first root's body as a `div`. Raises ParseFailed for too many roots."""
    if root.getnext() is None:
        return
    body = root.find("body")
    if body is None:
        body = etree.SubElement(root, "body")
    for _ in range(MAX_ROOTS + 1):
        if (more := root.getnext()) is None:
            return
        for head in more.findall("head"):
            more.remove(head)
        for element in (more, *more.findall("body")):
            element.tag = "div"
        body.append(more)
    raise ParseFailed(ExtractError.TOO_MANY_ELEMENTS)
