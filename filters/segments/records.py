"""The records of a page, before its main text is known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from filters.segments.kinds import has_person, have_names_of_visitors, is_of_visitors, kind_of
from filters.segments.names import SegmentKind
from filters.segments.record_groups import name_of, record_groups
from filters.segments.text_tree import TextTree, text_tree
from filters.structure.page_lines import Characters, lines_of_parts

_NAME_CHARS = 60
_LATER_PAGE = re.compile(r"(?:[?&](?:page|paged|pg|start|offset|st)=|/page[-/]?)(?:[2-9]|[1-9]\d)", re.I)


class RecordTexts(msgspec.Struct, frozen=True):
    """The records of a group: their kind (POST for a thread), path (names of their parent and of one), and lines."""

    kind: SegmentKind
    path: str
    lines: list[list[str]]


def records_of(elements: Sequence[Any], characters: Characters, url: str) -> list[RecordTexts]:
    """The records of a parsed page, by its elements in document order and its marked text: those with most text.

    Records of a smaller group count as such only if they have a name of visitors' text: authors have boxes, too.
    """
    tree = text_tree(elements, characters)
    found: list[RecordTexts] = []
    if tree is None:
        return found
    taken: list[tuple[int, int]] = []
    for number, places in enumerate(record_groups(tree)):
        begin, end = places[0], tree.after[places[-1]]
        if any(begin < other_end and other < end for other, other_end in taken):
            continue
        records = [elements[place] for place in places]
        if number:
            kind = SegmentKind.COMMENT if have_names_of_visitors(records) else None
        else:
            sizes = (tree.inked[tree.ends[places]] - tree.inked[tree.starts[places]]).tolist()
            kind = kind_of(records, sizes, int(tree.inked[-1]), url)
            if kind is SegmentKind.POST and _LATER_PAGE.search(url):
                kind = SegmentKind.COMMENT
        if kind is None:
            continue
        if kind in (SegmentKind.POST, SegmentKind.COMMENT):
            places = _with_others(tree, places, kind)
        taken.append((begin, end))
        path = f"{_named(records[0].getparent())} > {_named(records[0])}"
        found.append(RecordTexts(kind, path, _lines_of(tree, places)))
    return found


def _with_others(tree: TextTree, places: Sequence[int], kind: SegmentKind) -> list[int]:
    """With the siblings of the same tag that are of visitors, too, whatever their class."""
    first = tree.elements[places[0]]
    is_one = is_of_visitors if kind is SegmentKind.COMMENT else has_person
    siblings = tree.blocks[tree.parents == tree.parents[tree.blocks.searchsorted(places[0])]].tolist()
    known = set(places)
    return [
        place
        for place in siblings
        if place in known or (tree.elements[place].tag == first.tag and is_one(tree.elements[place]))
    ]


def _lines_of(tree: TextTree, places: Sequence[int]) -> list[list[str]]:
    """The lines of each record in order of the page; an answer within a record is a record of its own."""
    bounds, owners, around = list[int](), list[int](), list[tuple[int, int]]()
    records = 0
    for records, place in enumerate(_with_answers(tree, places), 1):
        begin, end = tree.span(place)
        while around and around[-1][0] <= begin:
            bounds.append(around.pop()[0])
            owners.append(around[-1][1] if around else 0)
        bounds.append(begin)
        owners.append(records)
        around.append((end, records))
    while around:
        bounds.append(around.pop()[0])
        owners.append(around[-1][1] if around else 0)
    parts = np.repeat(np.array(owners[:-1], np.uint32), np.diff(bounds))
    return lines_of_parts(tree.characters[bounds[0] : bounds[-1]], parts, records)


def _with_answers(tree: TextTree, places: Sequence[int]) -> Iterator[int]:
    name = name_of(tree.elements[places[0]])
    bounds = tree.blocks.searchsorted([*places, *(tree.after[place] for place in places)]).reshape(2, -1).T
    for place, (begin, end) in zip(places, bounds.tolist(), strict=True):
        yield place
        for inside in tree.blocks[begin + 1 : end].tolist() if name[1] else ():
            element = tree.elements[inside]
            if element.tag == name[0] and name_of(element) == name:
                yield inside


def _named(element: Any) -> str:
    tag, first = name_of(element)
    return (f"{tag}.{first}" if first else tag)[:_NAME_CHARS]
