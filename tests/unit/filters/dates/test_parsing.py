"""Dates in texts and in paths of URLs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.dates.parsing import read_date, read_path


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2020-02-18T23:30:00-05:00", "2020-02-18"),
        ("20200218T101010Z", "2020-02-18"),
        ("Tue, 18 Feb 2020 10:00:00 GMT", "2020-02-18"),
        ("Published on February 18th, 2020 by A. Writer", "2020-02-18"),
        ("18. Februar 2020", "2020-02-18"),
        ("18 de febrero de 2020", "2020-02-18"),
        ("1er août 2020", "2020-08-01"),
        ("18 февраля 2020", "2020-02-18"),
        ("2020年2月18日", "2020-02-18"),
        ("18.2.2020", "2020-02-18"),
        ("02/18/2020", "2020-02-18"),
        ("18/02/2020", "2020-02-18"),
        ("4/4/2020", "2020-04-04"),
    ],
)
def test_a_day_is_read_as_it_is_written(text: str, day: str) -> None:
    """ISO 8601, RFC 5322, months by name, and numbers whose order is certain are days, whatever the time zone."""
    read = read_date(text)
    assert read is not None
    assert (read.day.isoformat(), read.precision) == (day, "day")


@pytest.mark.parametrize(
    "text",
    [
        "today",
        "3 hours ago",
        "13/12/11",
        "2020-02-30",
        "18 Banana 2020",
        "© 2019 A. Writer",
        "1.2.3",
        "",
        "12345678901",
    ],
)
def test_what_is_no_certain_date_is_none(text: str) -> None:
    """Relative times, years of two digits, impossible days, a copyright year and other numbers are no dates."""
    assert read_date(text) is None


@pytest.mark.parametrize(
    ("text", "first", "precision"),
    [("03/04/2020", "2020-01-01", "year"), ("2020-05", "2020-05-01", "month"), ("2020", "2020-01-01", "year")],
)
def test_only_what_is_certain_counts(text: str, first: str, precision: str) -> None:
    """Where day and month could be swapped, or are absent, the date has the precision that is left."""
    read = read_date(text)
    assert read is not None
    assert (read.day.isoformat(), read.precision) == (first, precision)


@pytest.mark.parametrize(
    ("path", "day", "precision"),
    [
        ("/2020/02/18/the-ferry", "2020-02-18", "day"),
        ("/news/2020-2-18-ferry.html", "2020-02-18", "day"),
        ("/p/20200218/x", "2020-02-18", "day"),
        ("/2020/02/the-ferry", "2020-02-01", "month"),
    ],
)
def test_a_path_has_a_day_or_a_month(path: str, day: str, precision: str) -> None:
    """A day in a path is read before a month."""
    read = read_path(path)
    assert read is not None
    assert (read.day.isoformat(), read.precision) == (day, precision)


@pytest.mark.parametrize("path", ["/item-2020123456", "/2020/13/18/x", "/model-2020", "/2020/02/31/x/"])
def test_other_numbers_in_a_path_are_no_day(path: str) -> None:
    """Long numbers, impossible days and a lone year are no day of publication."""
    assert (read := read_path(path)) is None or read.precision == "month"


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    """No text raises, as date or path."""
    read_date(text)
    read_path(text)


@pytest.mark.parametrize("path", ["/202211/slug", "/202212/", "/item/201211", "/p/199512.html"])
def test_a_month_without_marks_is_no_day_of_a_path(path: str) -> None:
    """Six digits are a month or a number, never the first days of January."""
    assert read_path(path) is None
