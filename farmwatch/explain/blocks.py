"""The main text of a page as the rules see it: the block of each line, template lines, repeated passages."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from filters.duplicates.lines import marked_lines
from filters.duplicates.repeats import Repeats
from filters.extraction.blocks import JOINED, KIND_MASK, Block, BlockKind, unpack
from filters.segments.names import SegmentKind
from stream.schema.records import Features


class ShownPart(NamedTuple):
    """A part of a line. `passage` is the place of the repeated passage in `Repeats.passages`; None = it is new."""

    text: str
    passage: int | None


class ShownLine(NamedTuple):
    """A line of the main text. `kind` is that of its block, "" = unknown; the shares are of its characters."""

    kind: str
    chars: int
    link_share: float
    code_share: float
    parts: list[ShownPart]
    is_template: bool
    is_outside: bool  # of the article segment: in a record, or on an earlier page of the site


def text_lines(features: Features, repeats: Repeats | None) -> list[ShownLine]:
    """The lines that are not empty."""
    marked = set(marked_lines(features.template_lines))
    outside = _outside(features)
    numbered = enumerate(_lines(features.text, repeats))
    lines = [
        (line, number in marked, number in outside)
        for number, line in numbered
        if any(part.text.strip() for part in line)
    ]
    blocks: list[list[Block]] = []
    for row in unpack(features.blocks):
        if row.kind & JOINED and blocks:
            blocks[-1].append(row)
        else:
            blocks.append([row])
    if len(blocks) != len(lines):  # a record of an older farmwatch
        blocks = [[]] * len(lines)
    shown = []
    for block, (parts, *marks) in zip(blocks, lines, strict=True):
        chars = sum(row.chars for row in block)
        kind = BlockKind(block[0].kind & KIND_MASK).name.lower() if block else ""
        links, code = sum(row.link_chars for row in block), sum(row.code_chars for row in block)
        shown.append(ShownLine(kind, chars, links / max(chars, 1), code / max(chars, 1), parts, *marks))
    return shown


def _outside(features: Features) -> Collection[int]:
    if features.segments is None:
        return ()
    articles = (marked_lines(s.without) for s in features.segments if s.kind == SegmentKind.ARTICLE)
    return set(next(articles, range(features.text.count("\n") + 1)))


def _lines(text: str, repeats: Repeats | None) -> Iterator[list[ShownPart]]:
    line: list[ShownPart] = []
    for part in _parts(text, repeats):
        first, *more = part.text.split("\n")
        line.append(part._replace(text=first))
        for piece in more:
            yield line
            line = [part._replace(text=piece)]
    yield line


def _parts(text: str, repeats: Repeats | None) -> Iterator[ShownPart]:
    """The text cut at the edges of the repeated passages; a character that an edge cuts belongs to what follows."""
    data, at = text.encode("utf-8", "replace"), 0
    passages = enumerate([] if repeats is None else repeats.passages())
    spans = sorted((passage.start, passage.start + passage.size_bytes, place) for place, passage in passages)
    for start, end, place in spans:
        start, end = _whole(data, start), _whole(data, end)
        if at < start:
            yield ShownPart(data[at:start].decode(), None)
        yield ShownPart(data[start:end].decode(), place)
        at = end
    yield ShownPart(data[at:].decode(), None)


def _whole(data: bytes, at: int) -> int:
    while 0 < at < len(data) and data[at] & 0xC0 == 0x80:
        at -= 1
    return at
