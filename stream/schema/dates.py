"""The dates of a page, as it states them itself: how they are named, recorded and trusted."""

from __future__ import annotations

from datetime import date, timedelta
from enum import StrEnum

import msgspec

CHATGPT = date(2022, 11, 30)
"""The day of its release: earlier texts are surely by people."""

FIRST_DAY = date(1995, 1, 1)
"""An earlier date is none of a web page."""


class DateSource(StrEnum):
    """What states a date, the most reliable first: the values of `PageDate.source`."""

    JSON_LD = "json-ld"
    META = "meta"
    ITEMPROP = "itemprop"
    TIME = "time"  # marked as publication, or as a change
    URL = "url"
    OTHER_META = "other meta"  # does not say of what
    OTHER_TIME = "other time"  # likewise
    BYLINE = "byline"  # visible text


DECLARED = frozenset({DateSource.JSON_LD, DateSource.META, DateSource.ITEMPROP, DateSource.TIME, DateSource.URL})
"""Sources that say of what their date is. The others are weak."""


class Precision(StrEnum):
    """The part of a date that its source states: the values of `PageDate.precision`."""

    DAY = "day"
    MONTH = "month"
    YEAR = "year"


_LATER = {Precision.DAY: timedelta(), Precision.MONTH: timedelta(days=30), Precision.YEAR: timedelta(days=365)}


class DateFlag(StrEnum):
    """A reason to doubt a date of publication: the values of `PageDates.flags`."""

    CONFLICT = "conflict"  # a declared source differs by more than a day, or the page was changed before
    FUTURE = "future"  # later than a day after the fetch
    FETCH_DAY = "fetch_day"  # from a weak source, and the day of the fetch: perhaps a clock in a header
    SITE_DAY = "site_day"  # from a weak source, and that of at least 4 pages and half of the site's pages so far


class PageDate(msgspec.Struct, array_like=True, frozen=True):
    """A date that a page states; of a month or a year `day` is the first."""

    day: date
    precision: str = Precision.DAY.value
    source: str = ""

    @property
    def last_day(self) -> date:
        """The latest day that it may be, or one or two days later: every month counts as the longest."""
        return self.day + _LATER[Precision(self.precision)]

    def __str__(self) -> str:
        return self.day.isoformat()[: {Precision.YEAR: 4, Precision.MONTH: 7}.get(Precision(self.precision), 10)]


class PageDates(msgspec.Struct, array_like=True, frozen=True):
    """When a page was published and last changed; None = it states no date."""

    published: PageDate | None = None
    modified: PageDate | None = None  # the latest that it states
    agreeing: int = 0  # sources of the day of publication, give or take one
    flags: list[str] = []

    @property
    def trusted(self) -> date | None:
        """The day of publication if it is declared and nothing contradicts it."""
        of = self.published
        is_sure = of and of.source in DECLARED and of.precision == Precision.DAY and not self.flags
        return of.day if of and is_sure else None
