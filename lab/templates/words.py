"""The words of a page in order, and where they stand in its tree.

An image is a word, too: its address. Words with no element between them form a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lxml import etree

from filters.charsets import decode
from filters.extraction.html_tree import ParseFailed, parse, readable
from filters.extraction.interface import ExtractError
from filters.extraction.page_guards import refused
from filters.settings import MeasureSettings

IMAGE = "\0"
"""The first character of the word of an image; no text has it."""

_UNSEEN = ("script", "noscript", "iframe")
_WORD = re.compile(r"\S+\s*")


class TextRun(NamedTuple):
    """Words first to end of a page, and the element around them."""

    element: Any
    first: int
    end: int


@dataclass(slots=True)
class Words:
    """The words of a page. `tree` is its `html` element."""

    tree: Any
    words: list[str] = field(default_factory=list)
    runs: list[TextRun] = field(default_factory=list)


def page_tree(page: bytes, encoding: str, settings: MeasureSettings) -> Any:
    """Parse a page, without comments, scripts, frames and style sheets. Raises ParseFailed."""
    if len(page) > settings.max_html_bytes:
        raise ParseFailed(ExtractError.TOO_LARGE)
    html = decode(page, encoding)
    if (error := refused(page, html, settings)) is not None:
        raise ParseFailed(error)
    root = parse(readable(html))
    etree.strip_elements(root, *_UNSEEN, with_tail=False)
    for body in root.iterchildren("body"):
        etree.strip_elements(body, "style", with_tail=False)
    return root


def steps(tree: Any) -> Iterator[tuple[bool, Any, str | None]]:
    """Begin (True) and end of each element of the body of `page_tree`, with the text that follows in the body."""
    body = tree.find("body")
    if body is None:
        return
    for event, element in etree.iterwalk(body, events=("start", "end")):
        if event == "start":
            yield True, element, element.text
        else:
            yield False, element, None if element is body else element.tail


def words_of(tree: Any) -> Words:
    """The words of the body of `page_tree`."""
    page = Words(tree)
    words, runs = page.words, page.runs
    began = 0
    for begins, element, text in steps(tree):
        if begins and element.tag == "img":
            words.append(IMAGE + element.get("src", ""))
        elif len(words) > began and element.tag != "img":
            runs.append(TextRun(element.getparent() if begins else element, began, len(words)))
            began = len(words)
        if text:
            words += text.split()
    return page


def split_text(text: str) -> tuple[str, list[str]]:
    """Blanks, and then the words of a text, each with the blanks after it."""
    start = len(text) - len(text.lstrip())
    return text[:start], _WORD.findall(text, start)
