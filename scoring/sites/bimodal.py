"""Detects `mixed` sites: their scores form two clear groups, one flagged and one not.

The sorted scores are cut once where the squared distances to the two groups' means are least (exact two-means in one
dimension, by a running sum). The groups are clear when

    D = sqrt(2) |m1 - m2| / sqrt(s1^2 + s2^2) > 4           (Ashman, Bird and Zepf, Astron. J. 108, 1994)

with means m and standard deviations s of the groups. Ashman's bound of 2 is for groups of a mixture model. A cut makes
groups of any data: two halves of a bell curve have D = 2.7, of a flat one 3.5. So the bound is 4.

Each group must hold at least a quarter of the scores and at least 4; of one group at most a quarter and of the other at
least three quarters must be flagged: two kinds of human prose make no site mixed. docs/explanation/sites.md has the
test's errors. `mixed` is no verdict: the crawl fetches more pages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from scoring.interface import PageScore

MIN_GROUP = 4
MIN_SHARE = 0.25
MIN_DISTANCE = 4.0
MAX_MINORITY = 0.25  # share of a group that may be flagged otherwise than the rest of it


def is_mixed(pages: Sequence[PageScore]) -> bool:
    """True for two clear groups; False for fewer than 8 pages with flag and score. O(n log n)."""
    known = [(page.score, page.flag) for page in pages if page.score is not None and page.flag is not None]
    size = len(known)
    smallest = max(MIN_GROUP, math.ceil(MIN_SHARE * size))
    flagged = sum(flag for _, flag in known)
    if size < 2 * smallest or not (1 - MAX_MINORITY) * smallest <= flagged <= size - (1 - MAX_MINORITY) * smallest:
        return False  # most sites end here
    known.sort()
    largest = max(abs(known[0][0]), abs(known[-1][0])) or 1.0  # D has no scale; scaled scores do not overflow squared
    scaled = [score / largest for score, _ in known]
    middle = _mean(scaled)
    scores = [score - middle for score in scaled]  # they sum to 0, and their squares lose no digits
    sums = list(accumulate(scores, initial=0.0))
    # squares about the groups' means are least where the squares of the means, by size, are most: s^2 / k + s^2 / (n-k)
    cut = max(range(smallest, size - smallest + 1), key=lambda place: sums[place] ** 2 / (place * (size - place)))
    low, high = scores[:cut], scores[cut:]
    distance = _mean(high) - _mean(low)
    if not 2 * distance**2 > MIN_DISTANCE**2 * (_variance(low) + _variance(high)):
        return False
    below = sum(flag for _, flag in known[:cut]) / cut
    above = (flagged - sum(flag for _, flag in known[:cut])) / (size - cut)
    return min(below, above) <= MAX_MINORITY and max(below, above) >= 1 - MAX_MINORITY


def _mean(numbers: Sequence[float]) -> float:
    return math.fsum(numbers) / len(numbers)


def _variance(numbers: Sequence[float]) -> float:
    mean = _mean(numbers)
    return math.fsum((number - mean) ** 2 for number in numbers) / len(numbers)
