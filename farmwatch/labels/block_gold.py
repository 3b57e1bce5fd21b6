"""The truth about the main text of a page: which blocks belong to it, and how good a text is.

A page has a human main text, or segments of text inside and outside of it. Blocks are compared with a main text by a
longest common subsequence of words, so that a word in the navigation does not count for the same word in the text.

H. Hyyrö, "Bit-parallel LCS-length computation revisited", AWOCA 2004.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_MOST_PAIRS = 400_000_000  # words of a page times words of its main text: 50 MB of bits
_NEAR = 2
_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """The words that F1 counts."""
    return _WORD.findall(text.lower())


@dataclass(frozen=True, slots=True)
class Truth:
    """The main text, or if it is None segments inside and outside of it."""

    text: str | None
    belongs: Sequence[str] = ()
    foreign: Sequence[str] = ()

    def hits(self, text: str) -> tuple[float, float]:
        """The numerator and the denominator of a text's F1: of its words, with denominator 1, or of segments."""
        if self.text is not None:
            ours, theirs = Counter(words_of(text)), Counter(words_of(self.text))
            total = ours.total() + theirs.total()
            return (2 * (ours & theirs).total() / total if total else 1.0), 1.0
        joined = " ".join(text.split())
        found = sum(_spaced(segment) in joined for segment in self.belongs)
        wrong = sum(_spaced(segment) in joined for segment in self.foreign)
        return 2.0 * found, float(found + len(self.belongs) + wrong)

    def shares(self, lines: Sequence[str]) -> Floats | None:
        """The share of each line that is main text, nan = unknown; None for a text that is too long to compare."""
        if self.text is None:
            found = np.full(len(lines), np.nan, np.float32)
            for segments, share in ((self.foreign, 0), (self.belongs, 1)):
                wanted = [spaced for segment in segments if (spaced := _spaced(segment))]
                found[[place for place, line in enumerate(lines) if any(part in line for part in wanted)]] = share
            return found
        split = [words_of(line) for line in lines]
        gold = words_of(self.text)
        flat = [word for words in split for word in words]
        if len(flat) * len(gold) > _MOST_PAIRS:
            return None
        sizes = np.array([len(words) for words in split])
        total = np.concatenate([[0], np.cumsum(_aligned(flat, gold))])
        ends = np.cumsum(sizes)
        return np.asarray((total[ends] - total[ends - sizes]) / np.maximum(sizes, 1), np.float32)


def _spaced(segment: str) -> str:
    return " ".join(segment.split())


def _aligned(words: Sequence[str], gold: Sequence[str]) -> NDArray[np.bool_]:
    """Whether each word is part of the common subsequence, and a word beside it as well."""
    places = np.array(_subsequence(words, gold), np.int64)
    if len(places) < 2:
        return np.asarray(places >= 0)
    step = np.diff(places)
    together = (places[1:] >= 0) & (places[:-1] >= 0) & (step <= _NEAR)
    return np.asarray(np.concatenate([[False], together]) | np.concatenate([together, [False]]))


def _subsequence(words: Sequence[str], gold: Sequence[str]) -> list[int]:
    """The place in `gold` of each word of a longest common subsequence; -1 = not in it.

    Each word updates a row of bits, one for each word of `gold`; the rows are then followed backwards.
    """
    where: dict[str, int] = {}
    for place, word in enumerate(gold):
        where[word] = where.get(word, 0) | 1 << place
    full = (1 << len(gold)) - 1
    bits, rows = full, []
    for word in words:
        match = bits & where.get(word, 0)
        bits = ((bits + match) | (bits - match)) & full
        rows.append(bits)
    found = [-1] * len(words)
    row, column = len(words), len(gold)
    while row and column:
        if rows[row - 1] >> (column - 1) & 1:
            column -= 1
        else:
            row -= 1
            if not row or rows[row - 1] >> (column - 1) & 1:
                column -= 1
                found[row] = column
    return found
