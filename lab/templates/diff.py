"""The words that two pages have in common, in the same order.

Anchors are triples of words that occur once in each page; where there is none, the first, second, … occurrences of a
triple are paired. The longest increasing sequence of anchors is kept, each is extended, and the gaps between them are
compared in the same way. As in `lxml.html.diff`, shorter matches do not count: on pages of one site most are chance.
A level of gaps takes n log n, and the number of levels is bounded: hostile pages take no longer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEAST_WORDS = 3
"""Words of a match at least; of pages that have fewer, all."""

_LEVELS = 12
_SMALL = 128  # triples, up to which Python's sets are faster; most gaps have nothing in common
_FACTOR = 0x2545F4914F6CDD1D  # of xorshift64*; products wrap at 64 bits

Places = NDArray[np.int64]


class Match(NamedTuple):
    """`size` equal words, from place `old` of one page and `new` of the other."""

    old: int
    new: int
    size: int


class _Gap(NamedTuple):
    """A stretch of each page that is not compared yet."""

    old: int
    old_end: int
    new: int
    new_end: int


def matches(old: Sequence[int], new: Sequence[int]) -> list[Match]:
    """The matches of two pages, in order. Equal words have equal numbers."""
    old_triples, new_triples = _triples(old), _triples(new)
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
    whole = _Gap(0, len(old), 0, len(new))
    all_matches = [Match(0, 0, head), Match(len(old) - tail, len(new) - tail, tail)]
    gaps = _gaps(whole, all_matches)
    for _ in range(_LEVELS):
        left: list[_Gap] = []
        for gap in gaps:
            at, new_at = _anchors(old_triples[gap.old : gap.old_end - 2], new_triples[gap.new : gap.new_end - 2])
            anchors = zip((at + gap.old).tolist(), (new_at + gap.new).tolist(), strict=True)
            if inside := _extended(old, new, gap, anchors):
                all_matches += inside
                left += _gaps(gap, inside)
        gaps = left
    least = min(LEAST_WORDS, max(1, len(old), len(new)))
    return sorted(match for match in all_matches if match.size >= least)


def _triples(words: Sequence[int]) -> Places:
    """A hash for each three words."""
    numbers = np.array(words, np.int64)
    return np.asarray((numbers[:-2] * _FACTOR + numbers[1:-1]) * _FACTOR + numbers[2:])


def _gaps(gap: _Gap, inside: Sequence[Match]) -> list[_Gap]:
    """What is left of a gap around the matches in it, where there is room for another match."""
    starts = [(gap.old, gap.new), *((match.old + match.size, match.new + match.size) for match in inside)]
    ends = [*((match.old, match.new) for match in inside), (gap.old_end, gap.new_end)]
    return [
        _Gap(old, old_end, new, new_end)
        for (old, new), (old_end, new_end) in zip(starts, ends, strict=True)
        if old_end - old >= LEAST_WORDS and new_end - new >= LEAST_WORDS
    ]


def _anchors(old: Places, new: Places) -> tuple[Places, Places]:
    """Places with equal triples, increasing on both sides."""
    if len(old) + len(new) < _SMALL and set(old.tolist()).isdisjoint(new.tolist()):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    _, numbers = np.unique(np.concatenate((old, new)), return_inverse=True)
    sides = numbers[: len(old)], numbers[len(old) :]
    old_counts, new_counts = (np.bincount(side, minlength=len(numbers)) for side in sides)
    once = (old_counts == 1) & (new_counts == 1)
    if not once.any():
        old_keys, new_keys = (side * len(numbers) + _occurrences(side) for side in sides)
        _, old_at, new_at = np.intersect1d(old_keys, new_keys, assume_unique=True, return_indices=True)
        return _increasing(old_at, new_at)
    at = np.empty((2, len(numbers)), np.int64)
    for places, side in zip(at, sides, strict=True):
        places[side] = np.arange(len(side))
    return _increasing(at[0][once], at[1][once])


def _occurrences(side: Places) -> Places:
    """For each place, how often its number comes before it."""
    order = np.argsort(side, kind="stable")
    earlier = np.empty(len(side), np.int64)
    earlier[order] = np.arange(len(side)) - np.searchsorted(side[order], side[order])
    return earlier


def _increasing(old: Places, new: Places) -> tuple[Places, Places]:
    """The longest part of the pairs of places that increases on both sides."""
    order = np.argsort(old)
    old, new = old[order], new[order]
    if (np.diff(new) > 0).all():
        return old, new
    ends: list[int] = []  # new places of the last pair of the best sequences, by their length
    last: list[int] = []  # numbers of these pairs
    before = []
    for number, place in enumerate(new.tolist()):
        length = bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [number]
    longest = []
    number = last[-1]
    while number >= 0:
        longest.append(number)
        number = before[number]
    return old[longest[::-1]], new[longest[::-1]]


def _extended(old: Sequence[int], new: Sequence[int], gap: _Gap, anchors: Iterable[tuple[int, int]]) -> list[Match]:
    """Matches around the anchors, as long as they get within the gap."""
    extended = []
    old_at, old_end, new_at, new_end = gap
    for first, new_first in anchors:
        if first < old_at or new_first < new_at:
            continue  # within the match before
        size = LEAST_WORDS
        while first > old_at and new_first > new_at and old[first - 1] == new[new_first - 1]:
            first, new_first, size = first - 1, new_first - 1, size + 1
        old_at, new_at = first + size, new_first + size
        while old_at < old_end and new_at < new_end and old[old_at] == new[new_at]:
            old_at, new_at = old_at + 1, new_at + 1
        extended.append(Match(first, new_first, old_at - first))
    return extended
