"""Which verdict of a site counts at a time: that of its term, as long as the term has not run out too long ago.

A site is measured again when its term ends. Until the new term has a verdict, for GRACE of a term, that of the term
before still counts. After that the site counts as its new term stands, and without one as not judged: its verdict is
too old. A site that is not crawled has a term without an end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scoring.rates.canary import is_canary
from scoring.rates.groups import UNKNOWN, WindowDays
from scoring.rates.versions import versions_of
from stream.schema.records import SiteState
from stream.schema.vocabulary import SiteClass
from stream.text.times import DAY_MS

GRACE = 0.25  # of a term: the crawl visits a site that is due within days, and 22 days cover one that is down
TOO_OLD = "verdict too old"

_NO_TERM = -1  # of a row whose verdict is too old
_OF_VERDICT = (
    *("verdict", "articles", "scored", "abstained", "flagged", "pages_used", "llr", "dropped_by", "mixed"),
    *("decided_at", "through_segments", "control_scored", "control_flagged", "declared_scored", "declared_flagged"),
    *("before_scored", "before_flagged", "since_scored", "since_flagged", "turn_p", "quarters", "needs_script"),
)
_EMPTY = SiteState(id="", site="")
_NO_VERDICT: dict[str, Any] = {name: getattr(_EMPTY, name) for name in _OF_VERDICT} | {"term": _NO_TERM}
_OF_SEARCH = ("sources", "queries", "best_rank", "hits", "days")

Earlier = Mapping[str, Sequence[SiteState]]  # site -> rows of its terms before the newest, in their order


def counted_at(row: SiteState, at_ms: int) -> SiteState:
    """The row as it counts at a time: that of the term before while it holds, none where the verdict is too old."""
    former = row.former if row.term else None
    if former is not None and at_ms <= _holds_until(former):
        return _returned_as(row, former)
    if not row.term_end or at_ms <= _holds_until(row) or is_canary(row.site):
        return row
    return changed_row(row, _NO_VERDICT)


def changed_row(row: SiteState, changes: dict[str, Any]) -> SiteState:
    """A copy with these fields; the row may be a view of columns, which `msgspec.structs.replace` cannot copy."""
    return SiteState(**{name: getattr(row, name) for name in SiteState.__struct_fields__} | changes)


def _returned_as(row: SiteState, term: SiteState) -> SiteState:
    """A term of the site with the search results of its row."""
    return changed_row(term, {name: getattr(row, name) for name in _OF_SEARCH})


def _holds_until(row: SiteState) -> float:
    return row.term_end + GRACE * (row.term_end - row.term_start)


def is_too_old(row: SiteState) -> bool:
    """Whether `counted_at` found the verdict of the row too old."""
    return row.term == _NO_TERM


def earlier_rows(rows: Iterable[SiteState]) -> Earlier:
    """The rows of earlier terms by site."""
    terms: dict[str, list[SiteState]] = {}
    for row in sorted(rows, key=lambda row: row.term_start):
        terms.setdefault(row.site, []).append(row)
    return terms


def in_windows(rows: Iterable[SiteState], days_of: WindowDays, earlier: Earlier) -> dict[str, list[SiteState]]:
    """Window -> the sites that search results named in it, each with the verdict that held on the last such day."""
    groups: dict[str, list[SiteState]] = {}
    for row in rows:
        for window, day in days_of(row).items():
            groups.setdefault(window, []).append(held_on(row, day, earlier.get(row.site, ())))
        if not days_of(row):
            groups.setdefault(UNKNOWN, []).append(row)
    return {window: groups[window] for window in sorted(groups)}


def held_on(row: SiteState, day: int, earlier: Sequence[SiteState]) -> SiteState:
    """The row of the term that held at the end of a day; before the first term the row of that."""
    at_ms = (day + 1) * DAY_MS - 1
    terms = [term for term in earlier if versions_of(term) == versions_of(row)] + [row]
    *before, held = [term for term in terms if term.term_start <= at_ms] or terms[:1]
    former = before[-1] if before and held.verdict == SiteClass.UNCLASSIFIABLE else None
    if former is not None and former.verdict != SiteClass.UNCLASSIFIABLE and at_ms <= _holds_until(former):
        held = former
    else:
        held = counted_at(held, at_ms)
    return row if held is row else _returned_as(row, held)
