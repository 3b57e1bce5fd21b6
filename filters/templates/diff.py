"""The words that two pages have in common, in the same order.

Anchors are triples of words that occur once in each page; where there is none, the first, second, … occurrences of a
triple are paired. The longest increasing sequence of anchors is kept, each is extended, and the gaps between them are
compared in the same way. As in `lxml.html.diff`, shorter matches do not count: on pages of one site most are chance.
A level of gaps takes n log n, and the number of levels is bounded: hostile pages take no longer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

LEAST_WORDS = 3
"""Words of a match at least; of pages that have fewer, all."""

_LEVELS = 12


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
    numbers: dict[tuple[int, ...], int] = {}
    old_triples, new_triples = (
        [numbers.setdefault(triple, len(numbers)) for triple in zip(words, words[1:], words[2:], strict=False)]
        for words in (old, new)
    )
    whole = _Gap(0, len(old), 0, len(new))
    found = _ends(old, new, whole)
    gaps = _gaps(whole, found)
    for _ in range(_LEVELS):
        left: list[_Gap] = []
        for gap in gaps:
            anchors = _anchors(
                old_triples[gap.old : gap.old_end - 2], new_triples[gap.new : gap.new_end - 2], gap.old, gap.new
            )
            if inside := _extended(old, new, gap, anchors):
                found += inside
                left += _gaps(gap, inside)
        gaps = left
    least = min(LEAST_WORDS, max(1, len(old), len(new)))
    return sorted(match for match in found if match.size >= least)


def _gaps(gap: _Gap, inside: Sequence[Match]) -> list[_Gap]:
    """What is left of a gap around the matches in it, where there is room for another match."""
    starts = [(gap.old, gap.new), *((match.old + match.size, match.new + match.size) for match in inside)]
    ends = [*((match.old, match.new) for match in inside), (gap.old_end, gap.new_end)]
    return [
        _Gap(old, old_end, new, new_end)
        for (old, new), (old_end, new_end) in zip(starts, ends, strict=True)
        if old_end - old >= LEAST_WORDS and new_end - new >= LEAST_WORDS
    ]


def _ends(old: Sequence[int], new: Sequence[int], whole: _Gap) -> list[Match]:
    """What the pages have in common at their beginning and at their end."""
    most = min(whole.old_end, whole.new_end)
    head = next((at for at in range(most) if old[at] != new[at]), most)
    tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
    return [Match(0, 0, head), Match(whole.old_end - tail, whole.new_end - tail, tail)]


def _anchors(old: Sequence[int], new: Sequence[int], old_at: int, new_at: int) -> list[tuple[int, int]]:
    """Pairs of places with equal triples, increasing in both; the lists begin at these places of the pages."""
    old_once, new_once = _once(old), _once(new)
    pairs = [(place, new_once[triple]) for triple, place in old_once.items() if triple in new_once]
    if not pairs:
        old_places, new_places = _places(old), _places(new)
        pairs = sorted(
            pair
            for triple, places in old_places.items()
            if triple in new_places
            for pair in zip(places, new_places[triple], strict=False)
        )
    return [(old_at + place, new_at + new_place) for place, new_place in _increasing(pairs)]


def _once(triples: Sequence[int]) -> dict[int, int]:
    """Triple -> place, of those that occur once."""
    last = {triple: place for place, triple in enumerate(triples)}
    if len(last) == len(triples):
        return last
    first = {triple: place for place, triple in zip(range(len(triples) - 1, -1, -1), reversed(triples), strict=True)}
    return {triple: place for triple, place in last.items() if first[triple] == place}


def _places(triples: Sequence[int]) -> dict[int, list[int]]:
    found: defaultdict[int, list[int]] = defaultdict(list)
    for place, triple in enumerate(triples):
        found[triple].append(place)
    return found


def _increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of the pairs, which increase in the first place, that also increases in the second."""
    ends: list[int] = []  # second places of the last pair of the best sequences, by their length
    last: list[int] = []  # and the pairs
    before = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [number]
    found = []
    number = last[-1] if last else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _extended(old: Sequence[int], new: Sequence[int], gap: _Gap, anchors: Sequence[tuple[int, int]]) -> list[Match]:
    """Matches around the anchors, as long as they get within the gap."""
    found = []
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
        found.append(Match(first, new_first, old_at - first))
    return found
