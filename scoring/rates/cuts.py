"""The sites that a rate counts: those of a source, query group, range of ranks or of days, and in which groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import NamedTuple

from scoring.rates.canary import is_canary
from scoring.rates.groups import WINDOWS, bounds_of_days, days_within, group_key, grouped, last_days, query_groups
from scoring.rates.terms import counted_at, earlier_rows, in_windows
from stream.schema.records import SiteState

Patterns = Mapping[str, Sequence[str]]  # name of a query group -> patterns of query ids


class ResultFacts(NamedTuple):
    """What a cut reads of a search result."""

    source: str
    engines: Sequence[str]
    group: str  # of its query
    rank: int
    day: int  # since 1970; 0: unknown


@dataclass(frozen=True, slots=True)
class Cut:
    """Conditions on a site; "" and None are no condition. `ranks` are the first and the last, both included."""

    source: str = ""
    group: str = ""
    ranks: tuple[int, int] | None = None
    since: date | None = None
    until: date | None = None
    engine: str = ""  # of search results alone: the row of a site does not know it

    def of(self, rows: Iterable[SiteState], groups: Patterns) -> list[SiteState]:
        """The sites that meet it; canaries pass, because they have no search result, and are left out later."""
        group_of = query_groups(groups)
        return [row for row in rows if is_canary(row.site) or self._has(row, group_of)]

    def has_result(self, result: ResultFacts) -> bool:
        """Whether a search result meets it."""
        if (self.source and self.source != result.source) or (self.group and self.group != result.group):
            return False
        if self.engine and self.engine not in result.engines:
            return False
        if self.ranks is not None and not self.ranks[0] <= result.rank <= self.ranks[1]:
            return False
        if self.since is None and self.until is None:
            return True
        first, last = bounds_of_days(self.since, self.until)
        return result.day > 0 and first <= result.day <= last

    def undated(self, rows: Iterable[SiteState], groups: Patterns) -> int:
        """Sites that `since` or `until` leave out only because the day of their search results is unknown."""
        if self.since is None and self.until is None:
            return 0
        group_of = query_groups(groups)
        without = replace(self, since=None, until=None)
        return sum(not row.days and not is_canary(row.site) and without._has(row, group_of) for row in rows)

    def _has(self, row: SiteState, group_of: Callable[[str], str]) -> bool:
        if self.source and self.source not in row.sources:
            return False
        if self.group and all(group_of(query) != self.group for query in row.queries):
            return False
        if self.ranks is not None and not self.ranks[0] <= row.best_rank <= self.ranks[1]:
            return False
        return (self.since is None and self.until is None) or bool(days_within(row, self.since, self.until))


def cut_rows(
    rows: Sequence[SiteState], by: str, cut: Cut, patterns: Patterns, now_ms: int, earlier: Iterable[SiteState] = ()
) -> tuple[list[SiteState], dict[str, list[SiteState]]]:
    """The rows that count, as they count now, and those of each group of `by`; windows know rows of `earlier` terms."""
    named = [row for row in cut.of(rows, patterns) if not is_canary(row.site)]
    if by in WINDOWS:
        windows = in_windows(named, last_days(by, cut.since, cut.until), earlier_rows(earlier))
        return [counted_at(row, now_ms) for row in named], windows
    key = group_key(by, patterns, rows) if by else None
    counted = [counted_at(row, now_ms) for row in named]
    return counted, grouped(counted, key) if key else {"": counted}
