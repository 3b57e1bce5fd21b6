"""The words of a text that are in ROUGE-LSum's union of longest common subsequences.

Each line of the reference is compared with each line of the text; its words in any of these subsequences count, each
at most as often as in the text (C.-Y. Lin, "ROUGE: a package for automatic evaluation of summaries", 2004). Of several
longest subsequences, the one that Google's `rouge-score` finds is taken.

All lines of the text stand in one whole number, a bit for each word, with a guard bit above each line that stops the
carry. One addition advances the table of all lines by a word of the reference (M. Crochemore et al., "A fast and
practical bit-vector algorithm for the longest common subsequence problem", 2001); the way back uses the same bits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

Lines = Sequence[Sequence[str]]


def union_hits(reference: Lines, text: Lines) -> int:
    """The number of words of the reference that the union has."""
    table, joined = _Table(text), "\n".join(f" {' '.join(line)} " for line in text)
    union = Counter[str]()
    for line in reference:
        union.update(line if f" {' '.join(line)} " in joined else table.common(line))
    return (union & Counter(word for line in text for word in line)).total()


class _Table:
    """The lines of a text as bits."""

    def __init__(self, text: Lines) -> None:
        self._places = defaultdict[str, int](int)
        self._starts: dict[int, int] = {}  # guard -> first place of its line
        self._guards = at = 0
        for line in text:
            start = at
            for at, word in enumerate(line, start):
                self._places[word] |= 1 << at
            at = start + len(line)
            self._starts[at] = start
            self._guards |= 1 << at
            at += 1
        self._words = ((1 << at) - 1) & ~self._guards

    def common(self, line: Sequence[str]) -> Iterator[str]:
        """The words of a line that are in its longest common subsequence with any line of the text."""
        words = [word for word in line if word in self._places]
        row, rows = self._words, [0]  # of `rows`: a bit where the subsequence up to there is longer by one
        for word in words:
            match = row & self._places[word]
            row = ((row + match) | (row & ~match)) & self._words
            rows.append(self._words ^ row)
        left = self._words  # of each line of the text, the places that the way back has not passed
        while words:
            word, now, before = words.pop(), rows.pop() & left, rows[-1] & left
            match = self._places[word] & left
            if not match:
                continue
            at_end = match & ~(left >> 1)
            longer = self._guards & ~((before | self._guards) - now)
            if at_end or longer:
                yield word
            left ^= at_end
            while longer:
                guard = longer.bit_length() - 1
                longer ^= 1 << guard
                start = self._starts[guard]
                of_line = (1 << (guard - start)) - 1
                if not (at_end >> start) & of_line:
                    last = start + ((match >> start) & of_line).bit_length() - 1
                    left &= ~((1 << guard) - (1 << last))
