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

    `word` has the words of all blocks one after the other, by their places in `vocabulary`; `first_word` is where each
    block begins, and the number of words at its end.
    """

    tags: list[str]
    parent: Ints  # of each element; the root's is the root
    depth: Ints  # by block elements
    last: Ints  # place of the last element of each subtree
    alike: Ints  # the same number: the same tag and class
    names: list[tuple[int, str]]  # place of an element -> the values of its class, id, role and itemprop
    hidden: list[int]  # places of elements that an attribute hides
    title: str
    lines: list[str]
    vocabulary: list[str]  # different words
    word: Ints
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
    modes, outers = [0], [0]  # of all elements; `outers`: the block element that has its text
    inner, above, kinds = [0], [0], [0]  # block elements: their places among all, their parents, their kinds
    for place in range(1, len(elements)):
        parent, tag = parents[place], every_tag[place]
        modes.append(modes[parent] | _MODES[tag] if tag in _MODES else modes[parent])
        outer = outers[parent]
        if tag in _INLINE:
            outers.append(outer)
        else:
            outers.append(len(inner))
            inner.append(place)
            above.append(outer)
            kinds.append(_KINDS.get(tag) or kinds[outer])
    last = list(range(len(parents)))
    for place in range(len(parents) - 1, 0, -1):
        if last[place] > last[parents[place]]:
            last[parents[place]] = last[place]
    is_block = np.zeros(len(elements), np.int64)
    is_block[inner] = 1
    begun = np.cumsum(is_block)
    ends = np.array(last)
    runs = _Text(elements, is_block.tolist(), np.array(parents), ends, np.array(modes)).runs(np.array(outers), begun)
    if runs is None:
        return None
    kept, tags = [elements[place] for place in inner], [every_tag[place] for place in inner]
    deep = [0]
    for parent in above[1:]:
        deep.append(deep[parent] + 1)
    names, classes, hidden = _attributes(kept)
    signatures: dict[tuple[str, str | None], int] = {}
    return PageBlocks(
        tags=tags,
        parent=np.array(above),
        depth=np.array(deep),
        last=begun[ends[inner]] - 1,
        alike=np.array([signatures.setdefault(pair, len(signatures)) for pair in zip(tags, classes, strict=True)]),
        names=names,
        hidden=hidden,
        title=next((element.text or "" for element in root.iter("title")), ""),
        kind=np.array(kinds)[runs["holder"]],
        **runs,
    )


class _Text:
    """The pieces of text in reading order."""

    def __init__(self, elements: list[Any], is_block: list[int], parents: Ints, last: Ints, modes: Ints) -> None:
        texts, tails = (
            [
                (place, text)
                for place, text in enumerate(found)
                if text and not (is_block[place] and text.isspace())  # in a line, blanks part words
            ]
            for found in ([element.text for element in elements], [element.tail for element in elements])
        )
        of_text, of_tail = (np.array([place for place, _ in found], np.int64) for found in (texts, tails))
        count = len(elements)
        # The tails after an element come from the inside to the outside, after its text
        keys = np.concatenate([of_text * count, last[of_tail] * count + count - of_tail])
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

        words = list(chain.from_iterable(split))
        place_of = {word: place for place, word in enumerate(dict.fromkeys(words))}
        in_link = (self.mode & _LINK) > 0
        return {
            "lines": lines,
            "vocabulary": list(place_of),
            "word": np.fromiter(map(place_of.__getitem__, words), np.int64, len(words)),
            "first_word": np.cumsum([0, *[len(words) for words in split]]),
            "holder": holder[starts][full],
            "chars": chars,
            "link_chars": chars_in(in_link),
            "code_chars": chars_in(self.mode == _CODE),
            "links": np.bincount(block_of[in_link & full[run_of]], minlength=len(lines)),
        }


def _attributes(elements: list[Any]) -> tuple[list[tuple[int, str]], list[str | None], list[int]]:
    """Place and names of elements that have some; the class of all; the places of those that an attribute hides."""
    named: list[tuple[int, str]] = []
    classes: list[str | None] = []
    hidden: list[int] = []
    for place, element in enumerate(elements):
        of_element, names = None, ""
        for name, value in element.items():
            if name == "class":
                of_element = value
                names = f"{value} {names}" if names else value
            elif name in _ATTRIBUTES:
                names = f"{names} {value}" if names else value
            elif name == "hidden" or (name == "style" and _HIDING.search(value)):
                hidden.append(place)
        classes.append(of_element)
        if names:
            named.append((place, names))
    return named, classes, hidden
