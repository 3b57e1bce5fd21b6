"""The records of a page, before its main text is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from filters.segments.kinds import kind_of
from filters.segments.names import SegmentKind
from filters.segments.record_groups import name_of, record_group
from filters.segments.text_tree import TextTree, text_tree
from filters.structure.page_lines import lines_of_parts

MOST_RECORDS = 200  # of a page; below 256

_NAME_CHARS = 60


class RecordTexts(msgspec.Struct, frozen=True):
    """The records of a page: their kind (POST for a thread), path (names of their parent and of one), and lines."""

    kind: SegmentKind
    path: str
    lines: list[list[str]]


def records_of(elements: Sequence[Any], marked: bytes, url: str) -> RecordTexts | None:
    """The records of a parsed page by its elements in document order and its marked text; None without a kind."""
    tree = text_tree(elements, marked)
    places = record_group(tree)[:MOST_RECORDS] if tree else []
    if not tree or not places:
        return None
    records = [elements[place] for place in places]
    sizes = (tree.inked[tree.ends[places]] - tree.inked[tree.starts[places]]).tolist()
    kind = kind_of(records, sizes, int(tree.inked[-1]), url)
    if kind is None:
        return None
    return RecordTexts(kind, f"{_named(records[0].getparent())} > {_named(records[0])}", _lines_of(tree, places))


def _lines_of(tree: TextTree, places: Sequence[int]) -> list[list[str]]:
    """The lines of each record in order of the page; an answer within a record is a record of its own."""
    spans = [tree.span(place) for place in islice(_with_answers(tree, places), MOST_RECORDS)]
    owners = np.zeros(len(tree.characters), np.uint8)
    for number, (begin, end) in enumerate(spans, 1):
        owners[begin:end] = number
    return lines_of_parts(tree.characters, owners, len(spans))


def _with_answers(tree: TextTree, places: Sequence[int]) -> Iterator[int]:
    name = name_of(tree.elements[places[0]])
    for place in places:
        yield place
        for inside in range(place + 1, tree.after[place]) if name[1] else ():
            element = tree.elements[inside]
            if element.tag == name[0] and name_of(element) == name:
                yield inside


def _named(element: Any) -> str:
    tag, first = name_of(element)
    return (f"{tag}.{first}" if first else tag)[:_NAME_CHARS]
