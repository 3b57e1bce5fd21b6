"""Doubts about a share: kinds that flags do not tell apart, sites unlike the known ones, mixed sites, missing data.

Whether the measured sites are flagged as the sites of known truth are is a likelihood ratio: each group with betas of
its own, against the same betas for both. It sees a difference in the spread as well as in the mean. Sites of known
truth weigh 1 in it, less in the estimate of the share.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from scoring.estimate.beta_binomial import Floats
from scoring.estimate.clusters import Agreement
from scoring.estimate.fit import WIDE, CellCounts, Cells, Fit, KnownSites
from scoring.estimate.intervals import Z95
from scoring.estimate.mixture import Mixture
from scoring.estimate.remarks import Remark, RemarkKind

FEWEST_KNOWN = 5  # sites of known truth of a kind: with fewer, they show nothing of it
LEAST_FLAGGED = 1 / 3  # articles of the LLM kind, if no LLM site is known: by simulation, see docs
LONGER, FEWEST_LONGER = 5, 100  # articles of a longer site; with fewer such sites mixed ones are not looked for
BETWEEN = 0.25, 0.65  # flagged shares that human and LLM sites seldom have
USUALLY_BETWEEN = 0.055, 0.205  # parts of the longer human and LLM sites that do
_BEYOND = {1: 5.99, 2: 9.49}  # kinds that are known -> 95% quantile of chi-square, with two degrees of freedom a kind


def kinds_not_told_apart(fit: Fit) -> tuple[Remark, ...]:
    """The reason why flags do not separate the kinds of sites, and a remedy; () if they may."""
    human, llm = map(_flagged_shares, fit.known)
    if min(len(human), len(llm)) >= FEWEST_KNOWN:
        apart = float(llm.mean() - human.mean())
        if apart <= Z95 * math.sqrt(human.var(ddof=1) / len(human) + llm.var(ddof=1) / len(llm)):
            shares = {"human": float(human.mean()), "llm": float(llm.mean())}
            return Remark(RemarkKind.FLAGGED_ALIKE, shares), Remark(RemarkKind.OTHER_DETECTOR)
    flagged = fit.components.flagged[1]
    if len(llm) < FEWEST_KNOWN and flagged < LEAST_FLAGGED:
        return Remark.of(RemarkKind.SELDOM_FLAGGED, flagged=flagged), Remark.of(RemarkKind.KNOWN_WOULD_TELL, kind="LLM")
    if len(human) < FEWEST_KNOWN <= fit.sites and fit.sites * (1 - fit.share) < 1:
        return Remark(RemarkKind.OFTEN_FLAGGED), Remark.of(RemarkKind.KNOWN_WOULD_TELL, kind="human")
    return ()


def missing_data(fit: Fit, agree: Agreement, known: KnownSites) -> list[Remark]:
    """Why an interval is too wide, and what would help."""
    why = []
    if agree.clusters and agree.effect > 2:
        why.append(Remark(RemarkKind.CLUSTERS_NEEDED, agree.facts))
    why += none_known(known)
    if max(n for n, _ in fit.posterior) == 1:
        why.append(Remark(RemarkKind.ONE_ARTICLE_EACH))
    return why or [Remark(RemarkKind.SITES_NEEDED)]


def doubts(cells: CellCounts, fit: Fit) -> list[Remark]:
    """Remarks if the sites are unlike the known ones, or not of two kinds; `cells` are those of the fit."""
    unlike = find_unlike(cells, fit)
    remarks = [unlike] if unlike else []
    if share := _between(cells, fit):
        remarks.append(Remark.of(RemarkKind.MIXED_SITES, share=share))
    if fit.misfit > 1:
        remarks.append(Remark(RemarkKind.SCATTER))
    return remarks


def none_known(known: KnownSites) -> list[Remark]:
    """A remark if sites of a kind are missing among the known ones."""
    kinds = " or ".join(kind for kind, cells in (("human", known.human), ("LLM", known.llm)) if not cells)
    return [Remark.of(RemarkKind.NONE_KNOWN, kinds=kinds)] if kinds else []


def find_unlike(counts: CellCounts, fit: Fit) -> Remark | None:
    """A remark on the kind of which the sites of `counts`, those of the fit, are flagged most unlike the known ones.

    None where chance may explain the difference of the mean flagged shares, or with few known sites.
    """
    known = KnownSites(*(cells if sum(cells.values()) >= FEWEST_KNOWN else {} for cells in fit.known))
    kinds = [place for place in (0, 1) if known[place]]
    if not kinds or _evidence(*(tuple(sorted(cells.items())) for cells in (counts, *known))) <= _BEYOND[len(kinds)]:
        return None
    covariance = np.linalg.inv(fit.components.precision)
    unlike = []
    for place in kinds:
        each, here, at = _flagged_shares(known[place]), fit.components.flagged[place], 2 * place
        slope = here * (1 - here) * np.array([1.0, -1.0])
        variance = slope @ covariance[at : at + 2, at : at + 2] @ slope + each.var(ddof=1) / len(each)
        off = abs(here - each.mean()) / np.sqrt(max(variance, 1e-12))
        unlike.append((off, ("human", "LLM")[place], float(here), float(each.mean())))
    _, kind, here, known_share = max(unlike)
    return Remark.of(RemarkKind.UNLIKE_KNOWN, kind=kind, here=here, known=known_share)


@functools.lru_cache(maxsize=100)
def _evidence(*counts: tuple[tuple[tuple[int, int], float], ...]) -> float:
    """Twice the gain in log likelihood of the measured, the known human and the known LLM sites."""
    sites, known, none = Cells.of(dict(counts[0])), KnownSites(*map(dict, counts[1:])), KnownSites({}, {})
    together = Mixture(sites, known, WIDE, (1.0, 1.0))
    apart = (Mixture(sites, none, WIDE), Mixture(Cells.of({}), known, WIDE, (1.0, 1.0)))
    return 2 * (sum(part.best().value for part in apart) - together.best().value)


def _flagged_shares(cells: CellCounts) -> Floats:
    """For each site, the share of its articles that is flagged."""
    return np.repeat([k / n for n, k in cells], np.array(list(cells.values()), np.int64))


def _between(cells: CellCounts, fit: Fit) -> float:
    """The part of the longer sites with flags between those of the two kinds, if it is large; else 0.

    Flags cannot tell mixed sites from two kinds that scatter: a beta with a long tail fits both. So this is a count,
    against the part that simulated sites of two kinds have there, or known sites if that is more.
    """
    number, between = _longer(cells)
    if number < FEWEST_LONGER:
        return 0.0
    usual = []
    for (sites, mixed), part in zip(map(_longer, fit.known), USUALLY_BETWEEN, strict=True):
        if sites >= FEWEST_KNOWN:  # less its standard error: known sites are few
            of_known = mixed / sites
            part = max(part, of_known - math.sqrt(of_known * (1 - of_known) / sites))
        usual.append(part)
    share = between / number
    return share if share > usual[0] + fit.share * (usual[1] - usual[0]) else 0.0


def _longer(cells: CellCounts) -> tuple[float, float]:
    """Sites with many articles, and of these the ones with flags between those of the two kinds."""
    low, high = BETWEEN
    longer = {(n, k): sites for (n, k), sites in cells.items() if n >= LONGER}
    return sum(longer.values()), sum(sites for (n, k), sites in longer.items() if low <= k / n <= high)
