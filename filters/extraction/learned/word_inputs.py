"""The inputs of the block classifier that come from learned words.

A word of text, or of a class, id, role or itemprop, has a score: tenths of a logit by which it is more frequent in main
texts than elsewhere. Readability has such words with the scores 1 and -1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

import msgspec
import numpy as np

from filters.extraction.learned.inputs import Columns, Inputs, flag, inside, near
from filters.extraction.learned.page_blocks import LEVELS, Ints, PageBlocks

MOST_SCORE = 35
_MIDDLE = 40  # the input of the score 0
_NAME_CHARS = 300
_NAME_PART = re.compile("[A-Z]?[a-z]+|[A-Z]+")
_EDGES = ".,:;!?()[]\"'“”’‘»«›…|-–"


class WordScores(msgspec.Struct, frozen=True):
    """Scores of words of names and of texts; the names `marked` have an input each."""

    names: Mapping[str, int]
    texts: Mapping[str, int]
    marked: tuple[str, ...]


def words_of_name(value: str) -> list[str]:
    """The words of a name: `postBody-text` has post, body and text."""
    return [part.lower() for part in _NAME_PART.findall(value[:_NAME_CHARS])]


def words_of_text(page: PageBlocks) -> list[str]:
    """The vocabulary of a page in lower case, without punctuation at the edges of words."""
    return [word.strip(_EDGES).lower() for word in page.vocabulary]


def word_inputs(page: PageBlocks, scores: WordScores) -> Columns:
    """The inputs of all blocks."""
    inputs = Columns(len(page.lines))
    mean = _of_texts(page, scores, inputs)
    path = _of_names(page, scores, inputs)
    both = np.stack([mean, path])
    for away in (-2, -1, 1, 2):
        inputs.add_all([f"text_score{away:+d}", f"path_score{away:+d}"], near(both, away))
    return inputs


def _of_texts(page: PageBlocks, scores: WordScores, inputs: Columns) -> Inputs:
    add, first, get = inputs.add, page.first_word, scores.texts.get
    score = np.array([get(word, 0) for word in words_of_text(page)], np.int64)[page.word]
    known, summed = page.in_words(score != 0), page.in_words(score)
    mean = add("text_score", _MIDDLE + summed // np.maximum(known, 1))
    add("text_score_sum", np.maximum(_MIDDLE + summed // 4, 0))
    worst = add("text_score_worst", _MIDDLE + np.minimum.reduceat(score, first[:-1]))
    add("text_score_best", _MIDDLE + np.maximum.reduceat(score, first[:-1]))
    add("text_score_first", _MIDDLE + score[first[:-1]])
    add("text_score_last", _MIDDLE + score[first[1:] - 1])
    add("heading_score", np.where(page.heading < 0, _MIDDLE, mean[page.heading]))
    add("heading_worst", np.where(page.heading < 0, _MIDDLE, worst[page.heading]))
    return mean


def _of_names(page: PageBlocks, scores: WordScores, inputs: Columns) -> Inputs:
    add, holder, get = inputs.add, page.holder, scores.names.get
    mean, lowest, highest = (np.zeros(len(page.tags), np.int64) for _ in range(3))
    marks: dict[str, list[int]] = {word: [] for word in scores.marked}
    cached: dict[str, tuple[int, int, int, list[list[int]]]] = {}
    for place, value in page.names:
        if (found_of := cached.get(value)) is None:
            words = words_of_name(value)
            values = [score for word in words if (score := get(word))] or [0]
            marked = [marks[word] for word in set(words) if word in marks]
            found_of = cached[value] = sum(values) // len(values), min(values), max(values), marked
        mean[place], lowest[place], highest[place], marked = found_of
        for places in marked:
            places.append(place)
    nearest = mean.copy()
    path = mean.copy()
    for of_depth in _by_depth(page):
        above = page.parent[of_depth]
        nearest[of_depth] = np.where(mean[of_depth], mean[of_depth], nearest[above])
        path[of_depth] += path[above]
        lowest[of_depth] = np.minimum(lowest[of_depth], lowest[above])
        highest[of_depth] = np.maximum(highest[of_depth], highest[above])
    add("name_score", _MIDDLE + mean[holder])
    on_path = add("path_score", np.maximum(_MIDDLE + path[holder] // 4, 0))
    add("path_worst", _MIDDLE + lowest[holder])
    add("path_best", _MIDDLE + highest[holder])
    at = page.ancestors
    inputs.add_all([f"name_score_{level}" for level in range(LEVELS)], _MIDDLE + nearest[at])
    around = inside(page.last, list(marks.values()))[:, holder]
    inputs.add_all([f"named_{word}" for word in marks], flag(around > 0))
    return on_path


def _by_depth(page: PageBlocks) -> list[Ints]:
    """The elements of each depth below the root."""
    order = np.argsort(page.depth, kind="stable")
    edges = np.searchsorted(page.depth[order], np.arange(1, int(page.depth.max()) + 2))
    return [order[start:end] for start, end in pairwise(edges.tolist())]
