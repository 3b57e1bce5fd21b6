"""Whether the measured sites are flagged as the sites of known truth are.

A likelihood ratio: each group with betas of its own, against the same betas for both. It sees a difference in the
spread as well as in the mean. Sites of known truth weigh 1 in it, less in the estimate of the share.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from scoring.estimate.mixture import FEWEST_KNOWN, WIDE, CellCounts, Cells, Fit, KnownSites, Mixture, flagged_shares

_BEYOND = {1: 5.99, 2: 9.49}  # kinds that are known -> 95% quantile of chi-square, with two degrees of freedom a kind


class Unlike(NamedTuple):
    """Sites of known truth that differ from the others: mean flagged shares, further apart than chance explains."""

    kind: str  # human | LLM
    here: float
    known: float


def find_unlike(counts: CellCounts, fit: Fit) -> Unlike | None:
    """The kind of which the sites of `counts`, those of the fit, are flagged most unlike the known ones.

    None where chance may explain the difference, or with few known sites.
    """
    known = KnownSites(*(cells if sum(cells.values()) >= FEWEST_KNOWN else {} for cells in fit.known))
    kinds = [place for place in (0, 1) if known[place]]
    if not kinds or _evidence(*(tuple(sorted(cells.items())) for cells in (counts, *known))) <= _BEYOND[len(kinds)]:
        return None
    covariance = np.linalg.inv(fit.components.precision)
    found = []
    for place in kinds:
        each, here, at = flagged_shares(known[place]), fit.components.flagged[place], 2 * place
        slope = here * (1 - here) * np.array([1.0, -1.0])
        variance = slope @ covariance[at : at + 2, at : at + 2] @ slope + each.var(ddof=1) / len(each)
        off = abs(here - each.mean()) / np.sqrt(max(variance, 1e-12))
        found.append((off, Unlike(("human", "LLM")[place], float(here), float(each.mean()))))
    return max(found)[1]


@functools.lru_cache(maxsize=100)
def _evidence(*counts: tuple[tuple[tuple[int, int], float], ...]) -> float:
    """Twice the gain in log likelihood of the measured, the known human and the known LLM sites."""
    sites, known, none = Cells.of(dict(counts[0])), KnownSites(*map(dict, counts[1:])), KnownSites({}, {})
    together = Mixture(sites, known, WIDE, (1.0, 1.0))
    apart = (Mixture(sites, none, WIDE), Mixture(Cells.of({}), known, WIDE, (1.0, 1.0)))
    return 2 * (sum(part.best().value for part in apart) - together.best().value)
