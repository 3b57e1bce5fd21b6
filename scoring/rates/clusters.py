"""The weights of sites in a share, and the design effect of sites that agree: those of one operator or one query.

Four hundred subdomains of one operator are not four hundred draws. A site moves the share by its influence; the
variance over whole clusters is the sum of squares of their summed influences. Its ratio to the variance over single
sites is the design effect. Clusters are registrable domains and queries: variances of both are added, less that of both
together (Cameron, Gelbach and Miller, Robust inference with multiway clustering, Journal of Business and Economic
Statistics 29, 2011), each with the factor G / (G - 1) of G clusters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from scoring.rates.definitions import ARTICLES, DOMAINS, RANKED_RESULTS, RESULTS
from scoring.rates.mixture import CellCounts, Fit
from stream.schema.records import SiteState
from stream.text.registrable_domain import registrable_domain

_UNRANKED = 100  # of a site whose rank is not known
_FEWEST = 10  # clusters; of fewer their variance is not known


class WeightedSites(NamedTuple):
    """The sites with a scored article, and what each counts for; the weights add up to as many draws as they are."""

    rows: Sequence[SiteState]
    weights: npt.NDArray[np.float64]
    units: int  # sites, domains, articles or results

    @classmethod
    def of(cls, rows: Iterable[SiteState], definition: str) -> Self:
        """One of `scoring.rates.definitions`."""
        scored = [row for row in rows if row.scored]
        units = len(scored)
        if definition == DOMAINS:
            domains = domains_of([row.site for row in scored])
            sites = Counter(domains)
            weights, units = np.array([1 / sites[domain] for domain in domains]), len(sites)
        elif definition == ARTICLES:
            weights = np.array([row.articles for row in scored], float)
            units = int(weights.sum())
        elif definition in (RESULTS, RANKED_RESULTS):
            weights = np.array([max(row.hits, 1) for row in scored], float)
            units = int(weights.sum())
            if definition == RANKED_RESULTS:  # as in discounted cumulative gain: Järvelin and Kekäläinen, TOIS 20, 2002
                weights /= np.log2([1 + (row.best_rank or _UNRANKED) for row in scored])
        else:
            weights = np.ones(units)
        return cls(scored, weights * weights.sum() / max(float(weights @ weights), 1.0), units)

    @property
    def cells(self) -> CellCounts:
        """Weights by numbers of scored and of flagged articles."""
        cells: Counter[tuple[int, int]] = Counter()
        for row, weight in zip(self.rows, self.weights.tolist(), strict=True):
            cells[row.scored, row.flagged] += weight
        return cells


def domains_of(sites: Sequence[str]) -> list[str]:
    """The registrable domain of each site; where no other ends with the same two labels, just these."""
    ends = [".".join(site.rsplit(".", 2)[-2:]) for site in sites]
    count = Counter(ends)
    return [registrable_domain(site) if count[end] > 1 else end for site, end in zip(sites, ends, strict=True)]


def design_effect(sites: WeightedSites, fit: Fit) -> float:
    """The factor of the variance, 1 or more. `fit` is of these sites."""
    rows, weights = sites.rows, sites.weights
    moves = np.array([fit.influence.get((row.scored, row.flagged), 0.0) for row in rows])
    moves = weights * (moves - np.average(moves, weights=weights))
    alone = float(moves @ moves)
    if not alone:
        return 1.0
    domains = domains_of([row.site for row in rows])
    queries = [row.queries[0] if row.queries else row.site for row in rows]
    of_domains, of_queries = _variance(moves, domains), _variance(moves, queries)
    of_both = _variance(moves, list(zip(domains, queries, strict=True)))
    found = [of_domains, of_queries, of_domains + of_queries - of_both]
    return max(1.0, max(found) / alone)


def _variance(moves: npt.NDArray[np.float64], clusters: Sequence[Hashable]) -> float:
    codes = dict.fromkeys(clusters)
    if not _FEWEST <= len(codes) < len(moves):
        return float(moves @ moves)
    numbers = {cluster: number for number, cluster in enumerate(codes)}
    sums = np.bincount([numbers[cluster] for cluster in clusters], moves)
    return float(sums @ sums) * len(codes) / (len(codes) - 1)
