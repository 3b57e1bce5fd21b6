"""The places of words as bits of whole numbers, so that one operation advances a comparison with many texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

GUARD = ""
"""Stands between two texts or lines, where it stops the carry of an addition; no word is empty."""


def word_places(words: Sequence[str], wanted: Collection[str]) -> dict[str, int]:
    """Of each wanted word that there is: a number with a bit at each of its places."""
    places = defaultdict[str, list[int]](list)
    for at, word in enumerate(words):
        if word in wanted:
            places[word].append(at)
    return {word: as_bits(of, len(words)) for word, of in places.items()}


def as_bits(places: Iterable[int], size: int) -> int:
    """A number of `size` bits with these set: quicker than to shift each."""
    held = bytearray(size // 8 + 1)
    for at in places:
        held[at >> 3] |= 1 << (at & 7)
    return int.from_bytes(held, "little")
