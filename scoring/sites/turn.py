"""Sites that turned: people wrote the articles from before ChatGPT, and a model those since, by their days.

The scores of a site's later articles are ranked among all of its articles, by how much they look like a model's. The
test is exact (Wilcoxon's rank sum, Biometrics Bulletin 1, 1945, with mid-ranks for ties): of all ways to call as many
articles later, the share with a rank sum at least as large. Alone it also finds a change of writer, because people
differ in their scores. So the flags must change as well: few earlier articles are flagged, and half of the later.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from statistics import fmean
from typing import NamedTuple

from stream.schema.dates import CHATGPT

MOST_BY_CHANCE = 0.01  # p below which a site has turned
MOST_EARLIER, LEAST_LATER = 0.2, 0.5  # share of the articles of a site that turned that is flagged
MOST_ARTICLES = 25  # before and since, those nearest to the day: the ways to choose 25 of 50 are exact in a float
CHANGED_WRITER = 0.013  # of sites, at most: as the test finds of another human writer, see docs/explanation/dates.md
_PLACES = 9


class DatedScore(NamedTuple):
    """An article with a trusted day of publication, and its score."""

    day: date
    flag: bool
    score: float


class Turn(NamedTuple):
    """The articles of a site from before ChatGPT and since, as its row has them, and the test of a change."""

    before_scored: int = 0
    before_flagged: int = 0
    since_scored: int = 0
    since_flagged: int = 0
    turn_p: float | None = None  # None: too few articles for the test, or the flags did not change


def turn_of(articles: Iterable[DatedScore]) -> Turn:
    """The comparison of a site's earlier and later articles."""
    ordered = sorted(articles)
    first = sum(article.day < CHATGPT for article in ordered)
    earlier, later = ordered[max(first - MOST_ARTICLES, 0) : first], ordered[first : first + MOST_ARTICLES]
    flagged_before, flagged_since = (sum(article.flag for article in part) for part in (earlier, later))
    p = None
    if (
        can_tell(len(earlier), len(later))
        and flagged_before <= MOST_EARLIER * len(earlier)
        and flagged_since >= LEAST_LATER * len(later)
    ):
        p = round(_rank_p(earlier, later), _PLACES)
    return Turn(len(earlier), flagged_before, len(later), flagged_since, p)


def can_tell(before: int, since: int) -> bool:
    """Whether so many articles can turn: of 4 and 4, even the clearest difference may be chance."""
    return math.comb(before + since, since) * MOST_BY_CHANCE > 1


def has_turned(turn_p: float | None) -> bool:
    """Whether people wrote the earlier articles of a site, and a model the later ones, by the test."""
    return turn_p is not None and turn_p < MOST_BY_CHANCE


def flags_of_quarters(articles: Iterable[DatedScore]) -> dict[str, list[int]]:
    """Quarter, such as 2021-Q3 -> articles published in it, and the flagged ones of them."""
    quarters: dict[str, list[int]] = {}
    for article in sorted(articles):
        counts = quarters.setdefault(f"{article.day.year}-Q{(article.day.month + 2) // 3}", [0, 0])
        counts[0] += 1
        counts[1] += article.flag
    return quarters


def _rank_p(earlier: Sequence[DatedScore], later: Sequence[DatedScore]) -> float:
    """The p of the later scores; some articles are flagged, others not, which tells where a model's scores lie."""
    every = [*earlier, *later]
    of_flag = {flag: fmean(article.score for article in every if article.flag == flag) for flag in (False, True)}
    sign = 1 if of_flag[True] > of_flag[False] else -1
    return rank_p(*([sign * article.score for article in part] for part in (earlier, later)))


def rank_p(smaller: Sequence[float], larger: Sequence[float]) -> float:
    """How often the ranks of as many numbers as in `larger`, drawn from all, have a sum at least as large."""
    import numpy as np  # only a site whose flags changed comes here

    ranks = _doubled_ranks([*smaller, *larger])
    ways = np.zeros((len(larger) + 1, sum(ranks) + 1))  # by numbers drawn, and by their sum
    ways[0, 0] = 1
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank].copy()
    return float(ways[-1, sum(ranks[len(smaller) :]) :].sum() / ways[-1].sum())


def _doubled_ranks(scores: Sequence[float]) -> list[int]:
    """Twice the rank of each score: the mean rank of equal ones is whole then."""
    rounded = [round(score, _PLACES) for score in scores]
    below, doubled = 0, dict[float, int]()
    for score, times in sorted(Counter(rounded).items()):
        doubled[score] = 2 * below + times + 1
        below += times
    return [doubled[score] for score in rounded]
