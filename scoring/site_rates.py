"""Rates over site rows: all of them, and by source, query group, rank band and day, each with all its denominators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from scoring.rate import ErrorCounts, Rate, estimate
from scoring.site_verdict import HUMAN, LLM, UNCLASSIFIABLE, UNDECIDED
from stream.records import SiteState

GroupKey = Callable[[SiteState], Sequence[str]]  # the groups that a site belongs to: none, one or several

RANK_BANDS = ((1, 3), (4, 10), (11, 20), (21, 50))  # first to last rank, both included; beyond: "51+"


class SiteRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate with every denominator: sites = llm + human + undecided + unclassifiable."""

    rate: Rate
    llm: int
    human: int
    undecided: int
    unclassifiable: int
    sites: int
    without_pages: int | None = None  # of the unclassifiable: no page so far; None where pages were not told

    @property
    def text(self) -> str:
        """The rate in words, with what could not be classified, and why."""
        said = f"{self.rate.text}; {self.unclassifiable} of {self.sites} sites unclassifiable"
        if self.without_pages is None or not self.unclassifiable:
            return said
        few = self.unclassifiable - self.without_pages
        return f"{said} ({self.without_pages} without a page so far, {few} with too few articles)"

    @property
    def classifiable(self) -> int:
        """Sites whose verdict is not `unclassifiable`; the undecided are among them."""
        return self.sites - self.unclassifiable


def site_rate(
    verdicts: Iterable[str],
    errors: ErrorCounts | None = None,
    confidence: float = 0.95,
    without_pages: int | None = None,
) -> SiteRate:
    """The rate over site verdicts, one per site; `without_pages` of them had no page. Raises as `estimate`."""
    counts = Counter(verdicts)
    unclassifiable = counts[UNCLASSIFIABLE]
    sites = counts.total()
    return SiteRate(
        rate=estimate(counts[LLM], sites - unclassifiable, errors, confidence, counts[UNDECIDED]),
        llm=counts[LLM],
        human=counts[HUMAN],
        undecided=counts[UNDECIDED],
        unclassifiable=unclassifiable,
        sites=sites,
        without_pages=without_pages,
    )


def rate_of(rows: Sequence[SiteState], errors: ErrorCounts | None = None, confidence: float = 0.95) -> SiteRate:
    """The rate over site rows; of the unclassifiable it knows which had no page so far. Raises as `estimate`."""
    without_pages = sum(row.verdict == UNCLASSIFIABLE and row.pages == 0 for row in rows)
    return site_rate((row.verdict for row in rows), errors, confidence, without_pages)


def rates_by(
    rows: Iterable[SiteState], key: GroupKey, errors: ErrorCounts | None = None, confidence: float = 0.95
) -> dict[str, SiteRate]:
    """The rate of each group, groups in sorted order.

    A site found by two sources counts in both, so the groups need not add up to the whole.
    """
    groups: dict[str, list[SiteState]] = {}
    for row in rows:
        for group in key(row):
            groups.setdefault(group, []).append(row)
    return {group: rate_of(groups[group], errors, confidence) for group in sorted(groups)}


def by_source(row: SiteState) -> Sequence[str]:
    """Key: the sources whose hits led to the site."""
    return row.sources


def by_query_group(group_of: Callable[[str], str]) -> GroupKey:
    """Key: the groups of the queries that led to the site; `group_of` maps a query id to its group."""
    return lambda row: sorted({group_of(query) for query in row.queries})


def by_rank_band(row: SiteState) -> Sequence[str]:
    """Key: the band of the site's best rank, "01-03" and so on; "unknown" for rank 0."""
    rank = row.best_rank
    if rank < 1:
        return ["unknown"]
    band = next((f"{first:02d}-{last:02d}" for first, last in RANK_BANDS if first <= rank <= last), None)
    return [band or f"{RANK_BANDS[-1][1] + 1}+"]


def by_day(row: SiteState) -> Sequence[str]:
    """Key: the UTC day on which the site's row last changed, "YYYY-MM-DD"; "unknown" for a row without a time.

    A row is a site's present state, not its history: each site counts on one day, the latest.
    """
    if row.updated_at < 1:
        return ["unknown"]
    return [datetime.fromtimestamp(row.updated_at // 1000, UTC).date().isoformat()]
