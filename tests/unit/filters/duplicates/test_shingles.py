"""Outlines of texts: pinned values, sets of shingles, the error of sketches, and distances of simhashes."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filters.duplicates.shingles import PERMUTATIONS, WORDS, Outline, outline
from filters.site_memory.pages import containment

TEXT = "The river rose slowly during the night, and the people of the village moved their boats to higher ground."
SIMHASH = 0xC5999E0814F0D5C3
SHINGLES = [672767289, 683196223, 953966910, 1111664259]
SKETCH = [3243510043, 3237985629, 3273058992, 2978108572]
ANY = 10**9


def shingles(text: str, cap: int = ANY) -> list[int]:
    return [int(value) for value in np.frombuffer(outline(text, cap).shingles, "<u4")]


def sketch(text: str) -> list[int]:
    return [int(value) for value in np.frombuffer(outline(text, 1).sketch, "<u4")]


def distance(one: str, other: str) -> int:
    """Bits in which two simhashes differ."""
    return (outline(one, 1).simhash ^ outline(other, 1).simhash).bit_count()


def prose(seed: int, words: int, vocabulary: int = 3000) -> str:
    """Text of made-up words of 2 to 9 letters, common ones often."""
    rng = random.Random(seed)
    letters = random.Random(1)
    known = ["".join(letters.choices("abcdefghiklmnoprstu", k=2 + index % 8)) for index in range(vocabulary)]
    return " ".join(known[int(rng.paretovariate(0.5)) % vocabulary] for _ in range(words))


def test_golden_outline() -> None:
    """Hashes, permutations and bits equal those of stored rows: any change needs a new feature epoch."""
    found = outline(TEXT, ANY)
    assert found.simhash == SIMHASH
    assert found.shingle_count == len(TEXT.split()) - WORDS + 1
    assert np.frombuffer(found.shingles, "<u4")[:4].tolist() == SHINGLES
    assert np.frombuffer(found.sketch, "<u4")[:4].tolist() == SKETCH
    assert len(found.sketch) == 4 * PERMUTATIONS
    assert outline(TEXT.upper(), ANY) == found


@settings(max_examples=80)
@given(st.lists(st.sampled_from(["alpha", "Beta", "GAMMA", "delta"]), max_size=60))
def test_shingles_are_the_runs_of_five_words(words: list[str]) -> None:
    """A text has one hash for each distinct run of five lower-cased words; a shorter text is one run."""
    lower = [word.lower() for word in words]
    runs = {tuple(lower[place : place + WORDS]) for place in range(max(1, len(lower) - WORDS + 1))} if lower else set()
    found = outline(" ".join(words), ANY)
    values = np.frombuffer(found.shingles, "<u4").tolist()
    assert found.shingle_count == len(values) == len(runs)
    assert values == sorted(set(values))


@settings(max_examples=80)
@given(st.text(max_size=300), st.integers(1, 50))
def test_any_text_has_an_outline(text: str, cap: int) -> None:
    """Any text has an outline, even with lone surrogates or without words; white space and case make no difference."""
    found = outline(text, cap)
    words = text.split()
    assert (found == Outline()) == (not words)
    assert found == outline("\n \t".join(words), cap)
    assert 0 <= found.simhash < 2**64
    assert len(found.shingles) == 4 * min(cap, found.shingle_count)
    assert outline("\ud800 x", cap).shingle_count == 1


def test_a_cap_keeps_the_smallest_hashes_and_the_sketch_is_of_all() -> None:
    """A cap keeps the smallest shingle hashes; the sketch still covers all shingles."""
    text = prose(3, 400)
    whole, cut = outline(text, ANY), outline(text, 100)
    assert cut.shingles == whole.shingles[:400]
    assert (cut.sketch, cut.simhash, cut.shingle_count) == (whole.sketch, whole.simhash, whole.shingle_count)


def test_sketch_of_a_long_text_is_that_of_its_parts_together() -> None:
    """A long text is sketched in pieces: each place has the smallest value of the pieces. No thread is started."""
    words = [f"w{number}" for number in range(40_000)]
    parts = [" ".join(words[start : start + 10_000 + WORDS - 1]) for start in range(0, 40_000, 10_000)]
    assert sketch(" ".join(words)) == np.min([sketch(part) for part in parts], axis=0).tolist()


def test_sketches_estimate_containment() -> None:
    """For 120 pairs of known containment the bias is at most .03, and the error is the documented one."""
    errors = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        share = (0.0, 0.1, 0.3, 0.5, 0.7, 1.0)[seed % 6]
        size, other = 600, (600, 2400)[seed // 6 % 2]
        common = int(share * size)
        words = [f"{seed}w{number}" for number in rng.permutation(size + other)]
        one = " ".join(words[:size])
        two = " ".join([*words[:common], *words[size : size + other - common]])
        a, b = set(shingles(one)), set(shingles(two))
        equal = np.array([np.mean(np.array(sketch(one)) == np.array(sketch(two)))])
        estimate = float(containment(equal, len(a), np.array([len(b)], np.uint32))[0])
        exact = len(a & b) / len(a)
        assert share not in (0.0,) or estimate == exact == 0
        errors.append((share, other, estimate - exact))
    for other in (600, 2400):
        found = np.array([error for share, size, error in errors if size == other and 0 < share < 1])
        print(f"1:{other // 600} bias {found.mean():+.3f} standard error {found.std():.3f}")
        assert abs(found.mean()) < 0.03
        assert found.std() < (0.09 if other == 600 else 0.2)


def test_containment_is_exact_for_exact_similarities() -> None:
    """With the true Jaccard similarity, the formula gives the true containment, at most the smaller set's."""
    for a, b in combinations([set(range(40)), set(range(20, 90)), set(range(38, 45)), set(range(500, 600))], 2):
        jaccard = np.array([len(a & b) / len(a | b)])
        assert containment(jaccard, len(a), np.array([len(b)]))[0] == pytest.approx(len(a & b) / len(a))
    assert containment(np.array([0.5]), 100, np.array([10], np.uint32))[0] == pytest.approx(0.1)


def test_simhash_tells_near_duplicates_from_different_texts() -> None:
    """A text with one new word in eight, or another paragraph, is nearer by simhash than an unrelated text."""
    near, far = [], []
    for seed in range(40):
        text, other = prose(seed, 500), prose(1000 + seed, 500)
        words, strange = text.split(), other.split()
        slots = [strange[place] if place % 8 == 3 else word for place, word in enumerate(words)]
        near.append(distance(text, " ".join(slots)))
        near.append(distance(text, " ".join([*words[:200], *strange[:100], *words[300:]])))
        far.append(distance(text, other))
    assert np.percentile(near, 95) <= 20
    assert np.median(near) < np.percentile(far, 10)


def test_simhash_takes_short_words_where_there_are_no_others() -> None:
    """Only words of five or more characters are features of the simhash; without such a word, all words are."""
    assert outline("a bb ccc", 1).simhash != outline("a bb dddd", 1).simhash
    assert outline("a bb longer words", 1).simhash == outline("x yy words longer", 1).simhash


def test_one_word_repeated_does_not_decide_alone() -> None:
    """A text stuffed with one word keeps most of its simhash."""
    text = prose(5, 400)
    assert distance(text, text + " cheapest" * 400) <= 16
