"""The words of a text as 64-bit hashes, sentence by sentence: the one tokeniser of n-gram models.

A word is a run of letters, marks and digits, in lower case; an apostrophe between two letters, and a full stop or a
comma between two digits, belong to it. All words without a letter are one word, NUMBER. Sentences are those of
`filters.quality.sentences`. The hash is that of `filters.quality.tokens`: the sum of c * BASE^i over the characters.
Whoever finds collisions makes a text look more likely, as rare words can by themselves.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from filters.quality.sentences import sentence_starts
from filters.quality.tokens import BASE, Hashes, powers_of

Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_CHARS = 1 << 16  # of a batch; a longer sentence is a batch of its own
_WRITTEN = 0x40000  # code points of the planes with letters
_LETTER, _DIGIT, _APOSTROPHE, _POINT = 1, 2, 4, 8
_SHIFT = 4
_MASK = (1 << 64) - 1


def hash_of(word: str) -> int:
    """The hash of a word as it stands."""
    return sum(ord(character) * pow(BASE, place, 1 << 64) for place, character in enumerate(word)) & _MASK


START = np.uint64(hash_of("<s>"))
"""What stands before the first word of a sentence."""
NUMBER = np.uint64(hash_of("<number>"))


class Sentences(NamedTuple):
    """Sentences in a row: places of their first characters in the text, with the end; words of each; hashes of all."""

    bounds: Places
    words: Places
    hashes: Hashes

    def is_first(self) -> Flags:
        """Which words begin a sentence."""
        firsts = np.zeros(len(self.hashes) + 1, bool)
        firsts[self.words.cumsum() - self.words] = True
        return firsts[:-1]


def sentences_of(text: str) -> Iterator[Sentences]:
    """The sentences of a text, in batches. Together they cover it; one of white space or marks has no word."""
    bounds = np.array([*sentence_starts(text), len(text)], np.int64)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    first, last = 0, len(bounds) - 1
    while first < last:
        after = max(first + 1, int(bounds.searchsorted(bounds[first] + _CHARS, side="right")) - 1)
        of_batch = bounds[first : after + 1]
        starts, hashes = _words(codes[of_batch[0] : of_batch[-1]])
        yield Sentences(of_batch, np.diff(starts.searchsorted(of_batch - of_batch[0])), hashes)
        first = after


def _words(codes: npt.NDArray[np.uint32]) -> tuple[Places, Hashes]:
    """The places and hashes of the words in a run of code points."""
    numbers = _table().take(codes, mode="clip")
    kinds = (numbers & ((1 << _SHIFT) - 1)).astype(np.uint8)
    inside = np.zeros(len(kinds) + 2, bool)
    inside[1:-1] = kinds & (_LETTER | _DIGIT)
    around = kinds[:-2] & kinds[2:]
    inside[2:-2] |= ((kinds[1:-1] & _APOSTROPHE) != 0) & ((around & _LETTER) != 0)
    inside[2:-2] |= ((kinds[1:-1] & _POINT) != 0) & ((around & _DIGIT) != 0)
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    starts, ends = edges[::2], edges[1::2]
    if not len(starts):
        return starts, np.zeros(0, np.uint64)
    powers, inverses = powers_of(len(codes))
    terms = (numbers >> np.uint32(_SHIFT)) * powers[: len(codes)]
    terms *= inside[1:-1]
    hashes = np.add.reduceat(terms, starts) * inverses[starts]
    letters = np.zeros(len(kinds) + 1, np.int64)
    np.cumsum(kinds & _LETTER, out=letters[1:])
    hashes[letters[ends] == letters[starts]] = NUMBER
    return starts, hashes


@cache
def _table() -> npt.NDArray[np.uint32]:
    """Code point -> that of its lower case << _SHIFT | its kind; the last row stands for all beyond. Built once."""
    numbers = np.arange(_WRITTEN, dtype=np.uint32) << np.uint32(_SHIFT)
    for code in range(_WRITTEN - 1):
        character = chr(code)
        if character.isdecimal():
            numbers[code] |= _DIGIT
        elif character.isalnum() or unicodedata.category(character)[0] == "M":
            low = character.lower()
            numbers[code] = (ord(low) if len(low) == 1 else code) << _SHIFT | _LETTER
    for character in "'’":
        numbers[ord(character)] = ord("'") << _SHIFT | _APOSTROPHE
    for character in ".,":
        numbers[ord(character)] |= _POINT
    return numbers


def places_of(keys: Hashes, wanted: Hashes) -> Places:
    """The place of each key that is wanted among sorted keys, and the number of keys for one that is not there."""
    places = keys.searchsorted(wanted)
    places[keys.take(places, mode="clip") != wanted] = len(keys)
    return places


def key_of(beginnings: Places, lasts: Places) -> Hashes:
    """The keys of n-grams, by the places of their beginnings and of their last words."""
    return beginnings.astype(np.uint64) << np.uint64(32) | lasts.astype(np.uint64)


def shifted(places: Places, is_first: Flags, of_first: int) -> Places:
    """The place of the word before each, and `of_first` for the first of a sentence."""
    before = np.empty_like(places)
    before[1:] = places[:-1]
    before[is_first] = of_first
    return before
