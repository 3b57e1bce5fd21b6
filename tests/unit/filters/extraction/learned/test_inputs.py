"""Sums and neighbours of blocks, beside plain loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from filters.extraction.html_tree import parse
from filters.extraction.learned.inputs import MOST, in_window, inside, near, share, size
from filters.extraction.learned.page_blocks import LEVELS, page_blocks

COLUMNS = st.lists(st.integers(0, 300), min_size=1, max_size=12)
TREES = st.recursive(
    st.just("word "),
    lambda of: st.lists(of, max_size=3).map(lambda inner: f"<div>{''.join(inner)}</div>"),
    max_leaves=9,
)


@given(COLUMNS, st.integers(-9, 9).filter(bool))
def test_near_blocks_are_zero_beyond_the_page(column: list[int], away: int) -> None:
    """Each block has the number of the block at that distance."""
    found = near(np.array([column, column]), away).tolist()
    assert found == [[column[at] if 0 <= (at := place + away) < len(column) else 0 for place in range(len(column))]] * 2


@given(COLUMNS, st.integers(-9, 9), st.integers(0, 9))
def test_a_window_is_summed_within_the_page(column: list[int], start: int, width: int) -> None:
    """From `start` to before `start + width`, by the distance from each block."""
    numbers = range(len(column))
    expected = [sum(column[at] for at in numbers if start <= at - place < start + width) for place in numbers]
    assert in_window(np.array(column), start, start + width).tolist() == expected


@given(st.integers(0, 1 << 20), st.integers(0, 1 << 20))
def test_sizes_rise_and_shares_are_in_32nds(small: int, large: int) -> None:
    """A step of the scale is at most a quarter, up to its end; a share drops its rest; all fit into an input."""
    small, large = sorted((small, large))
    assert size(small) <= size(large) <= MOST
    assert size(small) < size(large) or large <= small * 5 // 4 + 1 or large >= 1 << 15
    assert int(share(small, large)) == small * 32 // max(large, 1) <= 32


@given(TREES)
def test_subtrees_and_ancestors_are_those_of_the_tree(body: str) -> None:
    """Sums over subtrees, the number of groups around an element, and the ancestors of each block."""
    tree = parse(f"<html><body>{body} end</body></html>")
    page = page_blocks(tree)
    assert page is not None
    elements = [element for element in tree.iter() if element.tag != "br"]
    below = [[elements.index(of) for of in element.iter()] for element in elements]
    held = page.holder.tolist()
    assert page.in_subtrees(page.words).tolist() == [
        sum(words for words, holder in zip(page.words.tolist(), held, strict=True) if holder in places)
        for places in below
    ]
    group = [place for place in range(len(elements)) if place % 2]
    assert inside(page.last, [group])[0].tolist() == [
        sum(place in below[of] for of in group) for place in range(len(elements))
    ]
    for block, holder in enumerate(held):
        chain = [elements[holder], *elements[holder].iterancestors()]
        expected = [elements.index(chain[min(level, len(chain) - 1)]) for level in range(LEVELS)]
        assert page.ancestors[:, block].tolist() == expected
