"""The edit distances of a sequence to many, by whole numbers as bit vectors: one step for each word of the sequence.

All others stand in one number, with a guard bit after each. G. Myers, "A fast bit-vector algorithm for approximate
string matching based on dynamic programming", JACM 46, 1999.
"""

from __future__ import annotations

from collections.abc import Sequence

from lab.extractor_bench.word_places import GUARD, as_bits, word_places


def edit_distances(reference: Sequence[str], texts: Sequence[Sequence[str]]) -> list[int]:
    """For each text, the fewest insertions, deletions and substitutions that make it of the reference."""
    joined, begins = list[str](), list[int]()
    for text in texts:
        begins.append(len(joined))
        joined += [*text, GUARD]
    places, starts = word_places(joined, {*reference}), as_bits(begins, len(joined))
    every = (1 << len(joined)) - 1  # to invert by: ~ makes negative numbers, which are slower
    whole = every ^ (((starts | 1 << len(joined)) >> 1) & every)
    up, down = whole, 0  # bits: the distance rises, or falls, from a place to the next
    for word in reference:
        match = places.get(word, 0)
        same = (((match & up) + up) ^ up) | match | down if match else down
        rises = ((down | (every ^ (same | up))) << 1) | starts
        up, down = (((same & up) << 1) | (every ^ (same | rises))) & whole, rises & same & whole
    found = []
    for at, text in zip(begins, texts, strict=True):
        own = (1 << len(text)) - 1
        found.append(len(reference) + ((up >> at) & own).bit_count() - ((down >> at) & own).bit_count())
    return found
