"""Where sentences end: rules without a trained model, in one pass of a regular expression.

A sentence ends at the end of a line, and within a line after . ! ? or … (closing quotes and brackets included) where
white space follows and then anything but a lower-case letter. A full stop ends none after

- a title or the like (`Mr. Smith`, `e.g. Paris`), or what a number follows (`No. 5`),
- a single letter (`J. Smith`, `U. S. Army`); `I` is a word.

So decimals, host names and `U.S.` within a sentence stand, as no white space or a lower-case letter follows. The
corpus builders' own splitter, NLTK's Punkt (Kiss and Strunk 2006), learns its abbreviations from a corpus and is a
download; C4's rule asks for five sentences of a page only, so a differing one matters to pages near five.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

Splitter: TypeAlias = Callable[[str], Sequence[str]]
"""The sentences of a text, none of them empty; the end of a line ends a sentence."""

_AFTER_MARK = r"""["'”’»)\]]*+[^\S\n]++(?=["'“‘«(\[¿¡]*+([^\s]))"""
_END = re.compile(r"[.!?…]" + _AFTER_MARK)
"""From the mark to the white space after it; the group is the next sentence's first character that is no quote."""

_SURE_ENDS = tuple(re.compile(mark + _AFTER_MARK) for mark in (r"\.(?<=[a-z]{5}\.)", "!", r"\?", "…"))
"""Those of them that no abbreviation is before: full stops behind a longer word than any of TITLES, and other marks.
That each begins with one character and not with one of four makes the search faster."""

_OTHER_END = re.compile(r"\.(?<![a-z]{5}\.)" + _AFTER_MARK)
"""The rest of them."""

TITLES = frozenset(
    re.findall(
        r"\S+", "mr mrs ms dr prof rev hon st sr gen col maj capt lt sgt gov sen rep mme mlle cf vs v e.g i.e ca"
    )
)
"""Words that a full stop follows within a sentence, in lower case and without that stop. `etc.`, `a.m.`, `Inc.` and
`U.S.` end sentences as often as not and are left out."""

NUMBERED = frozenset(
    re.findall(r"\S+", "no nos vol vols fig figs p pp ch chap sec art jan feb mar apr jun jul aug sep sept oct nov dec")
)
"""Words that do so where a digit follows (`no. 5`, `Jan. 5`), for many are words that end sentences too."""

_LONGEST = max(map(len, TITLES | NUMBERED))


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without the white space around them."""
    return [sentence for line in text.split("\n") for sentence in map(str.strip, _cut(line)) if sentence]


def count_sentences(text: str) -> int:
    """As many as `split_sentences` would return, without making them."""
    lines = [line for line in text.split("\n") if line]
    sure = "".join([follows for ends in _SURE_ENDS for follows in ends.findall(text)])
    return (
        len(lines)
        - sum(map(str.isspace, lines))
        + len(sure)
        - sum(map(str.islower, sure))
        + sum([_ends_sentence(text, found) for found in _OTHER_END.finditer(text)])
    )


def _cut(line: str) -> Iterator[str]:
    start = 0
    for end in _ends(line):
        yield line[start:end]
        start = end
    yield line[start:]


def _ends(text: str) -> Iterator[int]:
    """Where sentences begin within lines: behind the white space that ends the one before."""
    return (found.end() for found in _END.finditer(text) if _ends_sentence(text, found))


def _ends_sentence(text: str, found: re.Match[str]) -> bool:
    follows = found[1]
    if follows.islower():
        return False
    stop = found.start()
    if text[stop] != ".":
        return True
    before = text[max(0, stop - _LONGEST - 1) : stop]
    return (before.isalpha() and len(before) > _LONGEST) or not _abbreviated(before, follows)


def _abbreviated(before: str, follows: str) -> bool:
    """Whether a full stop belongs to the last word before it; `follows` is what the next one begins with."""
    words = before.split()
    if not words or before[-1].isspace():
        return False
    word = words[-1].lstrip("\"'“‘«([¿¡")
    if len(word) == 1:
        return word.isalpha() and word != "I"
    return word.lower() in (NUMBERED if follows.isdigit() else TITLES)
