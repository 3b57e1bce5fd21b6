"""Times that users write: one parser and one range for every input. docs/reference/formats.md shows the forms.

A time is ISO 8601, extended (2026-11-22T10:00:00+01:00) or basic (20261122T100000Z), or digits since 1970: 9 or 10 are
seconds, 12 or 13 milliseconds. No text within the range is both: 8 digits are a day. Without an offset it is UTC.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta

DAY_S = 86_400
DAY_MS = 1000 * DAY_S
EARLIEST_MS = 788_918_400_000  # 1995-01-01: no search engine returned anything before
AHEAD_MS = DAY_MS  # clocks may differ this much, and days begin earlier in the east
FORMS = "write 2026-11-22, 2026-11-22T10:00:00Z, or seconds (10 digits) or milliseconds (13 digits) since 1970"

_DAY = r"(?:\d{4}-\d\d-\d\d|\d{8})"
_IS_DAY = re.compile(_DAY, re.ASCII)
_ISO = re.compile(rf"{_DAY}(?:[Tt ]\d[\d:.,]*(?:[Zz]|[+-]\d[\d:]*)?)?", re.ASCII)
_SINCE_1970 = re.compile(r"(\d{9,10}|\d{12,13})(?:\.(\d+))?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_LAST_MS = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
_SHOWN = 40  # characters of a value that an error shows


def read_time(value: object, now_ms: int, *, may_come: bool = False) -> int:
    """Milliseconds since 1970 of a text or number; `may_come` allows any future time. ValueError ends a sentence."""
    at_ms = None
    text = str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    if since := _SINCE_1970.fullmatch(text):
        whole, fraction = int(since[1]), int(f"{since[2] or ''}000"[:3])
        at_ms = whole if len(since[1]) > 10 else 1000 * whole + fraction
    elif _ISO.fullmatch(text):
        with suppress(ValueError):
            at = datetime.fromisoformat(text.upper())
            at_ms = ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND
    if at_ms is None:
        raise ValueError(f"is {str(value)[:_SHOWN]!r}, not a time: {FORMS}")
    latest_ms = now_ms + AHEAD_MS
    if at_ms < EARLIEST_MS or (at_ms > latest_ms and not may_come):
        end = "" if may_come else f" to {_text(latest_ms)}"
        raise ValueError(f"is {str(value)[:_SHOWN]!r}, out of range: times from {_text(EARLIEST_MS)}{end} are taken")
    return at_ms


def read_day(text: str, now_ms: int, *, may_come: bool = False) -> date:
    """A day such as 2026-11-22 or 20261122. Raises ValueError as `read_time`, also for a time of day."""
    if not is_day(text):
        raise ValueError(f"is {text[:_SHOWN]!r}, not a day: write it as 2026-11-22")
    return (_EPOCH + read_time(text, now_ms, may_come=may_come) * _MILLISECOND).date()


def day_ms(day: date) -> int:
    """Milliseconds since 1970 at the start of a day, UTC."""
    return (datetime(day.year, day.month, day.day, tzinfo=UTC) - _EPOCH) // _MILLISECOND


def day_at(at_ms: int) -> date:
    """The day of a time, UTC; of a time beyond the calendar its last day."""
    return (_EPOCH + min(at_ms, _LAST_MS) * _MILLISECOND).date()


def is_day(text: str) -> bool:
    """Whether the text has the form of a day."""
    return _IS_DAY.fullmatch(text.strip()) is not None


def _text(at_ms: int) -> str:
    return (_EPOCH + at_ms * _MILLISECOND).strftime("%Y-%m-%dT%H:%M:%SZ")
