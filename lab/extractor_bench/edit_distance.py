"""The edit distance of two sequences, by whole numbers as bit vectors: one step for each word of the longer one.

G. Myers, "A fast bit-vector algorithm for approximate string matching based on dynamic programming", JACM 46, 1999.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """The fewest insertions, deletions and substitutions that make one of the other."""
    short, long = sorted((list(first), list(second)), key=len)
    start = next((at for at, pair in enumerate(zip(short, long, strict=False)) if pair[0] != pair[1]), len(short))
    short, long = short[start:], long[start:]
    while short and short[-1] == long[-1]:
        short.pop()
        long.pop()
    if not short:
        return len(long)
    places = defaultdict[str, int](int)
    for at, word in enumerate(short):
        places[word] |= 1 << at
    whole = (1 << len(short)) - 1
    up, down = whole, 0  # bits: the distance rises, or falls, from a place to the next
    for word in long:
        match = places.get(word, 0)
        same = (((match & up) + up) ^ up) | match | down if match else down
        rises = ((down | ~(same | up)) << 1) | 1
        up, down = (((same & up) << 1) | ~(same | rises)) & whole, rises & same & whole
    return len(long) + up.bit_count() - down.bit_count()
