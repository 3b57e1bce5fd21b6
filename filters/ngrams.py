"""How much of a text its repeated n-grams are, as two corpus builders count it; linear in the text, whatever it is.

Gopher (Rae et al. 2021, table A1) asks for the share of characters in the most frequent 2- to 4-gram and in duplicate
5- to 10-grams, and leaves open what a duplicate is:

- datatrove walks over the words. An n-gram seen at an earlier step is a duplicate, and the walk goes on behind it, so
  none is counted twice; first occurrences count for nothing. N-grams are compared with their words joined without a
  space. Divisor: all characters of the text, white space included.
- DOLMa counts all occurrences of n-grams that occur twice, overlapping or not, over the characters of all n-grams.
- RedPajama and NeMo Curator count a character once however many duplicates cover it: RedPajama of all occurrences, on
  lower-cased words without punctuation, over their characters; NeMo from the second occurrence on, over the text.

The top n-gram is the most frequent one, of several the one first seen. Its occurrences times its characters are
counted with the spaces between its words over the text by datatrove, without them over the words by DOLMa, and both
count it when it occurs once. RedPajama does not; NeMo takes it out of the text and measures what that leaves.

How: longer n-grams are looked at only where both shorter ones inside repeat. In most texts that leaves next to nothing
after 4 words. Joined words are another matter (`a ab` = `aa b`), so hashes of the joined characters of all n-grams are
sorted to see whether any repeats; where one does, the walk is walked over the repeating n-grams alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from filters.tokens import Counts, Hashes, Tokens, inverse_powers

TOP = (2, 3, 4)
DUPLICATE = (5, 6, 7, 8, 9, 10)

_MIX = np.uint64(0xD6E8FEB86659FD93)  # any odd number unrelated to the hashes' base
_LEAST, _MOST = DUPLICATE[0], DUPLICATE[-1]


@dataclass(frozen=True)
class TopNGram:
    """The most frequent n-gram: its characters without spaces, and how often it occurs."""

    chars: int
    count: int


@dataclass(frozen=True)
class Repeated:
    """N-grams of a text that repeat.

    `top`: the top n-gram for each of TOP, None in a text with fewer tokens. `all_chars`: for each of DUPLICATE, the
    characters of all occurrences of n-grams that occur twice or more. `longest`: the largest n of which one does, 10 at
    most; 1 if no 2-gram does.
    """

    top: list[TopNGram | None]
    all_chars: list[int]
    longest: int


def repeated_ngrams(tokens: Tokens) -> Repeated:
    """Find them, from 2-grams to 10-grams."""
    count, bounds, hashes = len(tokens), tokens.bounds, tokens.hashes
    top: list[TopNGram | None] = [None] * len(TOP)
    all_chars = [0] * len(DUPLICATE)
    grams = hashes.copy()  # at each place that still matters, the hash of the n-gram there
    places = np.arange(count - 1)
    longest = 1
    for n in range(2, min(_MOST, count) + 1):
        grams[places] = grams[places] * _MIX + hashes[places + (n - 1)]
        order, pairs = _equal_neighbours(grams[places])
        if n in TOP:
            first, times = _most_frequent(places[order], pairs)
            top[n - 2] = TopNGram(int(bounds[first + n] - bounds[first]), times)
        if not len(pairs):
            break
        longest = n
        repeats = np.zeros(len(order), bool)
        repeats[pairs] = repeats[pairs + 1] = True
        found = np.sort(places[order[repeats]])
        if n >= _LEAST:
            all_chars[n - _LEAST] = int((bounds[found + n] - bounds[found]).sum())
        places = found[:-1][found[1:] - found[:-1] == 1]
    for n in TOP:
        if top[n - 2] is None and n <= count:
            top[n - 2] = TopNGram(int(bounds[n]), 1)
    return Repeated(top, all_chars, longest)


def _equal_neighbours(values: Hashes) -> tuple[Counts, Counts]:
    """The order that sorts the values, and where in it a value equals the next."""
    order = values.argsort()
    ordered = values[order]
    return order, (ordered[1:] == ordered[:-1]).nonzero()[0]


def _most_frequent(places: Counts, pairs: Counts) -> tuple[int, int]:
    """First place of the largest class, and its size; classes lie together in `places`, `pairs` join their members."""
    if not len(pairs):
        return 0, 1
    ends = np.append((pairs[1:] - pairs[:-1] != 1).nonzero()[0], len(pairs) - 1)
    sizes = ends.copy()
    sizes[1:] -= ends[:-1]
    sizes[0] += 1
    most = int(sizes.max())
    last = pairs[ends[sizes == most]] + 1
    return int(places[last[:, None] - np.arange(most + 1)].min()), most + 1


def all_ngram_chars(tokens: Tokens, n: int) -> int:
    """The characters of all n-grams of a text, spaces apart."""
    bounds = tokens.bounds
    return int(bounds[n:].sum() - bounds[:-n].sum())


def walked_duplicates(tokens: Tokens) -> list[int]:
    """Characters of duplicate n-grams as datatrove walks them, spaces apart, for each n of DUPLICATE."""
    chars = [0] * len(DUPLICATE)
    if len(tokens) <= _LEAST:
        return chars
    joined = _joined_hashes(tokens)
    ordered = np.sort(joined, axis=1)
    text, bounds = "", []
    for row in (ordered[:, 1:] == ordered[:, :-1]).any(axis=1).nonzero()[0].tolist():
        n = DUPLICATE[row]
        order, pairs = _equal_neighbours(joined[row])
        places = np.unique(order[np.concatenate((pairs, pairs + 1))])
        if not text:
            text, bounds = "".join(tokens.strings), tokens.bounds.tolist()
        chars[row] = _walk(text, bounds, places[places <= len(tokens) - n].tolist(), n)
    return chars


def _joined_hashes(tokens: Tokens) -> npt.NDArray[np.uint32]:
    """Hash of the joined tokens at each place (columns) for each n of DUPLICATE (rows).

    The low half of the 64 bits will do to find what may repeat. N-grams past the end get numbers that mean nothing.
    """
    powers, inverses = inverse_powers(tokens.bounds)
    columns = len(tokens) - _LEAST + 1
    sums = np.arange(len(tokens) + 1 + len(DUPLICATE), dtype=np.uint32) * np.uint32(0x85EBCA6B)
    sums[0] = 0
    sums[1 : len(tokens) + 1] = (tokens.hashes * powers[:-1]).cumsum()
    ends = np.ndarray((len(DUPLICATE), columns), np.uint32, sums, offset=_LEAST * 4, strides=(4, 4))
    return (ends - sums[:columns]) * inverses[:columns].astype(np.uint32)


def _walk(joined: str, bounds: Sequence[int], places: Sequence[int], n: int) -> int:
    """datatrove's walk over the places whose n-gram may repeat; it would step over all others one by one."""
    seen: set[str] = set()
    chars = free = 0
    for place in places:
        if place < free:
            continue
        gram = joined[bounds[place] : bounds[place + n]]
        if gram in seen:
            chars += len(gram)
            free = place + n
        else:
            seen.add(gram)
    return chars
