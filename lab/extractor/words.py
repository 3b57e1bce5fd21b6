"""Learns the words that tell main text from the rest of a page: of the text, and of class, id, role and itemprop."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from filters.extraction.learned.page_blocks import PageBlocks
from filters.extraction.learned.word_inputs import MOST_SCORE, WordScores, words_of_name, words_of_text
from lab.extractor.gold import Floats

LEAST_DOMAINS = 8
"""Domains that a word must occur on: words of a single site tell nothing of others."""
_NAMES, _TEXTS, _MARKED = 400, 700, 40
_PRIOR_PAGES = 3
_LEAST_NAME_CHARS = 2

Parts = Mapping[str, float]


class PageWords(NamedTuple):
    """Words of a page, and the part of each that is in main text; `domain` is "" if it is unknown."""

    domain: str
    names: Parts
    texts: Parts


def page_words(domain: str, page: PageBlocks, shares: Floats) -> PageWords:
    """The words of a page whose blocks have these shares of main text, nan = unknown."""
    known = np.flatnonzero(~np.isnan(shares))
    vocabulary, first = words_of_text(page), page.first_word.tolist()
    words = [vocabulary[place] for place in page.word.tolist()]
    blocks, inside = Counter[str](), defaultdict[str, float](float)
    for block in known.tolist():
        for word in set(words[first[block] : first[block + 1]]):
            blocks[word] += 1
            inside[word] += float(shares[block])
    texts = {word: inside[word] / number for word, number in blocks.items() if word}
    if len(known) < len(shares):
        return PageWords(domain, {}, texts)
    sizes, main = page.in_subtrees(page.words), page.in_subtrees(page.words * shares)
    whole, named = defaultdict[str, float](float), defaultdict[str, float](float)
    for place, value in page.names:
        if size := sizes[place]:
            for word in {word for word in words_of_name(value) if len(word) >= _LEAST_NAME_CHARS}:
                whole[word] += size
                named[word] += main[place]
    return PageWords(domain, {word: float(named[word] / size) for word, size in whole.items()}, texts)


def word_scores(pages: Sequence[PageWords]) -> WordScores:
    """The words that tell most, and their scores."""
    names = _scores((page.domain, page.names) for page in pages)
    texts = _scores((page.domain, page.texts) for page in pages)
    kept = _first(names, _NAMES, math.log)
    marked = _first({word: names[word] for word in kept}, _MARKED, math.sqrt)
    return WordScores(
        {word: names[word][0] for word in kept},
        {word: texts[word][0] for word in _first(texts, _TEXTS, math.log)},
        tuple(marked),
    )


def _scores(pages: Iterable[tuple[str, Parts]]) -> dict[str, tuple[int, int]]:
    """Word -> its score and the number of pages that have it; without words that tell nothing or are of few domains."""
    number, total, domains = Counter[str](), defaultdict[str, float](float), defaultdict[str, set[str]](set)
    for domain, parts in pages:
        for word, part in parts.items():
            number[word] += 1
            total[word] += part
            if domain:
                domains[word].add(domain)
    usual = sum(total.values()) / max(number.total(), 1)
    if not 0 < usual < 1:
        return {}
    scores = {}
    for word in sorted(word for word, seen in domains.items() if len(seen) >= LEAST_DOMAINS):
        part = (total[word] + _PRIOR_PAGES * usual) / (number[word] + _PRIOR_PAGES)
        odds = math.log(part / (1 - part)) - math.log(usual / (1 - usual)) if part < 1 else math.inf
        score = round(10 * max(-MOST_SCORE / 10, min(MOST_SCORE / 10, odds)))
        if score:
            scores[word] = score, number[word]
    return scores


def _first(scores: Mapping[str, tuple[int, int]], most: int, weight: Callable[[float], float]) -> list[str]:
    """The words with the highest absolute score times the weight of their number of pages."""
    return sorted(scores, key=lambda word: (-round(abs(scores[word][0]) * weight(scores[word][1]), 6), word))[:most]
