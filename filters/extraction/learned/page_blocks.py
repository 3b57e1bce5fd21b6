"""The text blocks of a parsed page: runs of text between the edges of block elements.

Elements are read in document order, so a subtree is a range of places, and whatever is counted for each element is
summed over a subtree by a cumulative sum. Only block elements are kept; a line break counts as one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from filters.extraction.blocks import LISTED, BlockKind
from filters.structure.measures import HIDING
from filters.structure.names import UNSEEN
from filters.structure.page_lines import INLINE

Ints = NDArray[np.int64]

LEVELS = 5
"""The element that holds a block, and its ancestors, of which there are inputs."""

UNREAD = ("audio", "canvas", "datalist", "head", "iframe", "map", "object", "select", "svg", "textarea", "video")
"""Elements whose text is no text of the page, beside those of UNSEEN."""

_INLINE = frozenset(INLINE)
_LINK, _CODE, _UNREAD = 1, 2, 3  # the highest one around a text is its mode
_MODES = {
    "a": _LINK,
    **dict.fromkeys(("code", "kbd", "pre", "samp"), _CODE),
    **dict.fromkeys((*UNSEEN, *UNREAD), _UNREAD),
}
_KINDS = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), int(BlockKind.HEADING)),
    **dict.fromkeys(("dd", "dt", "li"), int(BlockKind.ITEM)),
    **dict.fromkeys(("td", "th"), int(BlockKind.CELL)),
    "pre": int(BlockKind.CODE),
    "blockquote": int(BlockKind.QUOTE),
}
_ATTRIBUTES = ("id", "role", "itemprop")  # beside class


@dataclass(frozen=True)
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
    item: Ints  # of each block: place of the list item or table cell that it is a part of; 0 = none
    chars: Ints
    link_chars: Ints
    code_chars: Ints
    links: Ints  # pieces of text in links

    @cached_property
    def words(self) -> Ints:
        """The number of words of each block."""
        return np.diff(self.first_word)

    @cached_property
    def heading(self) -> Ints:
        """The place of the last heading up to each block; -1 = none."""
        heads = np.where(self.kind == BlockKind.HEADING, np.arange(len(self.kind)), -1)
        return np.asarray(np.maximum.accumulate(heads))

    @cached_property
    def ancestors(self) -> Ints:
        """[LEVELS, blocks]: the element that holds each block, then its parent, …."""
        levels = [self.holder]
        while len(levels) < LEVELS:
            levels.append(self.parent[levels[-1]])
        return np.stack(levels)

    def in_words(self, values: Any) -> Ints:
        """The sum for each block of the values of its words."""
        total = np.concatenate([[0], np.cumsum(values)])
        return np.asarray(np.diff(total[self.first_word]))

    def in_subtrees(self, column: Any) -> NDArray[Any]:
        """The sum for each element of a column of the blocks in its subtree."""
        total = np.concatenate([[0], np.cumsum(np.bincount(self.holder, column, len(self.tags)))])
        return np.asarray(total[self.last + 1] - total[:-1])


def page_blocks(root: Any) -> PageBlocks | None:
    """The blocks of a tree, which is not changed; None for a page without text."""
    elements = list(root.iter())
    every_tag = [element.tag for element in elements]
    place_of = dict(zip(elements, range(len(elements)), strict=True))
    parents = [0, *[place_of[element.getparent()] for element in elements[1:]]]
    modes, outers = [0], [0]  # of all elements; `outers`: the block element that has its text
    inner, above, deep = [0], [0], [0]  # block elements: places among all, parents, depths
    kinds, items = [0], [0]  # likewise
    for place in range(1, len(elements)):
        parent, tag = parents[place], every_tag[place]
        modes.append(max(modes[parent], _MODES[tag]) if tag in _MODES else modes[parent])
        outer = outers[parent]
        if tag in _INLINE:
            outers.append(outer)
        else:
            outers.append(len(inner))
            kind = _KINDS.get(tag)
            kinds.append(kinds[outer] if kind is None else kind)
            items.append(items[outer] if kind is None else place if kind in LISTED else 0)
            inner.append(place)
            above.append(outer)
            deep.append(deep[outer] + 1)
    last = list(range(len(parents)))
    for place in range(len(parents) - 1, 0, -1):
        if last[place] > last[parents[place]]:
            last[parents[place]] = last[place]
    is_block = np.zeros(len(elements), np.int64)
    is_block[inner] = 1
    begun = np.cumsum(is_block)
    ends = np.array(last)
    blocks = _columns(elements, is_block.tolist(), np.array(parents), ends, np.array(modes), np.array(outers), begun)
    if blocks is None:
        return None
    kept, tags = [elements[place] for place in inner], [every_tag[place] for place in inner]
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
        kind=np.array(kinds)[blocks["holder"]],
        item=np.array(items)[blocks["holder"]],
        **blocks,
    )


def _columns(
    elements: list[Any], is_block: list[int], parents: Ints, last: Ints, modes: Ints, outer: Ints, begun: Ints
) -> dict[str, Any] | None:
    """The columns of blocks of PageBlocks; None without text. `begun`: block elements up to an element."""
    texts, tails = (
        [
            (place, text)
            for place, text in enumerate(texts_of)
            if text and not (is_block[place] and text.isspace())  # in a line, blanks part words
        ]
        for texts_of in ([element.text for element in elements], [element.tail for element in elements])
    )
    of_text, of_tail = (np.array([place for place, _ in placed], np.int64) for placed in (texts, tails))
    # The tails after an element come from the inside to the outside, after its text
    count = len(elements)
    order = np.argsort(np.concatenate([of_text * count, last[of_tail] * count + count - of_tail]))
    owner = np.concatenate([of_text, parents[of_tail]])
    order = order[modes[owner[order]] < _UNREAD]
    if not len(order):
        return None
    owner, after = owner[order], begun[np.concatenate([of_text, last[of_tail]])[order]]
    every = [text for _, text in chain(texts, tails)]
    pieces = [every[place] for place in order.tolist()]
    holder, mode = outer[owner], modes[owner]
    is_new = np.ones(len(pieces), bool)  # begins a block
    is_new[1:] = (after[1:] != after[:-1]) | (holder[1:] != holder[:-1])
    starts = np.flatnonzero(is_new)
    split = ["".join(pieces[start:end]).split() for start, end in pairwise([*starts.tolist(), len(pieces)])]
    full = np.array([bool(words) for words in split])
    if not full.any():
        return None
    run = np.cumsum(is_new) - 1  # of a piece
    block_of = np.where(full, np.cumsum(full) - 1, -1)[run]  # -1: only blanks
    split = [words for words in split if words]
    words = list(chain.from_iterable(split))
    place_of = {word: place for place, word in enumerate(dict.fromkeys(words))}
    is_new[1:] |= mode[1:] != mode[:-1]  # neighbours of one mode are counted together, as in `main_text`
    marked = np.zeros((_CODE + 1, len(split)), np.int64)
    for start, end in pairwise([*np.flatnonzero(is_new).tolist(), len(pieces)]):
        if mode[start] and block_of[start] >= 0:
            marked[mode[start], block_of[start]] += len(" ".join("".join(pieces[start:end]).split()))
    lines = [" ".join(words) for words in split]
    return {
        "lines": lines,
        "vocabulary": list(place_of),
        "word": np.fromiter(map(place_of.__getitem__, words), np.int64, len(words)),
        "first_word": np.cumsum([0, *[len(words) for words in split]]),
        "holder": holder[starts][full],
        "chars": np.array([len(line) for line in lines]),
        "link_chars": marked[_LINK],
        "code_chars": marked[_CODE],
        "links": np.bincount(block_of[(mode == _LINK) & (block_of >= 0)], minlength=len(lines)),
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
            elif name == "hidden" or (name == "style" and HIDING.search(value)):
                hidden.append(place)
        classes.append(of_element)
        if names:
            named.append((place, names))
    return named, classes, hidden
