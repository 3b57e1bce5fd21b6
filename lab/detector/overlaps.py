"""Texts that repeat an earlier one: another copy of a page, a test text among those learned from.

A text repeats earlier ones if more than three tenths of its runs of eight words ("shingles", Broder 1997) are in them.
A fixed quarter of the shingles, chosen by their hash, stands for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

_WORDS = 8
_SHARE = 0.3
_ONE_IN = 4


class KnownTexts:
    """The shingles of the texts that were added so far."""

    def __init__(self) -> None:
        self._shingles: set[int] = set()

    def add(self, words: Sequence[str]) -> bool:
        """Add a text, and say whether it is new; one that repeats earlier texts is not added."""
        runs = (crc32(" ".join(words[place : place + _WORDS]).encode()) for place in range(len(words) - _WORDS + 1))
        shingles = {run for run in runs if run % _ONE_IN == 0}
        if len(shingles & self._shingles) > _SHARE * len(shingles):
            return False
        self._shingles |= shingles
        return True
