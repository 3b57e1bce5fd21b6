"""Control pages: what is surely human by its dates."""

from __future__ import annotations

from datetime import date

import pytest

from stream.schema.dates import PageDate, PageDates
from stream.schema.page_age import PageAge, age_of
from stream.text.times import day_ms

NOW = day_ms(date(2026, 5, 1))


def dated(published: str, modified: str = "", source: str = "json-ld", **more: object) -> PageDates:
    """Dates of a page; `modified` may be a month or a year."""
    precision = {4: "year", 7: "month"}.get(len(modified), "day")
    changed = PageDate(date.fromisoformat(f"{modified}-01-01"[:10]), precision, "meta") if modified else None
    return PageDates(PageDate(date.fromisoformat(published), source=source), changed, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dates", "age"),
    [
        (dated("2021-05-01", "2021-06-01"), PageAge.CONTROL),
        (dated("2021-05-01", "2022-11-29"), PageAge.CONTROL),
        (dated("2021-05-01", "2022-11-30"), PageAge.UNKNOWN),
        (dated("2021-05-01", "2024-02-01"), PageAge.UNKNOWN),
        (dated("2021-05-01", "2022-10"), PageAge.CONTROL),
        (dated("2021-05-01", "2022-11"), PageAge.UNKNOWN),
        (dated("2021-05-01", "2022"), PageAge.UNKNOWN),
        (dated("2021-05-01"), PageAge.DECLARED),
        (dated("2023-01-01", "2023-01-01"), PageAge.UNKNOWN),
        (dated("2021-05-01", "2021-06-01", source="byline"), PageAge.UNKNOWN),
        (dated("2021-05-01", "2021-06-01", flags=["conflict"]), PageAge.UNKNOWN),
        (PageDates(), PageAge.UNKNOWN),
        (None, PageAge.UNKNOWN),
    ],
)
def test_a_control_page_was_published_and_last_changed_before_chatgpt(dates: PageDates | None, age: PageAge) -> None:
    """Both days are stated and before it, the first one trusted; without a day of change it is second class.

    A month or a year of change counts to its end.
    """
    assert age_of(dates, NOW) == age


def test_what_was_fetched_before_chatgpt_is_a_control_whatever_it_states() -> None:
    """The time of the fetch is the hard bound; on the day itself it is none."""
    before, on = day_ms(date(2022, 11, 30)) - 1, day_ms(date(2022, 11, 30))
    assert age_of(None, before) == age_of(dated("2024-01-01"), before) == PageAge.CONTROL
    assert age_of(None, on) == age_of(None, 0) == PageAge.UNKNOWN
