"""Finds the records of a page: posts, comments, teasers, rows of a list.

Records are siblings of one tag and first class, whatever digits it has. Of all groups of a page, the one whose records
but the largest have most text outside links wins: a page's header, body and footer are siblings too, but one of them
has nearly all text. By the class it finds exactly the posts of 29 of 33 labelled threads (.92 of all); by the shape of
subtrees (tags to a depth of three) and most text, .63 of the posts, for they differ in what they hold.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from filters.structure.names import UNSEEN
from filters.structure.page_lines import INLINE

LEAST_SHARE = 0.1  # of a page's text outside links, in the records but the largest

_WIDGETS = ("button", "form", "iframe", "math", "object", "option", "select", "svg", "textarea")
_HIDDEN = frozenset({*UNSEEN, "head", *_WIDGETS})
_RUNNING = frozenset(  # parts of one text
    {*INLINE, "p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "td", "th", "dt", "dd", "br", "hr", "img"}
    | {"figure", "figcaption", "picture", "source", "video", "audio", "center", "caption", "address", "details"}
)
_DIGITS = re.compile(r"\d+")


class RecordGroup(NamedTuple):
    """Sibling elements with the same name, in document order, and their parent."""

    parent: Any
    records: list[Any]


def record_group(elements: Sequence[Any]) -> RecordGroup | None:
    """The records of a page by its elements in document order; None if no group has enough text. Time is linear."""
    place_of = {element: place for place, element in enumerate(elements)}
    place_of[None] = -1
    parents = [place_of[element.getparent()] for element in elements]
    size = len(elements)
    chars = [0] * (size + 1)  # of the text outside links; the last is that of no element
    blocks: defaultdict[int, list[int]] = defaultdict(list)  # in reverse
    best, winner = 0, None
    for place in range(size - 1, -1, -1):
        element, parent = elements[place], parents[place]
        tail = element.tail
        if tail:
            chars[parent] += len(tail.strip())
        tag = element.tag
        if tag in _HIDDEN:
            continue
        text = element.text
        own = chars[place] + len(text.strip()) if text else chars[place]
        chars[place] = own
        below = blocks.pop(place, None)
        if below is None:
            if tag in _RUNNING:
                if tag != "a":
                    chars[parent] += own
                continue
        elif len(below) > 1 and _beside_largest([chars[child] for child in below]) > best:
            for records in _namesakes([elements[child] for child in reversed(below)]):
                beside = _beside_largest([chars[place_of[record]] for record in records])
                if beside > best:
                    best, winner = beside, RecordGroup(element, records)
        blocks[parent].append(place)
        chars[parent] += own
    return winner if winner and best >= LEAST_SHARE * chars[-1] else None


def _beside_largest(sizes: Sequence[int]) -> int:
    return sum(sizes) - max(sizes)


def name_of(element: Any) -> tuple[str, str]:
    """Tag and first class of an element, whatever its digits."""
    first = next(iter((element.get("class") or "").split()), "")
    return element.tag, _DIGITS.sub("", first)


def _namesakes(siblings: Sequence[Any]) -> list[list[Any]]:
    by_name: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    for element in siblings:
        by_name[name_of(element)].append(element)
    return [records for records in by_name.values() if len(records) > 1]
