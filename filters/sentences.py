"""Where sentences end: rules without a trained model, in one pass of a regular expression.

A sentence ends at the end of a line, and within a line after . ! ? or … (closing quotes and brackets included) where
white space follows and then anything but a lower-case letter. A full stop ends none after

- an abbreviation that a name or number follows (`Mr. Smith`, `No. 5`, `e.g. Paris`),
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

_END = re.compile(r"""[.!?…]["'”’»)\]]*+[^\S\n]++(?=["'“‘«(\[¿¡]*+([^\s]))""")
"""From the mark to the white space after it; the group is the next sentence's first character that is no quote."""

ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof rev hon st sr jr gen col maj capt lt sgt cmdr adm gov sen rep pres messrs mme mlle fr"
    " jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun"
    " no nos vol vols fig figs p pp ch chap sec art ed eds trans op cf vs v viz al e.g i.e eg ie approx ca c inc ltd"
    " co corp dept est ft mt ave blvd rd bros univ assn".split()
)
"""Words that a full stop follows within a sentence, in lower case and without that stop. `etc.`, `a.m.` and `U.S.`
end sentences as often as not and are left out."""

LONGEST_ABBREVIATION = max(map(len, ABBREVIATIONS))


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without the white space around them."""
    return [sentence for line in text.split("\n") for sentence in map(str.strip, _cut(line)) if sentence]


def count_sentences(text: str) -> int:
    """As many as `split_sentences` would return, without making them."""
    lines = sum(not line.isspace() for line in text.split("\n") if line)
    return lines + sum(1 for _ in _ends(text))


def _cut(line: str) -> Iterator[str]:
    start = 0
    for end in _ends(line):
        yield line[start:end]
        start = end
    yield line[start:]


def _ends(text: str) -> Iterator[int]:
    """Where sentences begin within lines: behind the white space that ends the one before."""
    for found in _END.finditer(text):
        if not found[1].islower() and (text[found.start()] != "." or not _abbreviated(text, found.start())):
            yield found.end()


def _abbreviated(text: str, stop: int) -> bool:
    """Whether the full stop at `stop` belongs to the word before it."""
    before = text[max(0, stop - LONGEST_ABBREVIATION - 2) : stop]
    word = before[len(before) - len(before.split()[-1]) :] if before and not before[-1].isspace() else ""
    word = word.lstrip("\"'“‘«([¿¡")
    return word.lower() in ABBREVIATIONS or (len(word) == 1 and word.isalpha() and word != "I")
