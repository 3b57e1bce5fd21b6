"""The elements of a page and the text in each, as arrays: a page of many or deep elements takes linear time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from filters.structure.page_lines import Characters, TextMark

Numbers = npt.NDArray[np.int64]

_BLANK = 0x20  # and below


class TextTree(NamedTuple):
    """Elements in document order; an element's place is its index. `starts` and `ends` are indexes of marks.

    `inked`: of each mark, characters before it that are not blank; `prose`: of these, those outside links and widgets.
    """

    elements: Sequence[Any]
    characters: Characters
    marks: Numbers  # their indexes in `characters`
    starts: Numbers
    ends: Numbers
    after: Numbers  # the place after those of the elements inside
    blocks: Numbers  # the places of blocks, and of other elements with a block inside, but the root
    parents: Numbers  # of these
    inked: Numbers
    prose: Numbers

    def span(self, place: int) -> tuple[int, int]:
        """Begin and end of an element in `characters`."""
        return int(self.marks[self.starts[place]]), int(self.marks[self.ends[place]])


def text_tree(elements: Sequence[Any], characters: Characters) -> TextTree | None:
    """The tree of a page by its elements and its marked text; None for a page that has marks of its own."""
    marks = np.flatnonzero(characters >= TextMark.BLOCK)
    kinds = characters[marks]
    is_start = (kinds < TextMark.END_OF_NOSCRIPT) | (kinds > TextMark.END)
    starts, ends = np.flatnonzero(is_start), np.flatnonzero(~is_start)
    if not len(starts) == len(ends) == len(elements):
        return None
    started = is_start.cumsum()
    depths = (2 * started - np.arange(1, len(marks) + 1)).astype(np.int16)  # elements that are open after a mark
    by_depth = depths[starts].argsort(kind="stable")
    ends[by_depth] = ends[depths[ends].argsort(kind="stable")]

    kinds = kinds[starts]
    after = started[ends]
    known = np.concatenate(([0], (kinds == TextMark.BLOCK).cumsum()))
    has_block = known[after] > known[1:]
    is_silent = (kinds == TextMark.WIDGET) | (kinds == TextMark.UNSEEN)
    is_block = ((kinds == TextMark.BLOCK) | has_block) & ~is_silent
    is_block[0] = False
    blocks = is_block.nonzero()[0]
    keys = depths[starts].astype(np.int64) * len(marks) + starts
    parents = by_depth[keys[by_depth].searchsorted(keys[blocks] - len(marks)) - 1]
    is_silent |= (kinds == TextMark.LINK) & ~has_block
    silent = np.zeros(len(marks), np.int8)
    silent[starts[is_silent]], silent[ends[is_silent]] = 1, -1
    inked = marks - np.arange(len(marks)) - (characters <= _BLANK).cumsum(dtype=np.int32)[marks]
    gained = inked.copy()
    gained[1:] -= inked[:-1]
    gained[1:][silent.cumsum()[:-1] > 0] = 0
    return TextTree(elements, characters, marks, starts, ends, after, blocks, parents, inked, gained.cumsum())
