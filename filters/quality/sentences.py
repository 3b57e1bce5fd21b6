"""Finds sentences by rules, without a trained model, in one pass of a regular expression.

A sentence ends at the end of a line. Within a line it ends after . ! ? or … if white space follows, and then anything
but a lower-case letter. A full stop does not end a sentence after a title (`Mr. Smith`), a word like `No.` before a
number (`No. 5`), or a single letter (`J. Smith`; `I` is a word). The corpus builders use NLTK's Punkt, which must be
downloaded; C4 only needs to know if a page has five sentences.
"""

from __future__ import annotations

import re

AFTER_MARK = r"""["'”’»)\]]*+[^\S\n]++(?=["'“‘«(\[¿¡]*+([^\s]))"""
"""From a mark to the white space after it; the group is the next sentence's first character after quotes."""

_SURE_ENDS = tuple(re.compile(mark + AFTER_MARK) for mark in (r"\.(?<=[a-z]{5}\.)", "!", r"\?", "…"))
"""Ends without an abbreviation: full stops after a longer word than any of TITLES, and other marks. Each begins with
one character, which makes the search faster."""

_ANY_END = re.compile(r"[.!?…]" + AFTER_MARK)
_LINE_END = re.compile(r"\n\s*+")

_OTHER_END = re.compile(r"\.(?<![a-z]{5}\.)" + AFTER_MARK)
_TITLES = """
mr mrs ms dr prof rev hon st sr gen col maj capt lt sgt gov sen rep mme mlle cf vs v e.g i.e ca
"""
TITLES = frozenset(_TITLES.split())
"""Abbreviations within a sentence, in lower case, without their full stop. `etc.`, `a.m.`, `Inc.` and `U.S.` end
sentences as often as not and are not listed."""

_NUMBERED = """
no nos vol vols fig figs p pp ch chap sec art jan feb mar apr jun jul aug sep sept oct nov dec
"""
NUMBERED = frozenset(_NUMBERED.split())
"""Abbreviations only before a digit (`no. 5`, `Jan. 5`), because many are also words that end sentences."""

_LONGEST = max(map(len, TITLES | NUMBERED))


def count_sentences(text: str) -> int:
    """Count the sentences of a text. The end of a line ends a sentence; a line of white space has none."""
    lines = [line for line in text.split("\n") if line]
    sure = "".join([follows for ends in _SURE_ENDS for follows in ends.findall(text)])
    return (
        len(lines)
        - sum(map(str.isspace, lines))
        + len(sure)
        - sum(map(str.islower, sure))
        + sum([ends_sentence(text, end) for end in _OTHER_END.finditer(text)])
    )


def sentence_starts(text: str) -> list[int]:
    """The places where sentences start: the first is 0, and each begins a line or follows the end of another."""
    starts = [end.end() for end in _ANY_END.finditer(text) if ends_sentence(text, end)]
    starts += [line.end() for line in _LINE_END.finditer(text, 0, len(text.rstrip()))]
    starts.append(0)
    starts.sort()
    return starts


def ends_sentence(text: str, end: re.Match[str]) -> bool:
    """Whether a sentence ends at a mark matched by AFTER_MARK."""
    follows = end[1]
    if follows.islower():
        return False
    stop = end.start()
    if text[stop] != ".":
        return True
    before = text[max(0, stop - _LONGEST - 1) : stop]
    words = before.split()
    if (before.isalpha() and len(before) > _LONGEST) or not words or before[-1].isspace():
        return True  # no abbreviation
    word = words[-1].lstrip("\"'“‘«([¿¡")
    if len(word) == 1:
        return word == "I" or not word.isalpha()
    return word.lower() not in (NUMBERED if follows.isdigit() else TITLES)
