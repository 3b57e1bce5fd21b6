"""The weights of sites in a share, and the design effect of sites that agree: those of one operator or one query.

Four hundred subdomains of one operator are not four hundred draws. A site moves the share by its influence, a cluster
by the sum of these. Leaving out one cluster at a time gives the variance over whole clusters (the jackknife: with
unequal clusters, CR3 of Bell and McCaffrey, Survey Methodology 28, 2002). Of few clusters it is little known, so
Student's t takes the place of the normal quantile, with as many degrees of freedom as the moves of the clusters show
(at most one less than clusters). The ratio to the variance over single sites is the design effect.

Clusters are registrable domains, those of an operator (`scoring.estimate.operators`) together, and queries: a site of
several queries is of the first by name. Variances of both are added, less that of both together (Cameron, Gelbach and
Miller, Robust inference with multiway clustering, Journal of Business and Economic Statistics 29, 2011).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import xxhash

from scoring.estimate.definitions import DOMAINS, OF_RESULTS
from scoring.estimate.fit import CellCounts
from scoring.estimate.intervals import Z95
from scoring.estimate.operators import Operators, SiteAccounts, find_operators
from scoring.estimate.remarks import Fact
from scoring.statistics.shares import quantile_of_sum
from stream.schema.records import SiteState
from stream.text.registrable_domain import registrable_domain

_Codes = npt.NDArray[np.int64]
FEW_CLUSTERS = 30  # with fewer, a remark has their number
_LARGEST = 1e6  # design effect of an unknown variance


class WeightedSites(NamedTuple):
    """The sites with a scored article and their weights, whose sum is the number of sites."""

    rows: Sequence[SiteState]
    weights: npt.NDArray[np.float64]
    units: int  # sites, domains or results

    @classmethod
    def of(cls, rows: Iterable[SiteState], definition: str, result_weights: Mapping[str, float] | None = None) -> Self:
        """One of `scoring.estimate.definitions`.

        A share of results needs `result_weights`, the weights of each site's results in sum; `hits` is their number.
        """
        scored = [row for row in rows if row.scored]
        units = len(scored)
        if definition == DOMAINS:
            domains = _domains(scored)
            sites = np.bincount(domains)
            weights, units = 1 / sites[domains], len(sites)
        elif definition in OF_RESULTS:
            assert result_weights is not None, "results are counted from hits"
            weights, units = np.array([result_weights[row.site] for row in scored]), sum(row.hits for row in scored)
        else:
            weights = np.ones(units)
        return cls(scored, weights * weights.sum() / (float(weights @ weights) or 1.0), units)

    @property
    def cells(self) -> CellCounts:
        """Weights by numbers of scored and of flagged articles."""
        cells: dict[tuple[int, int], float] = {}
        for row, weight in zip(self.rows, map(float, self.weights), strict=True):
            cells[row.scored, row.flagged] = cells.get((row.scored, row.flagged), 0.0) + weight
        return cells


def domains_of(sites: Callable[[], Iterator[str]]) -> Iterator[str]:
    """The registrable domain of each site; the last two labels if no other site shares them.

    `sites` restarts at each call, because a list of a million names is large.
    """
    _, codes, counts = np.unique(_digests(map(_end, sites())), return_inverse=True, return_counts=True)
    shared = (counts > 1)[codes].tolist()
    return (registrable_domain(site) if many else _end(site) for site, many in zip(sites(), shared, strict=True))


def _domains(rows: Sequence[SiteState]) -> _Codes:
    """The number of each site's domain. Sites without a name are of different ones: an audit drops the names."""
    names = domains_of(lambda: (row.site for row in rows))
    return _numbered(_digests(domain or str(number) for number, domain in enumerate(names)))


class SiteOperators(NamedTuple):
    """The domain and the operator of each site, by a domain of its own; "" of a site without a name."""

    domains: list[str]
    operators: list[str]
    found: Operators

    @classmethod
    def of(cls, rows: Sequence[SiteState]) -> Self:
        """Of sites that know their signals."""
        domains = list(domains_of(lambda: (row.site for row in rows)))
        found = find_operators(
            lambda: (SiteAccounts(row.site, of, row.signals) for row, of in zip(rows, domains, strict=True) if of)
        )
        return cls(domains, [found.of.get(domain, domain) for domain in domains], found)


def _operators(rows: Sequence[SiteState]) -> tuple[_Codes, str]:
    """The number of each site's operator, else of its domain; and the unit that these are."""
    if not any(row.signals for row in rows):
        return _domains(rows), "registrable domains"
    of = SiteOperators.of(rows)
    codes = _numbered(_digests(name or str(number) for number, name in enumerate(of.operators)))
    return codes, "operators" if of.found.of else "registrable domains"


def _end(site: str) -> str:
    return ".".join(site.rsplit(".", 2)[-2:])


class Agreement(NamedTuple):
    """The factor by which an interval is wider because sites of an operator, or of a query, agree."""

    effect: float  # factor of the variance, 1 or more
    clusters: int = 0  # the few clusters that limit it; 0 = they are many
    unit: str = ""  # registrable domains | operators | queries
    largest: str = ""  # of these domains or operators, by its lowest domain; "" = each has one site
    largest_sites: int = 0

    @property
    def facts(self) -> dict[str, Fact]:
        """The clusters, for a remark."""
        facts: dict[str, Fact] = {"clusters": self.clusters, "unit": self.unit}
        return facts | ({"largest": self.largest, "largest_sites": self.largest_sites} if self.largest else {})


def agreement(sites: WeightedSites, moves: npt.NDArray[np.float64]) -> Agreement:
    """The agreement for an estimate that each of these sites moves by this much at weight 1."""
    rows, weights = sites.rows, sites.weights
    moves = weights * (moves - np.average(moves, weights=weights))
    alone = float(moves @ moves)
    if not alone:
        return Agreement(1.0)
    domains, unit = _operators(rows)
    spreads = {unit: _Spread.of(moves, weights, domains)}
    if not of_one_query(rows):  # the share is of its results
        first = (row.queries[0] if row.queries else f"\n{domain}" for row, domain in zip(rows, domains, strict=True))
        queries = _numbered(_digests(first))
        both = _Spread.of(moves, weights, _numbered(domains * (queries.max() + 1) + queries))
        spreads["queries"] = _Spread.of(moves, weights, queries)
        unit, widest = max(spreads.items(), key=lambda item: item[1].variance)
        variance = sum(spread.variance for spread in spreads.values()) - both.variance
        if variance * widest.tails > widest.widened:
            spreads[unit] = widest._replace(variance=variance)
    unit, widest = max(spreads.items(), key=lambda item: item[1].widened)
    effect = min(max(1.0, widest.widened / alone), _LARGEST)
    is_few = widest.clusters < min(FEW_CLUSTERS, len(rows))
    if not is_few:
        return Agreement(effect)
    return Agreement(effect, widest.clusters, unit, *(_largest_of(rows, domains) if unit != "queries" else ()))


def _largest_of(rows: Sequence[SiteState], codes: _Codes) -> tuple[str, int]:
    """The lowest domain and the number of sites of the largest cluster."""
    sites = np.bincount(codes)
    if sites.max() == 1:
        return "", 0
    members = (row.site for row, is_largest in zip(rows, (sites == sites.max())[codes], strict=True) if is_largest)
    return min(map(registrable_domain, filter(None, members)), default=""), int(sites.max())


def _digests(texts: Iterable[str]) -> npt.NDArray[np.uint64]:
    """One number for each text, because a million texts are large."""
    return np.fromiter((xxhash.xxh3_64_intdigest(text.encode()) for text in texts), np.uint64)


def _numbered(clusters: npt.NDArray[Any]) -> _Codes:
    """The number of each site's cluster, in order of first occurrence."""
    _, first, codes = np.unique(clusters, return_index=True, return_inverse=True)
    return first.argsort().argsort()[codes]


def of_one_query(rows: Sequence[SiteState]) -> bool:
    """Whether a single query found all sites."""
    common = set(rows[0].queries) if rows else set()
    return all(common := common.intersection(row.queries) for row in rows) and bool(common)


class _Spread(NamedTuple):
    """The variance of an estimate over whole clusters, with the factor for few clusters."""

    variance: float
    tails: float  # (t / z)^2
    clusters: int

    @property
    def widened(self) -> float:
        return self.variance * self.tails

    @classmethod
    def of(cls, moves: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], codes: _Codes) -> Self:
        """`codes`: the number of each site's cluster."""
        count = int(codes.max()) + 1
        if count == len(moves):
            return cls(float(moves @ moves), 1.0, count)
        if count == 1:
            return cls(_LARGEST, 1.0, 1)
        without = np.bincount(codes, moves) / (1 - np.bincount(codes, weights) / weights.sum())
        squares = float(without @ without)
        tails = (quantile_of_sum(squares, float((without**4).sum()), count) / Z95) ** 2
        return cls(squares * (count - 1) / count, tails, count)
