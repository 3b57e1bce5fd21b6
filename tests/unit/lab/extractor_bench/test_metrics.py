"""The metrics of texts: published checks, plain algorithms beside the fast ones, and what holds for any text."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.extractor_bench.edit_distance import edit_distances
from lab.extractor_bench.metrics import MOST_WORDS, Scores, scores_of
from lab.extractor_bench.union_lcs import union_hits

WORDS = st.lists(st.sampled_from("abcdef"), max_size=12)
LINES = st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=7), max_size=5)
TEXTS = st.text(alphabet="aAbBcd \n", max_size=60)


def score(gold: str, text: str) -> Scores:
    return scores_of(gold, [text])[0]


def plain_distance(first: list[str], second: list[str]) -> int:
    row = list(range(len(second) + 1))
    for at, word in enumerate(first, 1):
        below = [at]
        for place, other in enumerate(second):
            below.append(min(row[place + 1] + 1, below[-1] + 1, row[place] + (word != other)))
        row = below
    return row[-1]


def plain_union(reference: list[list[str]], text: list[list[str]]) -> int:
    """As in `rouge-score`: the way back prefers a match, then the longer of the two neighbours, then the row above."""
    union = Counter[str]()
    for line in reference:
        used = set()
        for other in text:
            table = [[0] * (len(other) + 1) for _ in range(len(line) + 1)]
            for i, word in enumerate(line, 1):
                for j, its in enumerate(other, 1):
                    longer = max(table[i - 1][j], table[i][j - 1])
                    table[i][j] = table[i - 1][j - 1] + 1 if word == its else longer
            i, j = len(line), len(other)
            while i and j:
                if line[i - 1] == other[j - 1]:
                    used.add(i - 1)
                    i, j = i - 1, j - 1
                elif table[i][j - 1] > table[i - 1][j]:
                    j -= 1
                else:
                    i -= 1
        union.update(line[place] for place in used)
    return (union & Counter(word for line in text for word in line)).total()


def test_the_checks_of_the_thesis() -> None:
    """Edit distance 3/6, Jaccard 3/8, ROUGE-LSum precision 4/7 and recall 4/6."""
    assert score("the cat sat on a mat", "the cat lay on one rug").distance == 3 / 6
    assert score("one two three four five", "one two three six seven eight").jaccard == 3 / 8
    summed = score("police killed the gunman last night", "the gunman\npolice killed one more man")
    assert (summed.precision, summed.recall) == (4 / 7, 4 / 6)


def test_each_line_of_a_text_adds_to_the_union() -> None:
    """The example of the paper: w1 w2 and w1 w3 w5 are in w1 w2 w3 w4 w5, together four of its words."""
    assert union_hits([["1", "2", "3", "4", "5"]], [[["1", "2", "6", "7", "8"], ["1", "3", "8", "9", "5"]]]) == [4]


@given(LINES, st.lists(LINES, max_size=4))
def test_the_bits_find_the_unions_that_plain_tables_find(
    reference: list[list[str]], texts: list[list[list[str]]]
) -> None:
    """For any lines of several texts, with words that the reference lacks."""
    assert union_hits(reference, texts) == [plain_union(reference, text) for text in texts]


@given(WORDS, st.lists(WORDS, max_size=4))
def test_the_bits_find_the_distances_that_plain_tables_find(reference: list[str], texts: list[list[str]]) -> None:
    """For any words of several texts; the distance is symmetric."""
    found = edit_distances(reference, texts)
    assert found == [plain_distance(reference, text) for text in texts]
    assert found == [edit_distances(text, [reference])[0] for text in texts]


@given(TEXTS)
def test_a_text_is_equal_to_itself(text: str) -> None:
    """Also one without words: every metric but the distance is 1."""
    assert score(text, text) == pytest.approx((1.0,) * 9 + (0.0,))


@given(TEXTS, TEXTS)
def test_metrics_are_shares_and_symmetric_where_they_name_no_side(gold: str, text: str) -> None:
    """Each is from 0 to 1; precision of a text is recall of the other, but for ROUGE, whose lines are not symmetric."""
    one, other = score(gold, text), score(text, gold)
    assert all(0 <= number <= 1 for number in one)
    assert (one.set_precision, one.set_recall) == (other.set_recall, other.set_precision)
    for name in ("words", "set_f1", "jaccard", "shingles", "distance"):
        assert getattr(one, name) == pytest.approx(getattr(other, name))


def test_no_text_and_no_label_have_no_part_in_common() -> None:
    """An empty text scores 0, and its distance is 1; sets differ by case only for Jaccard."""
    assert score("a b", "") == (0.0,) * 9 + (1.0,)
    assert score("", "a b") == (0.0,) * 9 + (1.0,)
    cased = score("A B", "a b")
    assert (cased.set_f1, cased.jaccard, cased.f1) == (1, 0, 0)


def test_words_beyond_the_most_are_left_out_of_the_order() -> None:
    """A hostile text costs bounded time: only its first words are aligned."""
    long = score("w " * MOST_WORDS, "w " * MOST_WORDS + "v " * 5)
    assert (long.precision, long.distance) == (1, 0) and long.words < 1


@given(TEXTS, st.lists(TEXTS, max_size=4))
def test_many_texts_of_a_page_have_the_metrics_that_each_has_alone(gold: str, texts: list[str]) -> None:
    """Also where some are equal, or equal to the main text."""
    assert scores_of(gold, [*texts, gold, *texts]) == [score(gold, text) for text in [*texts, gold, *texts]]
