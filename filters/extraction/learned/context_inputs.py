"""The inputs that the second network has beside those of the first one: its probabilities around a block."""

from __future__ import annotations

import numpy as np

from filters.extraction.learned.inputs import Columns, Inputs, in_window, near, share, size
from filters.extraction.learned.page_blocks import Ints, PageBlocks

_WINDOWS = {"before": (-8, 0), "around": (-3, 4), "after": (1, 9), "far_before": (-24, 0), "far_after": (1, 25)}


def context_inputs(page: PageBlocks, probability: Ints) -> Columns:
    """The inputs of all blocks by their probabilities, in thousandths."""
    inputs, words = Columns(len(page.lines)), page.words
    add, expected = inputs.add, words * probability
    own, total = add("p", probability // 8), expected.sum()
    for away in (-4, -3, -2, -1, 1, 2, 3, 4):
        add(f"p{away:+d}", near(own, away))
    add("p_page", _mean(total, words.sum()))
    add("p_page_words", size(total // 1000))
    add("p_so_far", share(np.cumsum(expected) - expected, total))
    add("p_heading", np.where(page.heading < 0, 0, own[page.heading]))
    both = np.stack([expected, words])
    for side, window in _WINDOWS.items():
        add(f"p_{side}", _mean(*in_window(both, *window)))
    inner, of = (page.in_subtrees(column).astype(np.int64)[page.ancestors] for column in both)
    for level, (mean, part) in enumerate(zip(_mean(inner, of), share(inner, total), strict=True)):
        add(f"p_{level}", mean)
        add(f"p_part_{level}", part)
    alike = page.alike[page.holder]
    add("p_alike", _mean(*(np.bincount(alike, column)[alike].astype(np.int64) for column in (expected, words))))
    return inputs


def _mean(expected: Ints, words: Ints) -> Inputs:
    """A mean of thousandths, as an input."""
    return np.asarray(expected // np.maximum(words * 8, 1)).astype(np.uint8)
