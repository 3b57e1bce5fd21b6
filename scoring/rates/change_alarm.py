"""Has the share changed? An alarm over the sites by the day on which search results first named them.

Looking every hour and acting on the first surprise finds changes that are none. So the evidence for a change is an
e-process: without a change its mean never exceeds 1, so it ever exceeds 1 / .05 with probability .05 at most, however
often it is looked at (Ville's inequality; Ramdas, Grünwald, Vovk and Shafer, Statistical Science 38, 2023). For a
change at the start of day d it is

    (likelihood of the sites before d, averaged over shares) * (the same of d and later) / highest likelihood of all

where all sites have one share in the denominator (universal inference: Wasserman, Ramdas and Balakrishnan, PNAS 117,
2020). Each day of a year has the weight 1 / 365: so of the alarms of a year 5% at most are false ones. The kinds of
sites are those that all sites show; the share moves as a shift of the log odds of each bucket of lengths.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from scoring.rates.direct_share import ShareChanged
from scoring.rates.mixture import CellCounts, Fit

FALSE_ALARMS = 0.05  # a year
DAYS = 365  # of possible changes: of those before, all sites are one block
_SHIFTS = np.linspace(-5.0, 5.0, 201)  # of log odds
_SHIFT_SD = 0.5  # of the prior that shares are averaged over


def find_change(cells_of_day: Mapping[int, CellCounts], fit: Fit, design_effect: float = 1.0) -> ShareChanged | None:
    """The day of the last year since which new sites have another share; None where chance explains all.

    `fit` is of all these sites together. Days are numbers since 1970. Likelihoods are taken to the power of one over
    the design effect, so that many sites of one operator count as fewer; an e-process stays one (Jensen).
    """
    days = sorted(day for day, cells in cells_of_day.items() if any(n for n, _ in cells))
    if not days:
        return None
    first = max(days[0], days[-1] - DAYS)
    blocks: dict[int, dict[tuple[int, int], float]] = {}
    for day in days:
        block = blocks.setdefault(max(day, first), {})
        for cell, sites in cells_of_day[day].items():
            block[cell] = block.get(cell, 0.0) + sites
    cells = list(fit.posterior)
    counts = np.array([[block.get(cell, 0.0) for cell in cells] for block in blocks.values()])
    posterior = np.array([fit.posterior[cell] for cell in cells])
    chance = np.array([fit.chance[n] for n, _ in cells])
    shifted = 1 / (1 + np.exp(-(np.log(chance / (1 - chance)) + _SHIFTS[:, None])))  # shifts, cells
    likelihood = np.log((1 - shifted) / (1 - chance) * (1 - posterior) + shifted / chance * posterior)
    of_block = counts @ likelihood.T / design_effect  # blocks, shifts
    before = np.cumsum(of_block, axis=0)[:-1]
    whole = of_block.sum(axis=0)
    weight = -0.5 * (_SHIFTS / _SHIFT_SD) ** 2
    weight -= np.logaddexp.reduce(weight)
    evidence = (
        np.logaddexp.reduce(before + weight, axis=1)
        + np.logaddexp.reduce(whole - before + weight, axis=1)
        - whole.max()
        - math.log(DAYS)
    )
    if not len(evidence) or np.logaddexp.reduce(evidence) < math.log(1 / FALSE_ALARMS):
        return None
    at = int(evidence.argmax())
    shares = shifted @ (counts.sum(axis=0) / counts.sum())
    return ShareChanged(
        day=sorted(blocks)[at + 1],
        before=round(float(shares[before[at].argmax()]), 6),
        after=round(float(shares[(whole - before[at]).argmax()]), 6),
        evidence=round(min(float(np.exp(np.logaddexp.reduce(evidence))), 1e9), 3),
    )
