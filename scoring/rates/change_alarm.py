"""An alarm for a changed share, from the sites by the day of their first hit.

Looking every hour and acting on the first surprise finds false changes. So the evidence for a change is an e-process:
without a change its mean never exceeds 1, so it ever exceeds 1 / .05 with probability .05 at most, however often it is
looked at (Ville's inequality; Ramdas, Grünwald, Vovk and Shafer, Statistical Science 38, 2023). For a change at the
start of day d it is

    (likelihood of the sites before d, averaged over shares) * (the same of d and later) / highest likelihood of all

where all sites have one share in the denominator (universal inference: Wasserman, Ramdas and Balakrishnan, PNAS 117,
2020). Each day of a year has the weight 1 / 365. So without a change at most 5% of years have an alarm. The kinds of
sites are fitted to all sites, which makes this approximate (docs/explanation/rates.md has a simulation); the share
moves as a shift of the log odds of each bucket of lengths.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from scoring.estimate.beta_binomial import Floats
from scoring.estimate.fit import CellCounts, Fit
from scoring.rates.direct_share import ShareChanged
from stream.schema.records import SiteState

FALSE_ALARMS = 0.05  # a year
DAYS = 365  # of possible changes; earlier days are one block
_SHIFTS = np.linspace(-3.0, 3.0, 121)  # of log odds
_SHIFT_SD = 0.5  # of the prior over which shares are averaged


def change_of_rows(rows: Iterable[SiteState], fit: Fit, design_effect: float) -> ShareChanged | None:
    """The alarm over sites by the day of their first hit."""
    cells_of_day: dict[int, Counter[tuple[int, int]]] = {}
    for row in rows:
        if row.scored and row.days:
            cells_of_day.setdefault(row.days[0], Counter())[row.scored, row.flagged] += 1
    return find_change(cells_of_day, fit, design_effect)


def find_change(cells_of_day: Mapping[int, CellCounts], fit: Fit, design_effect: float = 1.0) -> ShareChanged | None:
    """The day of the last year since which new sites have another share; None if chance explains the difference.

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
    of_block = counts @ likelihoods(fit, cells) / design_effect
    evidence = log_evidence(of_block)
    if not len(evidence) or np.logaddexp.reduce(evidence) < math.log(1 / FALSE_ALARMS):
        return None
    at = int(evidence.argmax())
    before = of_block[: at + 1].sum(axis=0)
    weights = counts.sum(axis=0) / counts.sum()
    chance = np.array([fit.chance[n] for n, _ in cells])
    shares = _shifted(chance) @ weights
    return ShareChanged(
        day=sorted(blocks)[at + 1],
        before=round(float(shares[before.argmax()]), 6),
        after=round(float(shares[(of_block.sum(axis=0) - before).argmax()]), 6),
        evidence=round(min(float(np.exp(np.logaddexp.reduce(evidence))), 1e9), 3),
    )


def likelihoods(fit: Fit, cells: Sequence[tuple[int, int]]) -> Floats:
    """For a site of each cell, the log likelihood under each shift, less that without one (cells, shifts)."""
    posterior = np.array([fit.posterior[cell] for cell in cells])
    chance = np.array([fit.chance[n] for n, _ in cells])
    shifted = _shifted(chance)
    ratios: Floats = np.log((1 - shifted) / (1 - chance) * (1 - posterior) + shifted / chance * posterior).T
    return ratios


def log_evidence(of_block: Floats) -> Floats:
    """Evidence for a change after each block but the last, by the likelihoods of the blocks (blocks, shifts)."""
    before = np.cumsum(of_block, axis=0)[:-1]
    whole = of_block.sum(axis=0)
    weight = -0.5 * (_SHIFTS / _SHIFT_SD) ** 2
    weight -= np.logaddexp.reduce(weight)
    evidence: Floats = _log_sum(before + weight) + _log_sum(whole - before + weight) - whole.max() - math.log(DAYS)
    return evidence


def _shifted(chance: Floats) -> Floats:
    """Shares of LLM sites under each shift of the log odds (shifts, cells)."""
    shares: Floats = 1 / (1 + np.exp(-(np.log(chance / (1 - chance)) + _SHIFTS[:, None])))
    return shares


def _log_sum(values: Floats) -> Floats:
    most = values.max(axis=1, initial=-np.inf)
    sums: Floats = most + np.log(np.exp(values - most[:, None]).sum(axis=1))
    return sums
