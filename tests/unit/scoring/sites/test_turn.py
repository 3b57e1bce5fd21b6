"""Sites that turned: the exact test, the flags beside it, and which articles count."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, rankdata

from scoring.sites.turn import MOST_ARTICLES, DatedScore, can_tell, flags_of_quarters, has_turned, rank_p, turn_of
from stream.schema.dates import CHATGPT

DAY = timedelta(days=1)


def articles(before: list[float], since: list[float], threshold: float = 0.5) -> list[DatedScore]:
    """Articles on days before the release, the last of them on the day before it, and since; below is flagged."""
    days = [CHATGPT - DAY * n for n in range(1, len(before) + 1)] + [CHATGPT + DAY * n for n in range(len(since))]
    scores = [*before, *since]
    return [DatedScore(day, score < threshold, score) for day, score in zip(days, scores, strict=True)]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.lists(st.integers(0, 4), min_size=1, max_size=5))
def test_p_is_the_share_of_all_choices_with_such_a_rank_sum(smaller: list[int], larger: list[int]) -> None:
    """Of all ways to choose as many, ties with their mean rank."""
    ranks = rankdata([*smaller, *larger])
    seen = ranks[len(smaller) :].sum()
    ways = [sum(chosen) for chosen in combinations(ranks, len(larger))]
    expected = sum(total >= seen - 1e-9 for total in ways) / len(ways)
    assert rank_p(smaller, larger) == pytest.approx(expected, abs=1e-12)


def test_p_is_that_of_scipy_for_as_many_articles_as_are_compared() -> None:
    """Without ties, for 25 and 25 with some overlap."""
    smaller, larger = [float(n) for n in range(25)], [n + 10.5 for n in range(25)]
    expected = mannwhitneyu(larger, smaller, alternative="greater", method="exact").pvalue
    assert rank_p(smaller, larger) == pytest.approx(expected, rel=1e-9)


def test_five_articles_before_and_five_since_can_tell_and_four_cannot() -> None:
    """By the clearest difference, 1 of 252 and 1 of 70; few on one side need more on the other."""
    for number in (4, 5):
        turn = turn_of(articles([0.9] * number, [0.1] * number))
        assert has_turned(turn.turn_p) == can_tell(number, number) == (number == 5)
    assert (can_tell(3, 8), can_tell(3, 7), can_tell(0, 99)) == (True, True, False)
    assert can_tell(2, 13) and not can_tell(2, 12)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_flags_tell_on_which_side_the_scores_of_a_model_lie(sign: int) -> None:
    """A site turns whether low or high scores are flagged; back from a model to people it does not turn."""
    before, since = [0.9, 0.8, 0.7, 0.95, 0.85], [0.1, 0.2, 0.3, 0.15, 0.25]
    for dated, is_turn in ((articles(before, since), True), (articles(since, before), False)):
        signed = [article._replace(score=sign * article.score) for article in dated]
        assert has_turned(turn_of(signed).turn_p) == is_turn


@pytest.mark.parametrize(
    ("before", "since", "turned"),
    [
        ([0.9] * 4 + [0.4], [0.1] * 5, True),  # one of five earlier ones is flagged
        ([0.9] * 3 + [0.4] * 2, [0.1] * 5, False),  # two are
        ([0.9] * 6, [0.1] * 3 + [0.8] * 3, True),  # half of the later ones
        ([0.9] * 6, [0.1] * 2 + [0.8] * 4, False),  # a third
        ([0.9] * 5, [0.7] * 5, False),  # another writer: none
    ],
)
def test_a_clear_difference_without_changed_flags_is_no_turn(
    before: list[float], since: list[float], turned: bool
) -> None:
    """At most a fifth of the earlier articles is flagged, and at least half of the later ones."""
    turn = turn_of(articles(before, since))
    assert has_turned(turn.turn_p) == turned
    assert (turn.before_scored, turn.since_scored) == (len(before), len(since))
    assert turn.before_flagged == sum(score < 0.5 for score in before)


def test_the_day_of_the_release_is_since() -> None:
    """The day before it is before."""
    turn = turn_of([DatedScore(CHATGPT - DAY, False, 1.0), DatedScore(CHATGPT, True, 0.0)])
    assert turn == (1, 0, 1, 1, None)


def test_of_many_articles_those_nearest_to_the_release_count() -> None:
    """An archive of decades neither hides a turn nor costs more."""
    turn = turn_of(articles([0.9] * MOST_ARTICLES + [0.1] * 500, [0.1] * MOST_ARTICLES + [0.9] * 500))
    assert turn[:4] == (MOST_ARTICLES, 0, MOST_ARTICLES, MOST_ARTICLES)
    assert has_turned(turn.turn_p)


def test_flags_are_counted_by_quarter() -> None:
    """In the order of the quarters."""
    days = [date(2022, 4, 1), date(2021, 12, 31), date(2022, 3, 31), date(2022, 1, 1)]
    found = flags_of_quarters(DatedScore(day, day.month == 3, 0.0) for day in days)
    assert list(found.items()) == [("2021-Q4", [1, 0]), ("2022-Q1", [2, 1]), ("2022-Q2", [1, 0])]
