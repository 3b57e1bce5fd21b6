"""The words of texts that are in ROUGE-LSum's union of longest common subsequences.

Each line of the reference is compared with each line of a text; its words in any of these subsequences count, each
at most as often as in the text (C.-Y. Lin, "ROUGE: a package for automatic evaluation of summaries", 2004). Of several
longest subsequences, the one that Google's `rouge-score` finds is taken.

The different lines of all texts stand in one whole number, a bit for each word, with a guard bit above each line that
stops the carry. One addition advances the table of all lines by a word of the reference (M. Crochemore et al., "A fast
and practical bit-vector algorithm for the longest common subsequence problem", 2001); the way back uses the same bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from lab.extractor_bench.word_places import GUARD, as_bits, word_places

Lines = Sequence[Sequence[str]]


def union_hits(reference: Lines, texts: Sequence[Lines]) -> list[int]:
    """For each text, the number of words of the reference that its union has."""
    table = _Table(reference, texts)
    joined = ["\n".join(f" {' '.join(line)} " for line in text) for text in texts]
    unions = [Counter[str]() for _ in texts]
    for line in reference:
        whole, lacking = f" {' '.join(line)} ", []
        for union, text, guards in zip(unions, joined, table.guards_of, strict=True):
            if whole in text:
                union.update(line)
            else:
                lacking.append((union, guards))
        for word, hits in table.common(line) if lacking else ():
            for union, guards in lacking:
                if hits & guards:
                    union[word] += 1
    there = [Counter(word for line in text for word in line) for text in texts]
    return [(of & own).total() for of, own in zip(unions, there, strict=True)]


class _Table:
    """The lines of texts as bits. Words that the reference lacks are one place, in a row: none of them matches."""

    def __init__(self, reference: Lines, texts: Sequence[Lines]) -> None:
        wanted = {word for line in reference for word in line}
        joined, ends = list[str](), dict[tuple[str, ...], int]()
        of_texts = []
        shortened = lru_cache(None)(lambda line: _shortened(line, wanted))
        for text in texts:
            lines = {shortened(tuple(line)) for line in text}
            of_texts.append(lines)
            for line in lines - ends.keys():
                joined += line
                ends[line] = len(joined)
                joined.append(GUARD)
        self._places = word_places(joined, wanted)
        self._guards = as_bits(ends.values(), len(joined))
        self._all = (1 << len(joined)) - 1  # to invert by: ~ makes negative numbers, which are slower
        self._words = self._all ^ self._guards
        self.guards_of = [as_bits((ends[line] for line in lines), len(joined)) for lines in of_texts]

    def common(self, line: Sequence[str]) -> Iterator[tuple[str, int]]:
        """The words of a line, from the last, that are in its longest common subsequence with lines: their guards."""
        words = [word for word in line if word in self._places]
        row, rows = self._words, [0]  # of `rows`: a bit where the subsequence up to there is longer by one
        for word in words:
            match = row & self._places[word]
            row = ((row + match) | (row ^ match)) & self._words
            rows.append(self._words ^ row)
        left = self._words  # of each line of the texts, the places that the way back has not passed
        while words:
            word, now, before = words.pop(), rows.pop() & left, rows[-1] & left
            match = self._places[word] & left
            if not match:
                continue
            at_end = (match ^ (match & (left >> 1))) << 1
            hits = (((self._words ^ left) + at_end) | (self._all ^ ((before | self._guards) - now))) & self._guards
            if not hits:
                continue
            yield word, hits
            passed, free, step = hits, self._words ^ match, 1  # from each guard down to the last match, by doubling
            while (more := passed | free & (passed >> step)) != passed:
                passed, free, step = more, free & (free >> step), 2 * step
            left ^= left & (passed >> 1)


def _shortened(line: Sequence[str], wanted: Collection[str]) -> tuple[str, ...]:
    known = [word if word in wanted else GUARD for word in line]
    return tuple(word for word, before in zip(known, [None, *known], strict=False) if word or before != GUARD)
