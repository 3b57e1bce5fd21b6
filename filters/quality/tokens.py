"""A text as arrays over its tokens: lengths, kinds of character, and 64-bit hashes instead of the tokens.

The hash of a token of characters c0 c1 … is the sum of number(ci) * BASE^i modulo 2^64 (numbers of
`filters.quality.characters`). Such hashes add up: with H(i) the sum of all tokens' hashes before token i, each times
BASE to the characters before it, the characters of tokens i to j, joined, hash to (H(j) - H(i)) / BASE^(characters
before i). BASE is odd, so it can be divided by. That is Rabin and Karp's rolling hash (1987) with prefix sums: any
n-gram's hash costs one subtraction and one multiplication.

Among a million different strings, two have the same hash by chance with a probability of 3e-8. An attacker finds
collisions easily, but only makes a page look more repetitive.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from filters.quality.characters import numbers_of

Hashes: TypeAlias = npt.NDArray[np.uint64]
Counts: TypeAlias = npt.NDArray[np.int64]

Tokenizer: TypeAlias = Callable[[str], Sequence[str]]
"""The tokens of a text, in order. No token is empty or contains white space; each line is tokenised independently."""

BASE = 0x9E3779B97F4A7C15  # any odd number without a pattern: the fraction of the golden ratio, as in Knuth
# Words (letters, digits, _, and some marks between two of them) and marks, close to Unicode's annex 29
_WORD_OR_MARK = re.compile(r"\w+(?:['’.,\-]\w+)*|[^\w\s]")


TOKENIZERS: Mapping[str, Tokenizer] = {"whitespace": str.split, "words": _WORD_OR_MARK.findall}
"""Setting `tokenizer` -> tokens of a text. The rules' thresholds were set with `whitespace` in DOLMa; datatrove's
default is spaCy's English tokenizer, which separates punctuation like `words`."""


@dataclass(eq=False)
class Tokens:
    """`lengths` (characters), `hashes` and `kinds` of tokens; `starts` in `spaced`, the text with spaced tokens."""

    text: str
    tokenize: Tokenizer
    lengths: Counts
    hashes: Hashes
    kinds: npt.NDArray[np.uint32]
    starts: Counts | None = None
    spaced: str = ""

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def of(cls, text: str, tokenize: Tokenizer = str.split) -> Tokens:
        """Tokenise a text; white space is found in the array of characters, without `str.split`."""
        spaced = text
        if tokenize is not str.split:
            spaced = "\n".join([" ".join(tokenize(line)) for line in text.split("\n")])
        numbers = numbers_of(f" {spaced} ")
        visible = numbers != 0
        edges = (visible[1:] != visible[:-1]).nonzero()[0]
        starts = edges[::2] + 1  # in the padded text
        lengths = edges[1::2] - edges[::2]
        if not len(starts):
            return cls(text, tokenize, lengths, np.zeros(0, np.uint64), np.zeros(0, np.uint32))
        powers, inverses = powers_of(len(numbers))
        sums = np.add.reduceat(numbers * powers[: len(numbers)], starts)
        kinds = np.bitwise_or.reduceat(numbers, starts)
        return cls(text, tokenize, lengths, sums * inverses[starts], kinds, edges[::2], spaced)

    def of_lines(self, kept: Sequence[bool], text: str) -> Tokens:
        """The tokens of the selected lines (cut at line feeds); these lines make up `text`."""
        if self.starts is None:
            return Tokens.of(text, self.tokenize)
        lines = self.spaced.split("\n")
        next_lines = (np.fromiter(map(len, lines), np.int64, len(lines)) + 1).cumsum()
        last = self.starts.searchsorted(next_lines)
        last[1:] -= last[:-1]
        here = np.array(kept).repeat(last)
        return Tokens(text, self.tokenize, self.lengths[here], self.hashes[here], self.kinds[here])

    @cached_property
    def bounds(self) -> Counts:
        """Characters before each token, without white space, and the total: one more number than tokens."""
        bounds = np.zeros(len(self) + 1, np.int64)
        self.lengths.cumsum(out=bounds[1:])
        return bounds

    @cached_property
    def ends(self) -> list[int]:
        ends: list[int] = self.bounds.tolist()
        return ends

    @property
    def chars(self) -> int:
        return self.ends[-1]

    @cached_property
    def strings(self) -> Sequence[str]:
        return self.tokenize(self.text)


def inverse_powers(bounds: Counts) -> tuple[Hashes, Hashes]:
    """BASE to the power of each bound, and the inverses."""
    powers, inverses = powers_of(int(bounds[-1]) + 1)
    return powers[bounds], inverses[bounds]


def powers_of(count: int) -> tuple[Hashes, Hashes]:
    """At least so many powers of BASE, from 1 on, and their inverses."""
    return _power_tables(max(16, (count - 1).bit_length()))


@lru_cache(maxsize=4)
def _power_tables(bits: int) -> tuple[Hashes, Hashes]:
    return _accumulated(BASE, bits), _accumulated(pow(BASE, -1, 1 << 64), bits)


def _accumulated(base: int, bits: int) -> Hashes:
    powers = np.ones(1, np.uint64)
    for doubling in range(bits):
        powers = np.concatenate((powers, powers * np.uint64(pow(base, 1 << doubling, 1 << 64))))
    return powers
