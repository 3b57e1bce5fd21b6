"""The segments of a page by kind: its main text outside records, and the records.

A line counts once: a line of the main text that is in a record belongs to it, and of lines that several records have
the first one stays. Lines that earlier pages of the site have are taken out later, by `own_segments`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from filters.duplicates.lines import own_text, pack_marks
from filters.segments.names import LEAST_RECORD_CHARS, SegmentKind
from stream.schema.records import Segments

if TYPE_CHECKING:  # it imports lxml
    from filters.segments.records import RecordTexts

MOST_CHARS = 100_000  # of the records of a page
MOST_RECORDS = 200

_MOST_SEARCHED = 20_000_000  # characters in which lines are looked for
_LEAST_ARTICLE = 400  # characters of main text outside a thread that make its first record an answer
_LEAST_HALF = 40  # characters of a part of a line that is found in a record

Marks = npt.NDArray[np.bool_]


def segments_of(text: str, records: Sequence[RecordTexts]) -> list[Segments]:
    """The segments of a page with this main text; without records, or of a continuous text, it is the only one."""
    if not records:
        return [Segments(SegmentKind.ARTICLE)] if text else []
    lines = text.split("\n")
    inside = _in_records(lines, [of_one for group in records for of_one in group.lines])
    outside = sum(len(line) for line, is_inside in zip(lines, inside, strict=True) if not is_inside)
    by_kind: dict[SegmentKind, tuple[str, list[str]]] = {}
    left, kept = MOST_CHARS, 0
    earlier: set[str] = set()
    for group in records:
        for place, of_one in enumerate(group.lines):
            new = [line for line in dict.fromkeys(of_one) if line not in earlier]
            earlier.update(new)
            joined = "\n".join(new)[:left]
            if len(joined) < LEAST_RECORD_CHARS or kept == MOST_RECORDS:
                continue
            kind = group.kind
            if kind is SegmentKind.POST and (place or outside >= _LEAST_ARTICLE):
                kind = SegmentKind.COMMENT
            by_kind.setdefault(kind, (group.path, []))[1].append(joined)
            left, kept = left - len(joined), kept + 1
    article = [Segments(SegmentKind.ARTICLE, without=pack_marks(np.array(inside)))] if outside else []
    return article + [Segments(kind, path, texts) for kind, (path, texts) in by_kind.items()]


def _in_records(lines: Sequence[str], records: Sequence[Sequence[str]]) -> list[bool]:
    """Whether each line is of a record: itself or, as extractors join and cut lines, a half of it without spaces.

    Where too much would be searched, it is: visitors may have written it.
    """
    whole = {line for of_one in records for line in of_one}
    seen = "\0".join("".join(of_one) for of_one in records).replace(" ", "")
    left = _MOST_SEARCHED
    inside = []
    for line in lines:
        is_inside = line in whole
        if not is_inside:
            joined = line.replace(" ", "")
            half = len(joined) // 2 if len(joined) >= 2 * _LEAST_HALF else len(joined)
            left -= len(seen)
            is_inside = left < 0 or joined[:half] in seen or (half < len(joined) and joined[half:] in seen)
        inside.append(is_inside)
    return inside


def segment_text(text: str, segments: Segments) -> str:
    """The joined text of segments of a kind; `text` is the page's main text."""
    if segments.kind != SegmentKind.ARTICLE:
        return "\n".join(segments.texts)
    return own_text(text, segments.without) if segments.without else text


def record_lines(segments: Sequence[Segments]) -> list[str]:
    """The lines of all records, in order."""
    return [line for of_kind in segments for joined in of_kind.texts for line in joined.split("\n")]


def own_segments(text: str, segments: Sequence[Segments], main: Marks, records: Marks) -> list[Segments]:
    """The segments without the marked lines, of `text` and of `record_lines(segments)`."""
    known = iter(records.tolist())
    own = []
    for of_kind in segments:
        kept = of_kind
        if of_kind.kind != SegmentKind.ARTICLE:
            lines = [joined.split("\n") for joined in of_kind.texts]
            texts = ["\n".join([line for line in of_one if not next(known, False)]) for of_one in lines]
            kept = msgspec.structs.replace(of_kind, texts=[one for one in texts if len(one) >= LEAST_RECORD_CHARS])
        elif main.any():
            kept = msgspec.structs.replace(of_kind, without=_both(of_kind.without, main))
        if kept == of_kind:
            own.append(of_kind)
        elif words := len(segment_text(text, kept).split()):
            own.append(msgspec.structs.replace(kept, words=words))
    return own


def _both(packed: bytes, marks: Marks) -> bytes:
    more = pack_marks(marks)
    size = max(len(packed), len(more))
    both = int.from_bytes(packed.ljust(size, b"\0"), "big") | int.from_bytes(more.ljust(size, b"\0"), "big")
    return both.to_bytes(size, "big")
