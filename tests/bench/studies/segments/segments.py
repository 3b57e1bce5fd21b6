"""The segments of a page: its main text outside records, and its records, each with a kind."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec

from filters.structure.page_lines import _EDGE, visible_text
from tests.bench.studies.segments.kinds import LEAST_RECORD_CHARS, SegmentKind, kind_of
from tests.bench.studies.segments.record_groups import RecordGroup, name_of, record_group

EDGE = _EDGE.encode()
MOST_SEGMENTS = 200
MOST_CHARS = 100_000  # of all segments of a page

_LEAST_ARTICLE = 400  # characters of main text outside a thread that make its first record an answer


class Segment(msgspec.Struct, array_like=True, frozen=True):
    """A part of a page: kind, place in the page, and lines of text, one a line feed."""

    kind: str  # SegmentKind
    path: str  # of the records: tag and class of their parent and of themselves; "" = main text
    text: str


class Records(msgspec.Struct, frozen=True):
    """The records of a page before its main text is known: their kind, path, and lines."""

    kind: SegmentKind
    path: str
    lines: list[list[str]]


def records_of(elements: Sequence[Any], visible_chars: int, url: str) -> Records | None:
    """The records of a parsed page, by its elements in document order; the tree stays."""
    group = record_group(elements)
    if group is None:
        return None
    lines = _lines_of(group)
    kind = kind_of(group, [sum(map(len, of_one)) for of_one in lines], visible_chars, url)
    return Records(kind, f"{_named(group.parent)} > {_named(group.records[0])}", lines)


def segments_of(text: str, records: Records | None) -> list[Segment]:
    """The segments of a page with this main text, in order of the page; empty: the main text is its one segment.

    Each line of the main text is in one segment, and records of a continuous text stay in it.
    """
    if records is None or records.kind is SegmentKind.OTHER:
        return []
    seen = "\0".join("".join(lines) for lines in records.lines).replace(" ", "")
    outside = [line for line in text.split("\n") if line and line.replace(" ", "") not in seen]
    is_answered = sum(map(len, outside)) >= _LEAST_ARTICLE
    segments = [Segment(SegmentKind.ARTICLE, "", "\n".join(outside))] if outside else []
    left = MOST_CHARS
    for place, lines in enumerate(records.lines[:MOST_SEGMENTS]):
        joined = "\n".join(lines)[:left]
        if len(joined) >= LEAST_RECORD_CHARS:
            kind = records.kind
            if kind is SegmentKind.POST and (place or is_answered):
                kind = SegmentKind.COMMENT
            segments.append(Segment(kind, records.path, joined))
            left -= len(joined)
    return segments


def _lines_of(group: RecordGroup) -> list[list[str]]:
    """The lines of each record in order of the page; an answer within a record is a record of its own."""
    lines: list[list[str]] = []
    for record in group.records[:MOST_SEGMENTS]:
        name = name_of(record)
        alike = (element for element in record.iter(record.tag) if name_of(element) == name)
        nested = list(islice(alike, MOST_SEGMENTS)) if name[1] else [record]
        texts = {element: visible_text(element) for element in nested}
        own = dict(texts)
        for answer in nested[1:]:
            around = next(element for element in answer.iterancestors() if element in own)
            own[around] = own[around].replace(texts[answer], EDGE, 1)
        lines += map(ordered_lines, own.values())
    return lines


def _named(element: Any) -> str:
    tag, first = name_of(element)
    return f"{tag}.{first}" if first else tag


def ordered_lines(visible: bytes) -> list[str]:
    """The lines of a visible text in order, with single spaces."""
    return [line for piece in visible.decode().split(_EDGE) if (line := " ".join(piece.split()))]
