"""How near a text is to a labelled main text. Words are what white space separates; each number is from 0 to 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice, repeat
from typing import NamedTuple, TypeVar

from lab.extractor.gold import words_of
from lab.extractor_bench.edit_distance import edit_distances
from lab.extractor_bench.union_lcs import union_hits

MOST_WORDS = 20_000
"""Words of a text whose order is compared; those beyond are left out, which bounds time and memory."""
_SHINGLE = 4
T = TypeVar("T")


class Scores(NamedTuple):
    """The metrics of a text. All but the edit distance are 1 for the labelled text itself."""

    precision: float  # ROUGE-LSum: share of the text's words that are in the union of longest common subsequences
    recall: float
    f1: float
    words: float  # F1 of words as `lab train-extractor` counts them: a multiset, in lower case
    set_f1: float  # F1 of the sets of words, in lower case
    set_precision: float
    set_recall: float
    jaccard: float  # of the sets of words
    shingles: float  # F1 of sequences of four words, as a multiset
    distance: float  # edit distance of the words / words of the longer text


def scores_of(gold: str, texts: Sequence[str]) -> list[Scores]:
    """The metrics of each text."""
    wanted = _Words(gold)
    own = {text: _Words(text) for text in texts}
    hits = union_hits(wanted.lines, [of.lines for of in own.values()])
    distances = edit_distances(wanted.first, [of.first for of in own.values()])
    found = map(_scores, own.values(), hits, distances, repeat(wanted))
    known = dict(zip(own, found, strict=True))
    return [known[text] for text in texts]


class _Words:
    """The words of a text."""

    def __init__(self, text: str) -> None:
        self.all = text.split()
        self.first = self.all[:MOST_WORDS]
        self.lower = {word.lower() for word in self.all}
        self.shingles = _shingles(self.all)
        self.trained = Counter(words_of(text))
        self.lines, left = list[list[str]](), MOST_WORDS
        for line in filter(None, map(str.split, text.split("\n"))):
            self.lines.append(line[:left])
            left -= len(self.lines[-1])
            if not left:
                break


def _scores(own: _Words, hits: int, distance: int, wanted: _Words) -> Scores:
    if not own.all and not wanted.all:
        return Scores(**dict.fromkeys(Scores._fields, 1.0))._replace(distance=0.0)
    precision, recall = _share(hits, len(own.first)), _share(hits, len(wanted.first))
    common = len(own.lower & wanted.lower)
    cased, wanted_cased = {*own.all}, {*wanted.all}
    return Scores(
        precision=precision,
        recall=recall,
        f1=_share(2 * precision * recall, precision + recall),
        words=_overlap(own.trained, wanted.trained) if own.trained or wanted.trained else 1.0,
        set_f1=_share(2 * common, len(own.lower) + len(wanted.lower)),
        set_precision=_share(common, len(own.lower)),
        set_recall=_share(common, len(wanted.lower)),
        jaccard=_share(len(cased & wanted_cased), len(cased | wanted_cased)),
        shingles=_overlap(own.shingles, wanted.shingles),
        distance=_share(distance, max(len(own.first), len(wanted.first))),
    )


def _shingles(words: Sequence[str]) -> Counter[tuple[str, ...]]:
    """A text of fewer words is one shingle."""
    if len(words) < _SHINGLE:
        return Counter([tuple(words)] if words else [])
    return Counter(zip(*(islice(words, start, None) for start in range(_SHINGLE)), strict=False))


def _overlap(ours: Counter[T], theirs: Counter[T]) -> float:
    both = ours.keys() & theirs.keys()  # quicker than the intersection of two counters
    common = sum(map(min, map(ours.__getitem__, both), map(theirs.__getitem__, both)))
    return _share(2 * common, ours.total() + theirs.total())


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
