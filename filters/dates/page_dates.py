"""The dates of a page: chosen among those that it states, with the reasons to doubt them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

from stream.schema.dates import DECLARED, FIRST_DAY, DateFlag, PageDate, PageDates, Precision

_SAME = timedelta(days=1)  # between two names of one day in different time zones


class Candidates(NamedTuple):
    """What a page states of its publication, and of its changes: one date a source, the most reliable first."""

    published: Sequence[PageDate] = ()
    modified: Sequence[PageDate] = ()


def dates_of(found: Candidates, fetch_day: date | None = None) -> PageDates:
    """Choose the dates; `fetch_day` None = unknown. A weak date on the day of a change is that of the change."""
    last = fetch_day + _SAME if fetch_day and fetch_day < date.max else date.max
    modified = _latest([of for of in found.modified if FIRST_DAY <= of.day <= last])
    published = [
        of
        for of in found.published
        if of.day >= FIRST_DAY and (of.source in DECLARED or modified is None or of.day != modified.day)
    ]
    if not published:
        return PageDates(None, modified)

    def order(of: PageDate) -> tuple[bool, bool, bool]:
        return of.day > last, of.precision != Precision.DAY, of.source not in DECLARED and of.day == fetch_day

    chosen = min(published, key=order)  # the first of equals
    agreeing = [of for of in published if _may_agree(of, chosen)]
    differs = any(of.source in DECLARED and of not in agreeing for of in published)
    is_weak = chosen.source not in DECLARED
    flags = {
        DateFlag.CONFLICT: differs or (modified is not None and modified.day < chosen.day - _SAME),
        DateFlag.FUTURE: chosen.day > last,
        DateFlag.FETCH_DAY: is_weak and chosen.day == fetch_day,
    }
    return PageDates(chosen, modified, len(agreeing), [flag.value for flag, is_set in flags.items() if is_set])


def _latest(dates: Sequence[PageDate]) -> PageDate | None:
    return max(dates, key=lambda of: of.day, default=None)


def _may_agree(one: PageDate, other: PageDate) -> bool:
    """Whether two dates may be of one day, each with its precision."""
    return one.day <= other.last_day + _SAME and other.day <= one.last_day + _SAME
