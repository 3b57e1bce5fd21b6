"""Times that users write: accepted forms, the range, and refusals."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.text.times import AHEAD_MS, EARLIEST_MS, is_day, read_day, read_time

NOW = datetime(2026, 11, 22, 10, tzinfo=UTC)
NOW_MS = int(NOW.timestamp()) * 1000
BEGIN = datetime(1995, 1, 1)
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(BEGIN, NOW.replace(tzinfo=None)).map(
    lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)
)


def milliseconds(at: datetime) -> int:
    """Milliseconds since 1970 of a time with a zone."""
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("2026-11-22", "2026-11-22T00:00:00"),
        ("20261122", "2026-11-22T00:00:00"),
        (20261122, "2026-11-22T00:00:00"),
        ("2026-11-22T10:00:00Z", "2026-11-22T10:00:00"),
        ("20261122T100000Z", "2026-11-22T10:00:00"),
        (" 2026-11-22 09:00 ", "2026-11-22T09:00:00"),
        ("2026-11-22T10:00:00+02:00", "2026-11-22T08:00:00"),
        ("20261122T100000-0130", "2026-11-22T11:30:00"),
        ("1795255200", "2026-11-21T10:00:00"),
        (1795255200, "2026-11-21T10:00:00"),
        (1795255200000, "2026-11-21T10:00:00"),
        ("1795255200000", "2026-11-21T10:00:00"),
        ("1795255200.0", "2026-11-21T10:00:00"),
        ("788918400", "1995-01-01T00:00:00"),
        ("788918400000", "1995-01-01T00:00:00"),
    ],
)
def test_every_form_is_read(value: object, said: str) -> None:
    """ISO 8601, extended or basic, takes precedence over seconds and milliseconds; eight digits are a day."""
    assert read_time(value, NOW_MS) == milliseconds(datetime.fromisoformat(said).replace(tzinfo=UTC))


@pytest.mark.parametrize(
    "value",
    [
        *(True, False, None, [2026], {}, b"20261122", float("nan"), float("inf"), 1e300),
        *(
            "",
            " ",
            "true",
            "May",
            "1_795_255_200",
            "١٧٩٥٢٥٥٢٠٠",
            "２０２６-１１-２２",
            "1e9",
            "-1795255200",
            "+1795255200",
        ),
        *("2026-13-01", "2026-11-22x10:00", "1700010112345678", "2026", "2026-11", "10:00", "2026-W47-7", "1" * 4400),
        "2026-11-22T25:00",
    ],
)
def test_everything_else_is_no_time(value: Any) -> None:
    """Booleans, underscores, non-ASCII digits, bare years and loose numbers are refused, with the accepted forms."""
    with pytest.raises(ValueError, match="not a time: write 2026-11-22, 2026-11-22T10:00:00Z, or seconds"):
        read_time(value, NOW_MS)


@pytest.mark.parametrize("value", ["0001-01-01", "1994-12-31", "2026-11-24", "2100-01-01", "9999-12-31", "788918399"])
def test_a_time_out_of_range_is_refused(value: str) -> None:
    """The range is 1995 to a day from now; the error names both ends."""
    with pytest.raises(ValueError, match="out of range: times from 1995-01-01T00:00:00Z to 2026-11-23T10:00:00Z are"):
        read_time(value, NOW_MS)


def test_a_time_to_come_is_read_where_one_is_meant() -> None:
    """The end of a window may be in the future, but never before 1995."""
    assert read_time("9999-12-31", NOW_MS, may_come=True) == milliseconds(datetime(9999, 12, 31, tzinfo=UTC))
    with pytest.raises(ValueError, match="times from 1995-01-01T00:00:00Z are taken"):
        read_time("1994-12-31", NOW_MS, may_come=True)


def test_a_day_is_read_as_a_day() -> None:
    """A day is read in both forms; a time of day is refused."""
    assert read_day("20261122", NOW_MS) == read_day("2026-11-22", NOW_MS) == date(2026, 11, 22)
    assert is_day("2026-11-22") and not is_day("2026-11-22T10:00")
    with pytest.raises(ValueError, match="not a day: write it as 2026-11-22"):
        read_day("2026-11-22T10:00", NOW_MS)


@given(MOMENTS, OFFSETS, st.sampled_from(["", "%Y-%m-%dT%H:%M:%S.%f%z", "%Y%m%dT%H%M%S.%f%z"]))
def test_iso_forms_make_the_round_trip(at: datetime, offset: timezone, form: str) -> None:
    """A moment in any form and zone reads back as that moment, to the millisecond."""
    there = at.replace(tzinfo=UTC).astimezone(offset)
    assert read_time(there.strftime(form) if form else there.isoformat(), NOW_MS) == milliseconds(there)
    assert read_time(at.isoformat(), NOW_MS) == milliseconds(there)


@given(st.integers(EARLIEST_MS, NOW_MS + AHEAD_MS))
def test_milliseconds_and_seconds_are_told_apart(at_ms: int) -> None:
    """Within the range, the number of digits distinguishes seconds from milliseconds, as a number and as text."""
    assert read_time(at_ms, NOW_MS) == read_time(str(at_ms), NOW_MS) == at_ms
    assert read_time(at_ms // 1000, NOW_MS) == at_ms // 1000 * 1000


@given(
    st.one_of(
        st.text(),
        st.from_regex(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}([T ][0-9:]{2,8}(Z|[+-][0-9:]{2,5})?)?", fullmatch=True),
        st.from_regex(r"[0-9]{1,20}(\.[0-9]{0,5})?", fullmatch=True),
        st.integers(),
        st.floats(),
        st.booleans(),
        st.none(),
        st.datetimes().map(datetime.isoformat),
    )
)
def test_nothing_outside_the_range_is_accepted(value: object) -> None:
    """Every input gives a time within the range, or ValueError in printable characters."""
    try:
        assert EARLIEST_MS <= read_time(value, NOW_MS) <= NOW_MS + AHEAD_MS
    except ValueError as error:
        assert str(error).isprintable()
