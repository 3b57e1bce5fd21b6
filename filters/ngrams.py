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

How: words are compared by their 64-bit hashes (`filters.tokens`). Repeating 2-grams and 3-grams are found by sorting;
longer ones are looked for only where both shorter ones inside repeat, which in most texts is next to nowhere. Joined
words are another matter (`a ab` = `aa b`): hashes of the joined characters of all n-grams are sorted as well, and where
more of them are equal than of the n-grams themselves, the characters are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from filters.tokens import Counts, Hashes, Tokens, inverse_powers

TOP = (2, 3, 4)
DUPLICATE = (5, 6, 7, 8, 9, 10)

_MIX = np.uint64(0xD6E8FEB86659FD93)  # any odd number unrelated to the hashes' base
_LEAST, _MOST = DUPLICATE[0], DUPLICATE[-1]
_FEW = 48  # below, a dictionary is faster than arrays

Firsts = dict[int, int]
"""Place of each n-gram that occurs twice or more -> place where that n-gram occurs first; in the order of the text."""


@dataclass(frozen=True)
class Repeated:
    """N-grams of a text that repeat; characters are counted without spaces.

    `top`: for each n of TOP, the most frequent n-gram's characters and how often it occurs; None in a text with fewer
    tokens. For each n of DUPLICATE: `all_chars` of all occurrences of n-grams that occur twice or more, and
    `walked_chars` of duplicates as datatrove walks over them. `longest`: the largest n of which an n-gram repeats, 10
    at most; 1 if no 2-gram does.
    """

    top: list[tuple[int, int] | None]
    all_chars: list[int]
    walked_chars: list[int]
    longest: int


def repeated_ngrams(tokens: Tokens) -> Repeated:
    """Find them, from 2-grams to 10-grams."""
    count, ends = len(tokens), tokens.ends
    top: list[tuple[int, int] | None] = [(ends[n], 1) if n <= count else None for n in TOP]
    all_chars, walked_chars = [0] * len(DUPLICATE), [0] * len(DUPLICATE)
    pairs = 0  # occurrences of 5- to 10-grams that are not first ones
    longest, n = 1, 2
    places, grams = np.arange(count - 1), tokens.hashes[:-1]
    firsts: Firsts = {}
    while n <= min(_MOST, count) and not firsts:  # many n-grams: arrays
        grams = grams * _MIX + tokens.hashes[places + (n - 1)]
        repeats, most, times, later = _repeats(grams, places)
        if not times:
            break
        longest = n
        places, grams = places[repeats], grams[repeats]
        if n < _LEAST:
            top[n - 2] = ends[most + n] - ends[most], times
        else:
            all_chars[n - _LEAST] = int((tokens.bounds[places + n] - tokens.bounds[places]).sum())
            walked_chars[n - _LEAST] = _walk(zip(places.tolist(), grams.tolist(), strict=True), n, ends)
            pairs += later
        n += 1
        if n > _LEAST - 2 and len(places) <= _FEW:
            seen: dict[int, int] = {}
            found = zip(places.tolist(), grams.tolist(), strict=True)
            firsts = {place: seen.setdefault(gram, place) for place, gram in found}
        else:
            both = (places[1:] - places[:-1] == 1).nonzero()[0]
            places, grams = places[both], grams[both]
    while n <= _MOST and (firsts := _longer(firsts, count)):  # few: a dictionary
        counts = Counter(firsts.values())
        longest = n
        if n < _LEAST:
            most = max(counts, key=counts.__getitem__)
            top[n - 2] = ends[most + n] - ends[most], counts[most]
        else:
            all_chars[n - _LEAST] = sum([ends[place + n] - ends[place] for place in firsts])
            walked_chars[n - _LEAST] = _walk(firsts.items(), n, ends)
            pairs += len(firsts) - len(counts)
        n += 1
    if count > _LEAST and pairs != _joined_pairs(tokens):
        walked_chars = [_walk_joined(tokens, n) for n in DUPLICATE]
    return Repeated(top, all_chars, walked_chars, longest)


def _repeats(grams: Hashes, places: Counts) -> tuple[Counts, int, int, int]:
    """Which n-grams (of those at `places`) occur twice: where in `grams`, in order; the place of the most frequent one,
    the first of several, and how often it occurs; and how many are no first occurrences. All 0 where none repeats.
    """
    order = grams.argsort()
    ordered = grams[order]
    equal = (ordered[1:] == ordered[:-1]).nonzero()[0]
    if not len(equal):
        return equal, 0, 0, 0
    repeats = np.zeros(len(order), bool)
    repeats[order[equal]] = repeats[order[equal + 1]] = True
    lasts = np.append((equal[1:] - equal[:-1] != 1).nonzero()[0], len(equal) - 1)
    sizes = lasts.copy()
    sizes[0] += 1
    sizes[1:] -= lasts[:-1]
    most = int(sizes.max())
    members = equal[lasts[sizes == most]][:, None] - np.arange(-1, most)
    return repeats.nonzero()[0], places.item(int(order[members].min())), most + 1, len(equal)


def _longer(firsts: Firsts, count: int) -> Firsts:
    """Of n-grams those of one word more: an n-gram and the one a word later, both of which repeat."""
    seen: dict[int, int] = {}
    both = [
        (place, seen.setdefault(first * count + second, place))
        for place, first in firsts.items()
        if (second := firsts.get(place + 1)) is not None
    ]
    if len(seen) == len(both):
        return {}
    counts = Counter([first for _, first in both])
    return {place: first for place, first in both if counts[first] > 1}


def all_ngram_chars(tokens: Tokens) -> list[int]:
    """The characters of all n-grams of a text, spaces apart, for each n of DUPLICATE; 0 where there is none.

    Where n-grams end less where they start: what lies between cancels out.
    """
    ends = tokens.ends
    return [sum(ends[-n:]) - sum(ends[:n]) if len(ends) > n else 0 for n in DUPLICATE]


def _walk(places: Iterable[tuple[int, int | str]], n: int, ends: Sequence[int]) -> int:
    """datatrove's walk over places and their n-grams; it would step over n-grams that do not repeat one by one."""
    seen: set[int | str] = set()
    chars = free = 0
    for place, gram in places:
        if place >= free:
            if gram in seen:
                chars += ends[place + n] - ends[place]
                free = place + n
            else:
                seen.add(gram)
    return chars


def _walk_joined(tokens: Tokens, n: int) -> int:
    """The walk as it is defined, over the joined characters."""
    joined, ends = "".join(tokens.strings), tokens.ends
    grams = ((place, joined[ends[place] : ends[place + n]]) for place in range(len(tokens) - n + 1))
    return _walk(grams, n, ends)


def _joined_pairs(tokens: Tokens) -> int:
    """How many joined 5- to 10-grams of a text equal an earlier one, or a few more by chance.

    One row of hashes for each n; n-grams past the end get numbers that mean nothing. In most texts the low half of a
    hash will do, at half the cost.
    """
    kind = np.dtype(np.uint32 if len(tokens) <= _HALF_HASHES else np.uint64)
    powers, inverses = inverse_powers(tokens.bounds)
    columns = len(tokens) - _LEAST + 1
    sums = np.empty(len(tokens) + len(DUPLICATE), kind)
    sums[0] = 0
    sums[1 : len(tokens) + 1] = (tokens.hashes * powers[:-1]).cumsum()
    sums[len(tokens) + 1 :] = _PAST_THE_END
    rows = np.ndarray(
        (len(DUPLICATE), columns), kind, sums, offset=_LEAST * kind.itemsize, strides=(kind.itemsize, kind.itemsize)
    )
    joined = (rows - sums[:columns]) * inverses[:columns].astype(kind)
    joined.sort(axis=1)
    return int(np.count_nonzero(joined[:, 1:] == joined[:, :-1]))


_HALF_HASHES = 2_048  # tokens up to which 32 bits are wrongly equal in .3% of texts
_PAST_THE_END = np.array([0x85EBCA6B, 0xC2B2AE35, 0x27D4EB2F, 0x165667B1, 0x9E3779B1], np.uint32)
