"""The labelled main text of a page: which blocks belong to it, and how good a text is.

A page has a main text by people, or segments of text inside and outside of it. Blocks are compared with a main text by
common runs of words, so that a word in the navigation does not count for the same word in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from farmwatch.labels.labelled_pages import LabelledPages
from stream.text.invisible import without_invisible

Floats = NDArray[np.float32]

_MOST_PAIRS = 400_000_000  # words of a page times words of its main text: a minute
_SHORTEST_RUN = 2  # words; a single word may be the same by chance
_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """The words that F1 counts."""
    return _WORD.findall(without_invisible(text).lower())


def keep_main_texts(pages: LabelledPages) -> None:
    """Leave out the pages without a labelled main text; in a source that has main texts, segments are none."""
    with_texts = {label.source for label in pages.labels if label.gold}
    pages.narrow(lambda label: bool(label.gold or (label.belongs and label.source not in with_texts)))


class GoldTexts(NamedTuple):
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
        joined = _spaced(text)
        right = sum(_spaced(segment) in joined for segment in self.belongs)
        wrong = sum(_spaced(segment) in joined for segment in self.foreign)
        return 2.0 * right, float(right + len(self.belongs) + wrong)

    def shares(self, lines: Sequence[str]) -> Floats | None:
        """The share of each line that is main text, nan = unknown; None for a text that is too long to compare."""
        if self.text is None:
            shares = np.full(len(lines), np.nan, np.float32)
            for segments, share in ((self.foreign, 0), (self.belongs, 1)):
                wanted = [spaced for segment in segments if (spaced := _spaced(segment))]
                shares[[place for place, line in enumerate(lines) if any(part in line for part in wanted)]] = share
            return shares
        split, gold = [words_of(line) for line in lines], words_of(self.text)
        words = [word for of_line in split for word in of_line]
        if len(words) * len(gold) > _MOST_PAIRS:
            return None
        total = np.zeros(len(words) + 1)
        for run in SequenceMatcher(None, words, gold, autojunk=False).get_matching_blocks():
            if run.size >= _SHORTEST_RUN:
                total[run.a + 1 : run.a + run.size + 1] = 1
        sizes = np.array([len(of_line) for of_line in split])
        ends, total = np.cumsum(sizes), np.cumsum(total)
        return np.asarray((total[ends] - total[ends - sizes]) / np.maximum(sizes, 1), np.float32)


def _spaced(text: str) -> str:
    return " ".join(without_invisible(text).split())
