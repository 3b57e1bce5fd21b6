"""The sites that a rate counts: those of one source, one query group, a range of ranks, a range of days."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import date

from scoring.rates.canary import is_canary
from scoring.rates.settings import RateSettings
from scoring.rates.site_rates import days_within, query_groups
from stream.schema.records import SiteState
from stream.text.times import read_day
from stream.text.user_errors import UsageError

_RANKS = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")


@dataclass(frozen=True, slots=True)
class Cut:
    """Conditions on a site; "" and None are no condition. `ranks` are the first and the last, both included."""

    source: str = ""
    group: str = ""
    ranks: tuple[int, int] | None = None
    since: date | None = None
    until: date | None = None

    def of(self, rows: Iterable[SiteState], settings: RateSettings) -> list[SiteState]:
        """The sites that meet it; canaries pass, because they have no search result, and are left out later."""
        group_of = query_groups(settings.groups)
        return [row for row in rows if is_canary(row.site) or self._has(row, group_of)]

    def undated(self, rows: Iterable[SiteState], settings: RateSettings) -> int:
        """Sites that `since` or `until` leave out only because the day of their search results is unknown."""
        if self.since is None and self.until is None:
            return 0
        group_of = query_groups(settings.groups)
        without = replace(self, since=None, until=None)
        return sum(not row.days and not is_canary(row.site) and without._has(row, group_of) for row in rows)

    @property
    def text(self) -> str:
        """The cut in words, "" without one."""
        ranks = self.ranks and ("rank " + "-".join(map(str, dict.fromkeys(self.ranks))))
        said = (
            self.source and f"source {self.source}",
            self.group and f"query group {self.group}",
            ranks,
            self.since and f"since {self.since}",
            self.until and f"until {self.until}",
        )
        return ", ".join(part for part in said if part)

    def _has(self, row: SiteState, group_of: Callable[[str], str]) -> bool:
        if self.source and self.source not in row.sources:
            return False
        if self.group and all(group_of(query) != self.group for query in row.queries):
            return False
        if self.ranks is not None and not self.ranks[0] <= row.best_rank <= self.ranks[1]:
            return False
        return (self.since is None and self.until is None) or bool(days_within(row, self.since, self.until))


def read_ranks(text: str) -> tuple[int, int] | None:
    """`1-10`, or one rank; None for "". Raises UsageError."""
    if not text:
        return None
    found = _RANKS.fullmatch(text.strip())
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= first <= last:
        raise UsageError(f"--rank {text!r}: expected a rank or a range of ranks from 1 on, such as 1-10")
    return first, last


def read_days(since: str, until: str, now_ms: int) -> tuple[date | None, date | None]:
    """The days of --from and --to; None for "". Raises UsageError, also for days that run backwards.

    A cut may end on a future day, but not begin on one.
    """
    first, last = _day(since, "--from", now_ms), _day(until, "--to", now_ms, may_come=True)
    if first and last and first > last:
        raise UsageError(f"--from {first} is after --to {last}")
    return first, last


def _day(text: str, option: str, now_ms: int, *, may_come: bool = False) -> date | None:
    if not text:
        return None
    try:
        return read_day(text, now_ms, may_come=may_come)
    except ValueError as error:
        raise UsageError(f"{option} {error}") from None
