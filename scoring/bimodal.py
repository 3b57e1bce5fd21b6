"""Is a site `mixed`: do its scores fall into two clear groups, one that reads as a model's and one that does not?

The scores are sorted and cut once where the squared distances to the two groups' means are least (two-means in one
dimension, exact: a running sum tells them for every cut). The groups are clear when

    D = sqrt(2) |m1 - m2| / sqrt(s1^2 + s2^2) > 4           (Ashman, Bird and Zepf, Astron. J. 108, 1994)

with means m and standard deviations s of the groups. Ashman's own bound of 2 is for groups that a mixture model found.
A cut makes groups of anything: half a bell curve and the other half have D = 2.7, halves of a flat one 3.5. Hence 4.

Further, each group must hold at least a quarter of the scores and at least 4 of them, and of one group at most a
quarter and of the other at least three quarters must be flagged: two kinds of human prose make no site mixed.
`docs/sites.md` has what the test finds and how often it is wrong. It is no verdict: it asks for more pages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from scoring.site_method import PageScore

MIN_GROUP = 4
MIN_SHARE = 0.25
MIN_DISTANCE = 4.0
MAX_MINORITY = 0.25  # of a group, that is flagged otherwise than the rest of it


def is_mixed(pages: Sequence[PageScore]) -> bool:
    """True for two clear groups; False for fewer than 8 pages with flag and score. O(n log n)."""
    known = sorted((page.score, page.flag) for page in pages if page.score is not None and page.flag is not None)
    smallest = max(MIN_GROUP, math.ceil(MIN_SHARE * len(known)))
    if len(known) < 2 * smallest:
        return False
    middle = sum(score for score, _ in known) / len(known)  # sums of squares about it lose no digits
    scores = [score - middle for score, _ in known]
    sums = list(accumulate(scores, initial=0.0))
    squares = list(accumulate((score * score for score in scores), initial=0.0))

    def spread(first: int, last: int) -> float:
        total = sums[last] - sums[first]
        return max(squares[last] - squares[first] - total * total / (last - first), 0.0)

    size = len(scores)
    cut = min(range(smallest, size - smallest + 1), key=lambda place: spread(0, place) + spread(place, size))
    distance = (sums[size] - sums[cut]) / (size - cut) - sums[cut] / cut
    variances = spread(0, cut) / cut + spread(cut, size) / (size - cut)
    if not 2 * distance * distance > MIN_DISTANCE * MIN_DISTANCE * variances:
        return False
    below = sum(flag for _, flag in known[:cut]) / cut
    above = sum(flag for _, flag in known[cut:]) / (size - cut)
    return min(below, above) <= MAX_MINORITY and max(below, above) >= 1 - MAX_MINORITY
