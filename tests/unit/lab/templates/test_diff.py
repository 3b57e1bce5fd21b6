"""The words that two pages have in common."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.templates.diff import LEAST_WORDS, matches

PAGES = st.lists(st.integers(0, 6), max_size=60)
LONG = 100_000


@given(old=PAGES, new=PAGES)
def test_matches_are_equal_words_in_order(old: list[int], new: list[int]) -> None:
    """Each match has the same words on both sides; matches increase on both sides and do not overlap."""
    at = new_at = 0
    for match in matches(old, new):
        assert match.old >= at and match.new >= new_at
        at, new_at = match.old + match.size, match.new + match.size
        assert old[match.old : at] == new[match.new : new_at]
        assert match.size >= min(LEAST_WORDS, len(old), len(new))
    assert at <= len(old) and new_at <= len(new)


@given(page=PAGES)
def test_a_page_matches_itself_as_a_whole(page: list[int]) -> None:
    """Identical pages have one match, of all their words."""
    assert [match for match in matches(page, page) if match.size] == ([(0, 0, len(page))] if page else [])


@given(head=PAGES, tail=PAGES, old=PAGES, new=PAGES)
def test_a_common_head_and_tail_are_found(head: list[int], tail: list[int], old: list[int], new: list[int]) -> None:
    """Pages that differ in the middle only match on both sides of it."""
    ends = [number + 10 for number in head], [number + 20 for number in tail]
    size = sum(match.size for match in matches(ends[0] + old + ends[1], ends[0] + new + ends[1]))
    assert size >= sum(len(end) for end in ends if len(end) >= LEAST_WORDS)


def test_a_moved_block_between_others_is_matched_around() -> None:
    """A stretch that only one page has does not prevent matches before and after it."""
    found = matches([*range(20), *range(50, 60), *range(20, 40)], list(range(40)))
    assert found == [(0, 0, 20), (30, 20, 20)]


def test_repeated_text_is_paired_by_occurrence() -> None:
    """Without a triple that occurs once, the occurrences of a repeated one are paired in order."""
    menu = [1, 2, 3, 4]
    found = matches([9, *menu, 8, *menu, 7], [5, *menu, 6, *menu, 10])
    assert found == [(1, 1, 4), (6, 6, 4)]


def test_one_or_two_words_are_chance() -> None:
    """Less than three equal words in a row do not count, unless the pages have no more."""
    assert matches([1, 2, 3, 4, 5], [9, 2, 3, 8, 5]) == []
    assert matches([1, 2], [1, 2]) == [(0, 0, 2)]


DICE = random.Random(1)
HOSTILE: dict[str, Callable[[], tuple[list[int], list[int]]]] = {
    "one word": lambda: ([1] * LONG, [1] * (LONG - 1) + [2]),
    "two words": lambda: (DICE.choices((0, 1), k=LONG), DICE.choices((0, 1), k=LONG)),
    "reversed": lambda: (list(range(LONG)), list(range(LONG, 0, -1))),
    "shifted cycles": lambda: ([at % 317 for at in range(LONG)], [at * 7 % 317 for at in range(LONG)]),
    "nested gaps": lambda: ([at // 2 if at % 2 else LONG + at for at in range(LONG)], [at // 3 for at in range(LONG)]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_end(name: str) -> None:
    """Pages of 100,000 words that repeat, cross or nest are compared, in a bounded number of passes."""
    old, new = HOSTILE[name]()
    for match in matches(old, new):
        assert old[match.old : match.old + match.size] == new[match.new : match.new + match.size]
