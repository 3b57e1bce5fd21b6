"""The records of a page, before its main text is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from filters.segments.kinds import kind_of
from filters.segments.names import SegmentKind
from filters.segments.record_groups import RecordGroup, name_of, record_group
from filters.structure.page_lines import EDGE, ordered_lines, visible_text

MOST_RECORDS = 200  # of a page

_MOST_READ = 4  # times a page's text: answers nested within answers are read again for each of them
_LEAST_READ = 200_000  # bytes; forums that need scripts have their posts in a noscript, beside the visible text
_NAME_CHARS = 60
_CUT = EDGE.encode()


class Records(msgspec.Struct, frozen=True):
    """The records of a page: their kind (POST for a thread), path (names of their parent and of one), and lines."""

    kind: SegmentKind
    path: str
    lines: list[list[str]]


def records_of(elements: Sequence[Any], visible: bytes, url: str) -> Records | None:
    """The records of a parsed page by its elements in document order and its visible text; the tree stays."""
    group = record_group(elements)
    if group is None:
        return None
    group = RecordGroup(group.parent, group.records[:MOST_RECORDS])
    lines = list(islice(_lines_of(group, max(_MOST_READ * len(visible), _LEAST_READ)), MOST_RECORDS))
    kind = kind_of(group, [sum(map(len, of_one)) for of_one in lines], len(visible), url)
    return Records(kind, f"{_named(group.parent)} > {_named(group.records[0])}", lines)


def _lines_of(group: RecordGroup, most_read: int) -> Iterator[list[str]]:
    """The lines of each record in order of the page; an answer within a record is a record of its own."""
    read = 0
    for record in group.records:
        name = name_of(record)
        own: dict[Any, bytes] = {}
        whole: dict[Any, bytes] = {}
        for element in record.iter(record.tag):
            if element is not record and not (name[1] and name_of(element) == name):
                continue
            if read > most_read or len(own) == MOST_RECORDS:
                break
            own[element] = whole[element] = visible_text(element)
            read += len(own[element])
        for answer in islice(whole, 1, None):
            around = next(element for element in answer.iterancestors() if element in own)
            own[around] = own[around].replace(whole[answer], _CUT, 1)
        yield from map(ordered_lines, own.values())


def _named(element: Any) -> str:
    tag, first = name_of(element)
    return (f"{tag}.{first}" if first else tag)[:_NAME_CHARS]
