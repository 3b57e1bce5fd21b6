"""The text blocks of a parsed page: runs of text between the edges of block elements.

Elements are read in document order, so a subtree is a range of places, and whatever is counted for each element is
summed over a subtree by a cumulative sum. Only block elements are kept; a line break counts as one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from filters.extraction.blocks import BlockKind
from filters.structure.names import UNSEEN
from filters.structure.page_lines import INLINE

if TYPE_CHECKING:
    from numpy import bool_, int64
    from numpy.typing import NDArray

    Ints = NDArray[int64]
    Flags = NDArray[bool_]

_INLINE = frozenset(INLINE)
_LINK, _CODE, _UNREAD = 1, 2, 4
_MODES = {
    "a": _LINK,
    **dict.fromkeys(("code", "kbd", "pre", "samp"), _CODE),
    **dict.fromkeys(UNSEEN, _UNREAD),
    **dict.fromkeys(("audio", "canvas", "datalist", "head", "iframe", "map", "object", "select"), _UNREAD),
    **dict.fromkeys(("svg", "textarea", "video"), _UNREAD),
}
_KINDS = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), int(BlockKind.HEADING)),
    **dict.fromkeys(("dd", "dt", "li"), int(BlockKind.ITEM)),
    **dict.fromkeys(("td", "th"), int(BlockKind.CELL)),
    "pre": int(BlockKind.CODE),
    "blockquote": int(BlockKind.QUOTE),
}
_ATTRIBUTES = ("id", "role", "itemprop")  # beside class
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden")


@dataclass(frozen=True, slots=True)
class PageBlocks:
    """The blocks of a page in reading order, and the block elements in document order, by their places.

    `words` has the words of all blocks one after the other; `first_word` is where each block begins, and the number of
    words at its end.
    """

    tags: list[str]
    parent: Ints  # of each element; the root's is the root
    depth: Ints  # by block elements
    last: Ints  # place of the last element of each subtree
    alike: Ints  # the same number: the same tag and class
    names: list[tuple[int, str]]  # place of an element -> the values of its class, id, role and itemprop
    hidden: Ints  # places of elements that an attribute hides
    title: str
    lines: list[str]
    words: list[str]
    first_word: Ints
    holder: Ints  # of each block: the element that has its text
    kind: Ints
    chars: Ints
    link_chars: Ints
    code_chars: Ints
    links: Ints  # pieces of text in links


def page_blocks(root: Any) -> PageBlocks | None:
    """The blocks of a tree, which is not changed; None for a page without text."""
    elements = list(root.iter())
    every_tag = [element.tag for element in elements]
    place_of = dict(zip(elements, range(len(elements)), strict=True))
    parents = [0, *[place_of[element.getparent()] for element in elements[1:]]]
    inline = [tag in _INLINE for tag in every_tag]
    inline[0] = False
    depths, modes, outers = [0], [0], [0]  # of all elements; `outers`: the block element that has its text
    kept, above, kinds = [elements[0]], [0], [0]  # block elements
    for place in range(1, len(elements)):
        parent = parents[place]
        tag = every_tag[place]
        depths.append(depths[parent] + 1)
        modes.append(modes[parent] | _MODES.get(tag, 0))
        if inline[place]:
            outers.append(outers[parent])
        else:
            outers.append(len(kept))
            kept.append(elements[place])
            above.append(outers[parent])
            kinds.append(_KINDS.get(tag) or kinds[outers[parent]])
    last = list(range(len(parents)))
    for place in range(len(parents) - 1, 0, -1):
        if last[place] > last[parents[place]]:
            last[parents[place]] = last[place]
    text = _Text(elements, inline, np.array(parents), np.array(depths), np.array(last), np.array(modes))
    outer = np.array(outers)
    runs = text.runs(outer, np.cumsum(~np.array(inline)))
    if runs is None:
        return None
    ends = np.cumsum(~np.array(inline))[np.array(last)] - 1  # in places of block elements
    inner = np.flatnonzero(~np.array(inline))
    tags = [element.tag for element in kept]
    classes = [element.get("class") for element in kept]
    signatures: dict[tuple[str, str | None], int] = {}
    deep = np.zeros(len(kept), np.int64)
    for place, parent in enumerate(above[1:], start=1):
        deep[place] = deep[parent] + 1
    return PageBlocks(
        tags=tags,
        parent=np.array(above),
        depth=deep,
        last=ends[inner],
        alike=np.array([signatures.setdefault(pair, len(signatures)) for pair in zip(tags, classes, strict=True)]),
        names=_names(kept, classes),
        hidden=np.array(_hidden(kept), np.int64),
        title=next((element.text or "" for element in root.iter("title")), ""),
        kind=np.array(kinds)[runs["holder"]],
        **runs,
    )


class _Text:
    """The pieces of text in reading order."""

    def __init__(
        self, elements: list[Any], inline: list[bool], parents: Ints, depths: Ints, last: Ints, modes: Ints
    ) -> None:
        texts, tails = (
            [
                (place, text)
                for place, text in enumerate(found)
                if text and (inline[place] or not text.isspace())  # blanks part words in a line
            ]
            for found in ([element.text for element in elements], [element.tail for element in elements])
        )
        of_text, of_tail = (np.array([place for place, _ in found], np.int64) for found in (texts, tails))
        deepest = int(depths.max()) + 2
        # The tails after an element come from the inside to the outside, after its text
        keys = np.concatenate([of_text * deepest, last[of_tail] * deepest + deepest - 1 - depths[of_tail]])
        owner = np.concatenate([of_text, parents[of_tail]])
        order = np.argsort(keys)
        order = order[modes[owner[order]] < _UNREAD]
        pieces = [text for _, text in chain(texts, tails)]
        self.pieces = [pieces[place] for place in order.tolist()]
        self.owner = owner[order]
        self.at = np.concatenate([of_text, last[of_tail]])[order]
        self.mode = modes[self.owner]

    def runs(self, outer: Ints, begun: Ints) -> dict[str, Any] | None:
        """The columns of blocks of PageBlocks; None without text."""
        if not self.pieces:
            return None
        holder, starts_of = outer[self.owner], begun[self.at]
        cuts = np.flatnonzero((starts_of[1:] != starts_of[:-1]) | (holder[1:] != holder[:-1])) + 1
        starts = [0, *cuts.tolist()]
        pieces = self.pieces
        split = [
            pieces[start].split() if end - start == 1 else "".join(pieces[start:end]).split()
            for start, end in pairwise([*starts, len(pieces)])
        ]
        full = np.array([bool(words) for words in split])
        if not full.any():
            return None
        run_of = np.repeat(np.arange(len(split)), np.diff([*starts, len(pieces)]))
        block_of = np.cumsum(full)[run_of] - 1
        split = [words for words in split if words]
        lines = [" ".join(words) for words in split]
        chars = np.array([len(line) for line in lines])

        def chars_in(marked: Flags) -> Ints:
            places = np.flatnonzero(marked & full[run_of])
            lengths = [len(" ".join(pieces[place].split())) for place in places.tolist()]
            counted = np.bincount(block_of[places], lengths, len(lines)).astype(np.int64)
            return np.asarray(np.minimum(counted, chars))

        in_link = (self.mode & _LINK) > 0
        return {
            "lines": lines,
            "words": [word for words in split for word in words],
            "first_word": np.cumsum([0, *[len(words) for words in split]]),
            "holder": holder[starts][full],
            "chars": chars,
            "link_chars": chars_in(in_link),
            "code_chars": chars_in(self.mode == _CODE),
            "links": np.bincount(block_of[in_link & full[run_of]], minlength=len(lines)),
        }


def _names(elements: list[Any], classes: list[str | None]) -> list[tuple[int, str]]:
    found = {place: value for place, value in enumerate(classes) if value}
    for attribute in _ATTRIBUTES:
        for place, element in enumerate(elements):
            if value := element.get(attribute):
                found[place] = f"{found[place]} {value}" if place in found else value
    return list(found.items())


def _hidden(elements: list[Any]) -> list[int]:
    styles = [(place, value) for place, element in enumerate(elements) if (value := element.get("style"))]
    return [place for place, value in styles if _HIDING.search(value)] + [
        place for place, element in enumerate(elements) if element.get("hidden") is not None
    ]
