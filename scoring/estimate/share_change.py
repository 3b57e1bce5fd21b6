"""The difference of the direct share between two runs over the same sites, with an interval in which whole sites vary.

The share is where a likelihood is highest, so a small weight on a site moves it by a known amount, the site's influence
(`Fit.influence`). A site moves the difference by its influence under B less that under A: what the runs have in common
cancels. Sums of squares of these give the variance (infinitesimal jackknife: Efron and Tibshirani, An Introduction to
the Bootstrap, 1993, chapter 21). So do those of known sites. Two things keep the interval honest where few sites
differ, as in `paired_bootstrap`: two supposed sites of weight 1/2 that are LLM in one run only, and tails
by Student's t with as many degrees of freedom as the variance is known by.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scoring.estimate.beta_binomial import Floats
from scoring.estimate.fit import Cell, Fit
from scoring.estimate.intervals import Interval
from scoring.statistics.shares import quantile_of_sum

NO_CELL: Cell = (0, 0)  # the run has no scored article of the site
PairedCells = Mapping[tuple[Cell, Cell], int]  # the cell of a site under A and under B -> sites

_SUPPOSED = 0.5  # weight of each pseudo-site


def reviewed_change(moves: Floats, labelled: int, confidence: float, design_effect: float) -> float:
    """Half the width of the interval of a difference of two shares by one review; each site `moves` it by this much.

    Two pseudo-labels contradict the flags of one run only.
    """
    squares = design_effect * float(moves @ moves) + 2 * _SUPPOSED / labelled**2
    fourths = design_effect**2 * float((moves**4).sum()) + 2 * _SUPPOSED / labelled**4
    return quantile_of_sum(squares, fourths, labelled, confidence) * float(np.sqrt(squares))


def share_change(
    a: Fit,
    b: Fit,
    sites: PairedCells,
    human: PairedCells,
    llm: PairedCells,
    confidence: float = 0.95,
    design_effect: float = 1.0,
) -> Interval:
    """The difference of the shares b - a, and its interval; `human` and `llm` are the sites of known truth.

    `design_effect`: factor of the variance over `sites`, which agree if they share a domain or query.
    """
    squares, fourths, count = 0.0, 0.0, 0
    for pairs, of_a, of_b, effect in (
        (sites, a.influence, b.influence, design_effect),
        (human, a.known_influence.human, b.known_influence.human, 1.0),
        (llm, a.known_influence.llm, b.known_influence.llm, 1.0),
    ):
        moves = np.array([of_b.get(cell_b, 0.0) - of_a.get(cell_a, 0.0) for cell_a, cell_b in pairs])
        weights = np.array(list(pairs.values()), dtype=np.float64)
        number = int(weights.sum())
        if number < 2:
            continue
        moves = moves - weights @ moves / number
        squares += effect * float(weights @ moves**2) * number / (number - 1)
        fourths += effect**2 * float(weights @ moves**4)
        count += number
    most, least = ([end(fit.influence.values()) for fit in (a, b)] for end in (max, min))
    for move in (most[1] - least[0], least[1] - most[0]):
        squares += _SUPPOSED * move**2
        fourths += _SUPPOSED * move**4
    half = quantile_of_sum(squares, fourths, count, confidence) * float(np.sqrt(squares)) * max(a.misfit, b.misfit)
    difference = b.share - a.share
    return Interval(difference, max(difference - half, -1.0), min(difference + half, 1.0))
