"""The elements of a page and the text in each, as arrays: a page of many or deep elements takes linear time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from filters.structure.page_lines import Characters, Mark, characters_of

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
    parents: Numbers  # places; that of the root is 0
    is_block: npt.NDArray[np.bool_]  # or with a block inside; the root is none
    inked: Numbers
    prose: Numbers

    def end_place(self, place: int) -> int:
        """The place after those of the elements inside an element."""
        return int(self.starts.searchsorted(self.ends[place]))

    def span(self, place: int) -> tuple[int, int]:
        """Begin and end of an element in `characters`."""
        return int(self.marks[self.starts[place]]), int(self.marks[self.ends[place]])


def text_tree(elements: Sequence[Any], visible: bytes) -> TextTree | None:
    """The tree of a page by its elements and its visible text; None for a page that has marks of its own."""
    characters = characters_of(visible)
    marks = np.flatnonzero(characters >= Mark.END_OF_BLOCK)
    kinds = characters[marks]
    is_end = (kinds == Mark.END) | (kinds == Mark.END_OF_BLOCK)
    starts, ends = np.flatnonzero(~is_end), np.flatnonzero(is_end)
    if not len(starts) == len(ends) == len(elements):
        return None
    depths = np.cumsum(np.where(is_end, -1, 1))
    by_depth, order = np.argsort(depths[starts], kind="stable"), np.argsort(depths[ends], kind="stable")
    ends = ends[order][np.argsort(by_depth)]
    keys = depths[starts] * len(marks) + starts
    parents = by_depth[(keys[by_depth].searchsorted(keys - len(marks)) - 1).clip(0)]

    kinds = kinds[starts]
    blocks = np.concatenate(([0], np.cumsum(kinds == Mark.BLOCK)))
    last = starts.searchsorted(ends)
    has_block = blocks[last] > blocks[1:]
    is_silent = (kinds == Mark.WIDGET) | (kinds == Mark.UNSEEN)
    is_block = ((kinds == Mark.BLOCK) | has_block) & ~is_silent
    is_block[0] = False
    inked = np.cumsum((characters > _BLANK) & (characters < Mark.END_OF_BLOCK))[marks]
    is_silent |= (kinds == Mark.LINK) & ~has_block
    silent = np.zeros(len(marks), np.int64)
    silent[starts[is_silent]], silent[ends[is_silent]] = 1, -1
    gained = np.diff(inked, prepend=0)
    gained[1:][silent.cumsum()[:-1] > 0] = 0
    return TextTree(elements, characters, marks, starts, ends, parents, is_block, inked, gained.cumsum())
