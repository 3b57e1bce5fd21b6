"""`mixed`: two clear groups of scores, one on each side of the threshold."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.interface import PageScore
from scoring.sites.bimodal import is_mixed


def pages(scores: list[float], threshold: float = 0.9) -> list[PageScore]:
    """Pages flagged below the threshold."""
    return [PageScore(score < threshold, score) for score in scores]


HUMAN, LLM = [0.97, 0.98, 0.99, 1.0], [0.84, 0.85, 0.86, 0.87]


def test_two_groups_across_the_threshold_are_mixed() -> None:
    """Four pages on each side, far apart for their spread, are mixed, in any order."""
    assert is_mixed(pages(HUMAN + LLM))
    assert is_mixed(random.Random(1).sample(pages(HUMAN * 2 + LLM), 12))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("nothing", []),
        ("seven pages", pages(HUMAN + LLM[:3])),
        ("a group of less than a quarter", pages(HUMAN * 4 + LLM)),
        ("one group", pages(HUMAN * 2)),
        ("all the same", pages([0.9] * 20)),
        ("two groups on one side", pages(HUMAN + LLM, threshold=0.5)),
        ("two groups, flags that do not follow them", [PageScore(n % 2 == 0, s) for n, s in enumerate(HUMAN + LLM)]),
        ("an even spread", pages([0.8 + 0.01 * n for n in range(20)])),
        ("scores that were not kept", [PageScore(flag) for flag in [True] * 8 + [False] * 8]),
        ("flags that are not known", [PageScore(None, score) for score in HUMAN + LLM]),
    ],
)
def test_what_is_not_mixed(name: str, found: list[PageScore]) -> None:
    """Too few pages, one group, groups on one side, and unknown scores or flags are not mixed."""
    assert not is_mixed(found)


def naive(found: list[PageScore]) -> bool:
    """The definition, cut by cut."""
    known = sorted((page.score, page.flag) for page in found if page.score is not None)
    cuts = [cut for cut in range(4, len(known) - 3) if 4 * cut >= len(known) and 4 * (len(known) - cut) >= len(known)]
    if not cuts:
        return False

    def groups(cut: int) -> list[list[float]]:
        return [[score for score, _ in known[:cut]], [score for score, _ in known[cut:]]]

    best = min(cuts, key=lambda cut: sum(statistics.pvariance(group) * len(group) for group in groups(cut)))
    low, high = groups(best)
    width = (statistics.pvariance(low) + statistics.pvariance(high)) ** 0.5
    shares = [statistics.fmean(bool(flag) for _, flag in part) for part in (known[:best], known[best:])]
    clear = 2**0.5 * (statistics.fmean(high) - statistics.fmean(low)) > 4 * width
    return clear and min(shares) <= 0.25 and max(shares) >= 0.75


@given(st.lists(st.sampled_from(range(100)), max_size=24), st.integers(0, 100))
def test_it_is_its_definition(scores: list[int], threshold: int) -> None:
    """The running sums find the same cut as a full search, for every list, except for ties of two cuts."""
    found = pages([float(score) for score in scores], threshold)
    known = sorted(scores)
    spreads = [
        round(sum(statistics.pvariance(part) * len(part) for part in (known[:cut], known[cut:])), 6)
        for cut in range(4, len(known) - 3)
    ]
    if len(set(spreads)) == len(spreads):
        assert is_mixed(found) == naive(found)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=8, max_size=30), st.floats(allow_nan=False))
def test_any_finite_scores_have_an_answer(scores: list[float], threshold: float) -> None:
    """Any finite scores give an answer, without overflow or division by zero."""
    assert is_mixed(pages(scores, threshold)) in (True, False)
