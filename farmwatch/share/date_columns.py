"""The columns of a page's dates, which lists and files share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from farmwatch.tables.columns import Column
from stream.schema.dates import DateSource, PageDate, PageDates

T = TypeVar("T")


def date_columns(of: Callable[[T], PageDates | None]) -> list[Column[T]]:
    """Columns of the dates that `of` takes from a row: a month as 2022-11, a year as 2022."""

    def published(row: T) -> PageDate | None:
        dates = of(row)
        return dates.published if dates else None

    def modified(row: T) -> PageDate | None:
        dates = of(row)
        return dates.modified if dates else None

    def flags(row: T) -> str | None:
        dates = of(row)
        return " ".join(dates.flags) if dates else None

    def is_trusted(row: T) -> bool | None:
        dates = of(row)
        return dates.trusted is not None if dates else None

    return [
        Column("published", "text", lambda row: _text(published(row)), meaning="as the page states it"),
        Column("published_by", "text", lambda row: _source(published(row)), values=tuple(DateSource)),
        Column("published_trusted", "truth", is_trusted, meaning="whether it is declared and nothing contradicts it"),
        Column("date_flags", "text", flags, meaning="reasons to doubt it"),
        Column("modified", "text", lambda row: _text(modified(row))),
        Column("modified_by", "text", lambda row: _source(modified(row)), values=tuple(DateSource)),
    ]


def _text(of: PageDate | None) -> str | None:
    return str(of) if of else None


def _source(of: PageDate | None) -> str | None:
    return of.source if of else None
