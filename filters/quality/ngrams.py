"""Repeated n-grams and repeated sequences, as two corpus builders count them; linear in the text.

Gopher (Rae et al. 2021, table A1) uses the share of characters in the most frequent 2- to 4-gram and in duplicate
5- to 10-grams, but does not define a duplicate:

- datatrove walks over the words. An n-gram seen at an earlier step is a duplicate, and the walk continues after it, so
  no character counts twice; first occurrences do not count. N-grams are compared with their words joined without a
  space. Divisor: all characters of the text, white space included.
- DOLMa counts all occurrences of n-grams that occur twice, overlapping or not, over the characters of all n-grams.

The top n-gram is the most frequent one; the first one wins a tie. Its occurrences times its characters are divided by
the text (datatrove, with the spaces between its words) or by the words (DOLMa, without spaces). Both count it even if
it occurs once.

How: words are compared by their 64-bit hashes (`filters.quality.tokens`). Repeating 2-grams and 3-grams are found by
sorting. A longer n-gram can only repeat if both shorter ones inside it repeat, which is rare in most texts. Joined
words need an extra step (`a ab` = `aa b`): the hashes of the joined characters of all n-grams are sorted too, and if
more of them are equal than of the n-grams themselves, the characters are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from filters.quality.tokens import Counts, Hashes, Tokens, inverse_powers

TOP = (2, 3, 4)
DUPLICATE = (5, 6, 7, 8, 9, 10)

_MIX = np.uint64(0xD6E8FEB86659FD93)  # any odd number unrelated to the hashes' base
_SPREAD = np.uint64(0x9FB21C651E98DF25)  # likewise
_LEAST, _MOST = DUPLICATE[0], DUPLICATE[-1]
_FEW = 64  # repetitions below which a dictionary is faster than arrays
_PLACE_BITS = 14
_PIECE = 1 << 16
_LONGEST_PERIOD, _LEAST_TIMES = 13, 3
_PAST_THE_END = np.array([0x85EBCA6B, 0xC2B2AE35, 0x27D4EB2F, 0x165667B1, 0x9E3779B1], np.uint32)
_NUMBERS = np.arange(1 << _PLACE_BITS, dtype=np.uint64)

Firsts = dict[int, int]
"""Place of each n-gram that occurs at least twice -> place of its first occurrence; in the order of the text."""


@dataclass(frozen=True)
class NgramRepeats:
    """The repeating n-grams of a text; characters are counted without spaces.

    `top`: for each n of TOP, the characters and the count of the most frequent n-gram; None in a text with fewer
    tokens. For each n of DUPLICATE: `all_chars` counts all occurrences of repeating n-grams, and `walked_chars` the
    duplicates of datatrove's walk. `longest`: the largest n with a repeating n-gram, at most 10; 1 if no 2-gram
    repeats.
    """

    top: list[tuple[int, int] | None]
    all_chars: list[int]
    walked_chars: list[int]
    longest: int


def repeated_ngrams(tokens: Tokens, piece: int = _PIECE) -> NgramRepeats:
    """Find the repeating 2-grams to 10-grams; more than `piece` of them are processed in pieces."""
    count, ends = len(tokens), tokens.ends
    top: list[tuple[int, int] | None] = [(ends[n], 1) if n <= count else None for n in TOP]
    all_chars, walked_chars = [0] * len(DUPLICATE), [0] * len(DUPLICATE)
    pairs = 0  # repeated occurrences of 5- to 10-grams
    longest, n = 1, 2
    places, grams = np.arange(count - 1), tokens.hashes[:-1]
    firsts: Firsts = {}
    while n <= min(_MOST, count):  # many n-grams: arrays
        grams = grams * _MIX + tokens.hashes[places + (n - 1)]
        order, equal = _sorted(grams)
        if len(equal) <= _FEW:
            firsts = _firsts(places, order, equal)
            break
        longest = n
        repeats, first, times = _most_frequent(order, equal)
        most = places.item(first)
        places, grams = places[repeats], grams[repeats]
        if n < _LEAST:
            top[n - 2] = ends[most + n] - ends[most], times
        else:
            all_chars[n - _LEAST] = int((tokens.bounds[places + n] - tokens.bounds[places]).sum())
            walked_chars[n - _LEAST] = _walk(_in_pieces(places, grams, piece), n, ends)
            pairs += len(equal)
        both = (places[1:] - places[:-1] == 1).nonzero()[0]
        places, grams = places[both], grams[both]
        n += 1
    while firsts:  # few: a dictionary
        longest = n
        if n < _LEAST:
            counts = Counter(firsts.values())
            most = max(counts, key=counts.__getitem__)
            top[n - 2] = ends[most + n] - ends[most], counts[most]
        else:
            all_chars[n - _LEAST] = sum([ends[place + n] - ends[place] for place in firsts])
            walked_chars[n - _LEAST] = _walk(firsts.items(), n, ends)
            pairs += len(firsts) - len(set(firsts.values()))
        firsts = _longer(firsts, count) if n < _MOST else {}
        n += 1
    if count > _LEAST and all(pairs != _joined_pairs(tokens, kind, piece) for kind in (np.uint32, np.uint64)):
        walked_chars = [_walk_joined(tokens, n) for n in DUPLICATE]
    return NgramRepeats(top, all_chars, walked_chars, longest)


def _sorted(grams: Hashes) -> tuple[Counts, Counts]:
    """Places of the n-grams in `grams`, sorted by n-gram; and the indices in this order whose successor is equal.

    Except in long texts, the low bits of a hash are replaced by its place, because sorting plain numbers is faster. The
    hash is multiplied first, because the last word of an n-gram may not affect the high bits.
    """
    bits = len(grams).bit_length()
    if bits > _PLACE_BITS:
        order = grams.argsort(kind="stable")
        ordered = grams[order]
        return order, (ordered[1:] == ordered[:-1]).nonzero()[0]
    low = np.uint64((1 << bits) - 1)
    packed = grams * _SPREAD
    packed &= ~low
    packed |= _NUMBERS[: len(grams)]
    packed.sort()
    equal = ((packed[1:] ^ packed[:-1]) <= low).nonzero()[0]
    packed &= low
    return packed.view(np.int64), equal


def _firsts(places: Counts, order: Counts, equal: Counts) -> Firsts:
    firsts: Firsts = {}
    for one, next_one in zip(places[order[equal]].tolist(), places[order[equal + 1]].tolist(), strict=True):
        firsts[next_one] = firsts.setdefault(one, one)
    return dict(sorted(firsts.items()))


def _most_frequent(order: Counts, equal: Counts) -> tuple[Counts, int, int]:
    """Places of the repeating n-grams; the first place of the most frequent one (the first wins a tie); its count."""
    repeats = np.zeros(len(order), bool)
    repeats[order[equal]] = repeats[order[equal + 1]] = True
    breaks = (equal[1:] - equal[:-1] != 1).nonzero()[0]
    starts = np.concatenate(([0], breaks + 1))
    sizes = np.concatenate((breaks, [len(equal) - 1])) - starts
    most = int(sizes.max())
    return repeats.nonzero()[0], int(order[equal[starts[sizes == most]]].min()), most + 2


def _longer(firsts: Firsts, count: int) -> Firsts:
    """Candidates of one word more: an n-gram and the one a word later, both repeating."""
    seen: dict[int, int] = {}
    both = [
        (place, seen.setdefault(first * count + firsts[place + 1], place))
        for place, first in firsts.items()
        if place + 1 in firsts
    ]
    again = {first for place, first in both if first != place}
    return {place: first for place, first in both if first in again} if again else {}


def all_ngram_chars(tokens: Tokens) -> list[int]:
    """Characters of all n-grams without spaces, for each n of DUPLICATE: sum of ends less sum of starts; 0 = none."""
    ends = tokens.ends
    return [sum(ends[-n:]) - sum(ends[:n]) if len(ends) > n else 0 for n in DUPLICATE]


def _walk(places: Iterable[tuple[int, int | str]], n: int, ends: Sequence[int]) -> int:
    """datatrove's walk, over the repeating n-grams only."""
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


def _in_pieces(places: Counts, grams: Hashes, size: int) -> Iterator[tuple[int, int]]:
    """Yield places and their n-grams; a list of millions would take too much memory."""
    for start in range(0, len(places), size):
        piece = slice(start, start + size)
        yield from zip(places[piece].tolist(), grams[piece].tolist(), strict=True)


def _walk_joined(tokens: Tokens, n: int) -> int:
    joined, ends = "".join(tokens.strings), tokens.ends
    grams = ((place, joined[ends[place] : ends[place + n]]) for place in range(len(tokens) - n + 1))
    return _walk(grams, n, ends)


def _joined_pairs(tokens: Tokens, kind: type[np.uint32 | np.uint64], piece: int) -> int:
    """Number of joined 5- to 10-grams equal to an earlier one, or slightly more: half a hash is compared, for speed."""
    powers, inverses = inverse_powers(tokens.bounds)
    columns = len(tokens) - _LEAST + 1
    sums = np.empty(len(tokens) + len(DUPLICATE), kind)
    sums[0] = 0
    sums[1 : len(tokens) + 1] = (tokens.hashes * powers[:-1]).cumsum()
    sums[len(tokens) + 1 :] = _PAST_THE_END
    size = sums.itemsize
    rows = np.ndarray((len(DUPLICATE), columns), kind, sums, offset=_LEAST * size, strides=(size, size))
    factors = inverses[:columns].astype(kind)
    pairs = 0
    for some in rows if columns > piece else rows[np.newaxis]:  # all at once, or one by one where they are long
        joined = some - sums[:columns]
        joined *= factors
        joined.sort()
        pairs += int(np.count_nonzero(joined[..., 1:] == joined[..., :-1]))
    return pairs


def most_repetitions(tokens: Tokens, repeating: int) -> int:
    """Consecutive occurrences of the most repeated sequence of 1 to 13 tokens; 0 if none occurs three times in a row.

    As DOLMa's `tokenizer_repetitions` (1.2), on the text's own tokens; an incomplete period at the end does not count.
    `repeating` is `NgramRepeats.longest`: p tokens three times in a row repeat n-grams of 2p, so most texts need no
    search.
    """
    times = 0
    for period in range(1, min(_LONGEST_PERIOD, len(tokens) // _LEAST_TIMES) + 1):
        if repeating < min(2 * period, 10):
            break
        differ = tokens.hashes[period:] != tokens.hashes[:-period]
        if len(differ) - np.count_nonzero(differ) < (_LEAST_TIMES - 1) * period:
            continue
        edges = np.concatenate(([-1], differ.nonzero()[0], [len(differ)]))
        times = max(times, (int((edges[1:] - edges[:-1]).max()) - 1) // period + 1)
    return times if times >= _LEAST_TIMES else 0
