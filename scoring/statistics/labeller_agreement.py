"""Agreement of labellers: Krippendorff's alpha of nominal labels, where units may lack some labellers.

Of a unit with m >= 2 labels, each ordered pair of these counts 1 / (m - 1). With D the share of unequal pairs, and E
that share if the labels of all such units were paired at random, alpha = 1 - D / E (Krippendorff, Computing
Krippendorff's Alpha-Reliability, 2011): 1 is full agreement, 0 that of chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence


def nominal_alpha(units: Iterable[Sequence[Hashable]]) -> float | None:
    """Alpha of the labels of each unit; None where all labels that can be paired are equal, or there are none."""
    every: Counter[Hashable] = Counter()
    unequal = 0.0
    for labels in units:
        if len(labels) >= 2:
            of_unit = Counter(labels)
            every += of_unit
            unequal += _unequal_pairs(of_unit) / (len(labels) - 1)
    expected = _unequal_pairs(every)
    return 1 - unequal * (every.total() - 1) / expected if expected else None


def _unequal_pairs(counts: Counter[Hashable]) -> int:
    return counts.total() ** 2 - sum(count**2 for count in counts.values())
