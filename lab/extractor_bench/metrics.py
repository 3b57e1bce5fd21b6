"""How near a text is to a labelled main text. Words are what white space separates; each number is from 0 to 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from lab.extractor.gold import GoldTexts
from lab.extractor_bench.edit_distance import edit_distance
from lab.extractor_bench.union_lcs import union_hits

MOST_WORDS = 20_000
"""Words of a text whose order is compared; those beyond are left out, which bounds time and memory."""
_SHINGLE = 4


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


def scores_of(gold: str, text: str) -> Scores:
    """The metrics of a text."""
    (ours, lines), (theirs, gold_lines) = _words(text), _words(gold)
    hits = union_hits(gold_lines, lines)
    precision, recall = (_share(hits, sum(map(len, of))) for of in (lines, gold_lines))
    own, wanted = {word.lower() for word in ours}, {word.lower() for word in theirs}
    common = len(own & wanted)
    cut, gold_cut = ours[:MOST_WORDS], theirs[:MOST_WORDS]
    hits_of_words, of = GoldTexts(gold).hits(text)
    if not ours and not theirs:
        return Scores(**dict.fromkeys(Scores._fields, 1.0))._replace(distance=0.0)
    return Scores(
        precision=precision,
        recall=recall,
        f1=_share(2 * precision * recall, precision + recall),
        words=hits_of_words / of,
        set_f1=_share(2 * common, len(own) + len(wanted)),
        set_precision=_share(common, len(own)),
        set_recall=_share(common, len(wanted)),
        jaccard=_share(len({*ours} & {*theirs}), len({*ours} | {*theirs})),
        shingles=_overlap(_shingles(ours), _shingles(theirs)),
        distance=_share(edit_distance(cut, gold_cut), max(len(cut), len(gold_cut))),
    )


def _words(text: str) -> tuple[list[str], list[list[str]]]:
    """The words of a text, and those of its lines."""
    words, lines, left = text.split(), list[list[str]](), MOST_WORDS
    for line in filter(None, map(str.split, text.split("\n"))):
        lines.append(line[:left])
        left -= len(lines[-1])
        if not left:
            break
    return words, lines


def _shingles(words: Sequence[str]) -> Counter[tuple[str, ...]]:
    """A text of fewer words is one shingle."""
    if len(words) < _SHINGLE:
        return Counter([tuple(words)] if words else [])
    return Counter(zip(*(islice(words, start, None) for start in range(_SHINGLE)), strict=False))


def _overlap(ours: Counter[tuple[str, ...]], theirs: Counter[tuple[str, ...]]) -> float:
    return _share(2 * (ours & theirs).total(), ours.total() + theirs.total())


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
