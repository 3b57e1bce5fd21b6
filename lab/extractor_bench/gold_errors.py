"""Words of a labelled main text that its page does not have: E(K), and the likely cause.

K: the different words (letters and digits) that are more frequent in the main text than on the page. E = K / all words
of the page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from lab.extractor_bench.page_facts import PageFacts
from lab.extractor_bench.pages import BenchPage

PRINTED, SET_ASIDE = 0.01, 0.02
"""Errors above which a page is named, and above which it is left out of the metrics."""
_MOST = 0.5  # of the words in K that a cause must explain, or of the main text that another page lacks
_WORD = re.compile(r"\w+")


class Cause(StrEnum):
    """Why a main text has words that its page lacks."""

    OTHER_PAGE = "other_page"
    JOINED = "joined_words"
    UNSEEN = "script_or_noscript"
    MISSING = "missing"


class GoldError(msgspec.Struct, frozen=True):
    """A page with errors above PRINTED."""

    source: str
    id: str
    error: float
    cause: Cause
    set_aside: bool
    words: list[str]  # the first of K


def words_of(text: str) -> list[str]:
    """Runs of letters and digits."""
    return _WORD.findall(text)


def gold_error(page: BenchPage, facts: PageFacts) -> GoldError | None:
    """The error of a page, None if it is not above PRINTED."""
    there, wanted = Counter(words_of("".join(facts.leaves))), Counter(words_of(page.gold))
    lacking = list(wanted - there)
    error = len(lacking) / there.total() if there else float(bool(lacking))
    if error <= PRINTED:
        return None
    cause = _cause(lacking, wanted, facts)
    return GoldError(page.label.source, page.label.id, error, cause, error > SET_ASIDE, sorted(lacking)[:10])


def _cause(lacking: Sequence[str], wanted: Counter[str], facts: PageFacts) -> Cause:
    if len({*lacking}.intersection(words_of(facts.unseen))) > _MOST * len(lacking):
        return Cause.UNSEEN
    if len(lacking) > _MOST * len(wanted):
        return Cause.OTHER_PAGE
    joined = "".join(words_of("".join(facts.leaves)))
    return Cause.JOINED if sum(word in joined for word in lacking) > _MOST * len(lacking) else Cause.MISSING
