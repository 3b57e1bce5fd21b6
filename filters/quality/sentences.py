"""Where sentences end: rules without a trained model, in one pass of a regular expression.

A sentence ends at the end of a line, and within a line after . ! ? or … where white space follows and then anything but
a lower-case letter. A full stop ends none after a title (`Mr. Smith`), what a number follows (`No. 5`), or a single
letter (`J. Smith`); `I` is a word. The corpus builders' own splitter, NLTK's Punkt, is a download; C4 asks for five
sentences of a page only.
"""

from __future__ import annotations

import re

AFTER_MARK = r"""["'”’»)\]]*+[^\S\n]++(?=["'“‘«(\[¿¡]*+([^\s]))"""
"""From a mark to the white space after it; the group is the next sentence's first character that is no quote."""

_SURE_ENDS = tuple(re.compile(mark + AFTER_MARK) for mark in (r"\.(?<=[a-z]{5}\.)", "!", r"\?", "…"))
"""Ends that no abbreviation is before: full stops behind a longer word than any of TITLES, and other marks. Each begins
with one character, which makes the search faster."""

_OTHER_END = re.compile(r"\.(?<![a-z]{5}\.)" + AFTER_MARK)
_TITLES = """
mr mrs ms dr prof rev hon st sr gen col maj capt lt sgt gov sen rep mme mlle cf vs v e.g i.e ca
"""
TITLES = frozenset(_TITLES.split())
"""Words that a full stop follows within a sentence, in lower case and without that stop. `etc.`, `a.m.`, `Inc.` and
`U.S.` end sentences as often as not and are left out."""

_NUMBERED = """
no nos vol vols fig figs p pp ch chap sec art jan feb mar apr jun jul aug sep sept oct nov dec
"""
NUMBERED = frozenset(_NUMBERED.split())
"""Words that do so where a digit follows (`no. 5`, `Jan. 5`), for many are words that end sentences too."""

_LONGEST = max(map(len, TITLES | NUMBERED))


def count_sentences(text: str) -> int:
    """The sentences of a text; the end of a line ends one, and a line of white space has none."""
    lines = [line for line in text.split("\n") if line]
    sure = "".join([follows for ends in _SURE_ENDS for follows in ends.findall(text)])
    return (
        len(lines)
        - sum(map(str.isspace, lines))
        + len(sure)
        - sum(map(str.islower, sure))
        + sum([ends_sentence(text, found) for found in _OTHER_END.finditer(text)])
    )


def ends_sentence(text: str, found: re.Match[str]) -> bool:
    """Whether a sentence ends at a mark that was found with AFTER_MARK."""
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
