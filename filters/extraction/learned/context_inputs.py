"""The inputs of the second network: the first network's probabilities around a block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from filters.extraction.blocks import BlockKind
from filters.extraction.learned.inputs import Columns, near, share, size
from filters.extraction.learned.page_blocks import PageBlocks

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

    Ints = NDArray[int64]

_LEVELS = 5


def context_inputs(page: PageBlocks, probability: Ints) -> Columns:
    """The inputs of all blocks by their probabilities, in thousandths."""
    found = Columns(len(page.lines))
    add, holder, last = found.add, page.holder, page.last
    blocks = len(holder)
    rounded = probability // 8
    add("p", rounded)
    for away in (-4, -3, -2, -1, 1, 2, 3, 4):
        add(f"p{away:+d}", near(rounded, away))
    words = page.first_word[1:] - page.first_word[:-1]
    expected = words * probability
    total = expected.sum()
    add("p_page", total * 4 // (words.sum() * 32))
    add("p_page_words", size(total // 1000))
    add("p_so_far", share(np.cumsum(expected) - expected, total))
    for side, start, end in (
        ("before", 0, 8),
        ("around", 5, 12),
        ("after", 9, 17),
        ("far_before", -16, 8),
        ("far_after", 9, 33),
    ):
        parts = []
        for column in (expected, words):
            running = np.concatenate([np.zeros(25, np.int64), np.cumsum(column), np.full(24, column.sum())])
            parts.append(running[end + 16 : end + 16 + blocks] - running[start + 16 : start + 16 + blocks])
        add(f"p_{side}", _mean(parts[0], parts[1]))
    sums = [
        np.concatenate([[0], np.cumsum(np.bincount(holder, column, len(page.tags)).astype(np.int64))])
        for column in (expected, words)
    ]
    at = holder
    for level in range(_LEVELS):
        inner, of = (numbers[last[at] + 1] - numbers[at] for numbers in sums)
        add(f"p_{level}", _mean(inner, of))
        add(f"p_part_{level}", share(inner, total))
        at = page.parent[at]
    alike = page.alike[holder]
    add("p_alike", _mean(*(np.bincount(alike, column)[alike].astype(np.int64) for column in (expected, words))))
    numbers = np.arange(blocks)
    before = np.maximum.accumulate(np.where(page.kind == BlockKind.HEADING, numbers, -1))
    add("p_heading", np.where(before < 0, 0, rounded[before]))
    sure = np.flatnonzero((probability >= 500) & (words >= 15))
    if len(sure):
        add("from_sure", size(np.maximum(sure[0] - numbers, 0)))
        add("past_sure", size(np.maximum(numbers - sure[-1], 0)))
        gap = np.searchsorted(sure, numbers)
        add("to_next_sure", size(np.where(gap < len(sure), sure[np.minimum(gap, len(sure) - 1)] - numbers, blocks)))
        add("to_last_sure", size(np.where(gap > 0, numbers - sure[np.maximum(gap - 1, 0)], blocks)))
    else:
        for name in ("from_sure", "past_sure", "to_next_sure", "to_last_sure"):
            add(name, 127)
    return found


def _mean(expected: Ints, words: Ints) -> Ints:
    """A mean of thousandths, as an input."""
    return expected // np.maximum(words * 8, 1)
