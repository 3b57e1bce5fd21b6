"""Which verdict of a site counts at a time: that of its term, as long as the term has not run out too long ago.

A site is measured again when its term ends. Until that is done, for GRACE of a term, the verdict still counts. After
that the site counts as not judged: its verdict is too old. A site that is not crawled has a term without an end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from scoring.rates.canary import is_canary
from scoring.rates.site_rates import WindowDays, method_of
from stream.schema.records import SiteState
from stream.schema.vocabulary import UNCLASSIFIABLE

GRACE = 0.25  # of a term: the crawl visits a site that is due within days, and 22 days cover one that is down
TOO_OLD = "verdict too old"

_DAY_MS = 86_400_000
_NO_TERM = -1  # of a row whose verdict is too old

Earlier = Mapping[str, Sequence[SiteState]]  # site -> rows of its terms before the newest, in their order


def counted_at(row: SiteState, at_ms: int) -> SiteState:
    """The row as it counts at a time: without verdict and articles where its verdict is too old."""
    ends = row.term_end + GRACE * (row.term_end - row.term_start)
    if not row.term_end or at_ms <= ends or is_canary(row.site):
        return row
    fields = {name: getattr(row, name) for name in SiteState.__struct_fields__}  # a row in columns is no struct
    fields |= dict.fromkeys(("articles", "scored", "abstained", "flagged", "pages_used", "decided_at"), 0)
    fields |= {"verdict": UNCLASSIFIABLE, "llr": 0.0, "dropped_by": {}, "mixed": False, "term": _NO_TERM}
    return SiteState(**fields)


def is_too_old(row: SiteState) -> bool:
    """Whether `counted_at` found the verdict of the row too old."""
    return row.term == _NO_TERM


def earlier_rows(rows: Iterable[SiteState]) -> Earlier:
    """The rows of earlier terms by site."""
    found: dict[str, list[SiteState]] = {}
    for row in sorted(rows, key=lambda row: row.term_start):
        found.setdefault(row.site, []).append(row)
    return found


def in_windows(
    rows: Iterable[SiteState], days_of: WindowDays, earlier: Earlier, unknown: str
) -> dict[str, list[SiteState]]:
    """Window -> the sites that search results named in it, each with the verdict that held on the last such day."""
    groups: dict[str, list[SiteState]] = {}
    for row in rows:
        for window, day in days_of(row).items():
            groups.setdefault(window, []).append(_held_on(row, day, earlier.get(row.site, ())))
        if not days_of(row):
            groups.setdefault(unknown, []).append(row)
    return {window: groups[window] for window in sorted(groups)}


def _held_on(row: SiteState, day: int, earlier: Sequence[SiteState]) -> SiteState:
    """The row of the term that held at the end of a day; before the first term the row of that."""
    at_ms = (day + 1) * _DAY_MS - 1
    terms = [term for term in earlier if same_versions(term, row)] + [row]
    held = counted_at(row_at(terms, at_ms), at_ms)
    if held is row:
        return row
    found = {name: getattr(row, name) for name in ("sources", "queries", "best_rank", "hits", "days")}
    return msgspec.structs.replace(held, **found)


def row_at(terms: Sequence[SiteState], at_ms: int) -> SiteState:
    """Of a site's terms in their order the one that held at a time; before the first term the first."""
    begun = [term for term in terms if term.term_start <= at_ms]
    return (begun or terms[:1])[-1]


def same_versions(one: SiteState, other: SiteState) -> bool:
    """Whether the verdicts of two rows may be compared: one run, ruleset, detector and method."""
    return _versions(one) == _versions(other)


def _versions(row: SiteState) -> tuple[str, ...]:
    return row.run, row.ruleset, row.digest, row.detector, *method_of(row)
