"""Search results by group: how many name each site, what they weigh by rank, and which of the sites are new.

They are counted from the hits that the log still has, whatever the group: a site's row has sums over all it ever had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec

from scoring.estimate.definitions import RANKED_RESULTS
from scoring.estimate.rank_weights import rank_weight
from scoring.rates.canary import is_canary
from scoring.rates.cuts import Cut, Patterns, ResultFacts
from scoring.rates.direct_share import DirectShare
from scoring.rates.groups import (
    SPLITS,
    UNKNOWN,
    WINDOWS,
    bounds_of_days,
    group_key,
    group_order,
    grouped,
    query_groups,
    rank_band,
    window_names,
)
from scoring.rates.terms import changed_row, counted_at, earlier_rows, held_on
from stream.schema.projection import projection_of
from stream.schema.records import Hit, Record, SiteState
from stream.text.times import DAY_MS

RESULT_SPLITS = (*SPLITS, "engine")
_OF_SITES = ("monetised", "cms", "operator-size")  # splits in which all results of a site are of its groups
FIRST_RANKS = 10  # of the first results
PARTS = ("first_ten", "new", "returning")
Weights = Mapping[str, float]  # site -> sum of the weights of its results


@projection_of(Hit)
class RankedHit(Record, frozen=True, kw_only=True):
    """A hit without its URL and texts."""

    query_id: str
    source: str
    engine: str
    rank: int
    fetched_at: int

    @property
    def day(self) -> int:
        """Since 1970, UTC; 0 = unknown."""
        return self.fetched_at // DAY_MS


class ResultPart(msgspec.Struct, frozen=True):
    """The share of a part of the results of a line, by its definition and versions."""

    share: float | None
    low: float | None
    high: float | None
    method: str
    results: int  # that name a site with a scored article
    sites: int  # with a scored article


class Members(NamedTuple):
    """Sites with their results of a group as `hits`."""

    rows: Sequence[SiteState]
    weights: Weights | None = None  # of a definition of results


@dataclass(slots=True)
class _Count:
    """Results that name one site."""

    results: int = 0
    weight: float = 0.0
    day: int = 0  # the last

    def add(self, hit: RankedHit) -> None:
        self.results += 1
        self.weight += rank_weight(hit.rank)
        self.day = max(self.day, hit.day)


@dataclass(slots=True)
class _Counts:
    """Results of a group by site: all, and those of the first ranks."""

    every: dict[str, _Count] = field(default_factory=dict)
    first: dict[str, _Count] = field(default_factory=dict)

    def add(self, hit: RankedHit) -> None:
        self.every.setdefault(hit.site, _Count()).add(hit)
        if 0 < hit.rank <= FIRST_RANKS:
            self.first.setdefault(hit.site, _Count()).add(hit)


class Results:
    """The results that meet `cut`, by the groups of `by`, one of RESULT_SPLITS or "" for one group."""

    def __init__(self, hits: Iterable[RankedHit], by: str, cut: Cut, patterns: Patterns) -> None:
        """`hits` must be without repeated ones."""
        self._by, self._since, self._patterns = by, cut.since, patterns
        self._all, self._groups = _Counts(), dict[str, _Counts]()
        self._undated: set[str] = set()
        whenever = replace(cut, since=None, until=None)
        self._window_of = window_names(by) if by in WINDOWS else None
        groups_of, group_of = self._key(patterns), query_groups(patterns)
        for hit in hits:
            result = ResultFacts(hit.source, _engines(hit), group_of(hit.query_id), hit.rank, hit.day)
            if is_canary(hit.site) or not whenever.has_result(result):
                continue
            if not cut.has_result(result):
                if not hit.day:
                    self._undated.add(hit.site)
                continue
            self._all.add(hit)
            for group in groups_of(hit):
                self._groups.setdefault(group, _Counts()).add(hit)

    def named(self, rows: Iterable[SiteState]) -> list[SiteState]:
        """The sites that these results name."""
        return [row for row in rows if row.site in self._all.every]

    def undated(self, rows: Iterable[SiteState]) -> int:
        """Sites that the days of the cut leave out only because the day of their results is unknown."""
        return sum(row.site in self._undated and row.site not in self._all.every for row in rows)

    def cut_rows(
        self, rows: Sequence[SiteState], now_ms: int, earlier: Iterable[SiteState] = ()
    ) -> tuple[list[SiteState], dict[str, list[SiteState]]]:
        """As `scoring.rates.cuts.cut_rows`: the sites of all these results, and those of each group, in its order."""
        known = {row.site: row for row in rows}
        terms = earlier_rows(earlier)

        def members(counts: _Counts, *, of_window: bool) -> list[SiteState]:
            found = []
            for site in sorted(counts.every.keys() & known.keys()):
                row, count = known[site], counts.every[site]
                held = held_on(row, count.day, terms.get(site, ())) if of_window else counted_at(row, now_ms)
                found.append(changed_row(held, {"hits": count.results}))
            return found

        whole = members(self._all, of_window=False)
        if not self._by:
            return whole, {"": whole}
        if self._by in _OF_SITES:
            return whole, grouped(whole, group_key(self._by, self._patterns, rows))
        ordered = sorted(self._groups, key=group_order)
        is_window = self._window_of is not None
        groups = {name: members(self._groups[name], of_window=is_window and name != UNKNOWN) for name in ordered}
        return whole, {name: rows for name, rows in groups.items() if rows}

    def weights(self, group: str, definition: str) -> Weights:
        """The weights of the sites of a group; "" is that of all results."""
        counts = self._groups.get(group, self._all)
        return _weights(counts.every, definition)

    def parts(self, group: str, rows: Sequence[SiteState], definition: str) -> Iterator[tuple[str, Members]]:
        """The first results of a group, and the results by sites that were new then and by the others.

        Sites are new in the window that has their first result; without windows, since the first day of the cut.
        """
        counts = self._groups.get(group, self._all)
        first = [changed_row(row, {"hits": counts.first[row.site].results}) for row in rows if row.site in counts.first]
        yield "first_ten", Members(first, _weights(counts.first, definition))
        if self._since is not None if self._window_of is None else group != UNKNOWN:
            dated, weights = [row for row in rows if row.days], self.weights(group, definition)
            yield "new", Members([row for row in dated if self._is_new(row, group)], weights)
            yield "returning", Members([row for row in dated if not self._is_new(row, group)], weights)

    def _is_new(self, row: SiteState, group: str) -> bool:
        if self._window_of is not None:
            return self._window_of(row.days[0]) == group
        return row.days[0] >= bounds_of_days(self._since, None)[0]

    def _key(self, patterns: Patterns) -> Callable[[RankedHit], Sequence[str]]:
        group_of, window_of = query_groups(patterns), self._window_of
        if window_of is not None:
            return lambda hit: [window_of(hit.day) if hit.day > 0 else UNKNOWN]
        keys: dict[str, Callable[[RankedHit], Sequence[str]]] = {
            "source": lambda hit: [hit.source or UNKNOWN],
            "query": lambda hit: [hit.query_id or UNKNOWN],
            "query-group": lambda hit: [group_of(hit.query_id) if hit.query_id else UNKNOWN],
            "rank": lambda hit: [rank_band(hit.rank)],
            "engine": _engines,
        }
        return keys.get(self._by, lambda _: [])


def _engines(hit: RankedHit) -> list[str]:
    """The engines that gave a result, of which SearXNG names several; else its source."""
    return [*filter(None, hit.engine.split(","))] or [hit.source or UNKNOWN]


def part_of(share: DirectShare, rows: Sequence[SiteState]) -> ResultPart:
    """The share of a part, with the numbers behind it."""
    scored = sum(row.hits for row in rows if row.scored)
    return ResultPart(share.share, share.low, share.high, share.method, scored, share.scored_sites)


def _weights(counts: Mapping[str, _Count], definition: str) -> Weights:
    is_ranked = definition == RANKED_RESULTS
    return {site: count.weight if is_ranked else float(count.results) for site, count in counts.items()}
