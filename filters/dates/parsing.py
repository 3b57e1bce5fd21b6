"""Reads the first date in a text: ISO 8601, RFC 5322, months by name, numbers with dots, slashes or hyphens.

The day is that of the text, whatever its time zone. `13/12/11` is no date: which number is the year is unknown. Of
`03/04/2020` only the year is known. Months have names in English, Dutch,
French, German, Indonesian, Italian, Portuguese, Russian, Spanish and Turkish.
"""

from __future__ import annotations

import re
from datetime import date
from typing import NamedTuple

from stream.schema.dates import Precision

_CHARS = 120  # of a text that is read
_NAMES = (  # their first letters
    "jan ene gen янв oca",
    "feb fév fev фев şub",
    "mar mär mae maa mrt мар",
    "apr abr avr апр nis",
    "may mai mag mei мая май",
    "jun juin giu июн haz",
    "jul juil lug июл tem",
    "aug ago aoû aou agu авг ağu",
    "sep set сен eyl",
    "oct okt ott out окт eki",
    "nov ноя kas",
    "dec dez déc dic des дек ara",
)
_MONTHS = {letters: month for month, names in enumerate(_NAMES, 1) for letters in names.split()}
_YEAR = "(?P<y>(?:19|20)[0-9]{2})"
_NAME = r"(?P<name>[^\W\d_]{3,10})\.?"
_DATE = re.compile(
    rf"(?<![0-9])(?:{_YEAR}\s?[-/.年]\s?(?P<m>[0-9]{{1,2}})\s?[-/.月]\s?(?P<d>[0-9]{{1,2}})(?![0-9])"
    rf"|{_YEAR.replace('y', 'y2')}(?P<m2>0[1-9]|1[0-2])(?P<d2>[0-2][0-9]|3[01])(?:[0-9]{{6}})?(?![0-9])"
    rf"|(?P<a>[0-9]{{1,2}})(?P<mark>[-/.])\s?(?P<b>[0-9]{{1,2}})(?P=mark)\s?{_YEAR.replace('y', 'y3')}(?![0-9])"
    rf"|(?P<d4>[0-9]{{1,2}})(?:st|nd|rd|th|er|º|\.)?[\s-]+(?:de\s+|of\s+)?{_NAME.replace('name', 'name4')}"
    rf"(?:,?\s+(?:de\s+)?|-){_YEAR.replace('y', 'y4')}(?![0-9]))"
    rf"|(?<![^\W\d_]){_NAME.replace('name', 'name5')}\s+(?P<d5>[0-9]{{1,2}})(?:st|nd|rd|th)?,?\s+"
    rf"{_YEAR.replace('y', 'y5')}(?![0-9])",
    re.IGNORECASE,
)
_PART = re.compile(rf"\s*{_YEAR}(?:[-/](?P<m>0?[1-9]|1[0-2]))?\s*")
_PATH_DAY = re.compile(
    rf"(?<![0-9]){_YEAR}(?:(?P<mark>[-/_.])(?P<m>0?[1-9]|1[0-2])(?P=mark)(?P<d>[0-2]?[0-9]|3[01])"
    rf"|(?P<m2>0[1-9]|1[0-2])(?P<d2>[0-2][0-9]|3[01]))(?![0-9])"  # without marks a month alone is no day
)
_PATH_MONTH = re.compile(rf"/{_YEAR}[-/](?P<m>0?[1-9]|1[0-2])/")


class ReadDate(NamedTuple):
    """A date; of a month or a year the first day."""

    day: date
    precision: Precision


def read_date(text: str) -> ReadDate | None:
    """The first date in the first characters of a text; None if there is none."""
    text = text.strip()[:_CHARS]
    for found in _DATE.finditer(text):
        if (read := _of(found)) is not None:
            return read
    if whole := _PART.fullmatch(text):
        return _month(whole) if whole["m"] else _day(int(whole["y"]), 1, 1, Precision.YEAR)
    return None


def read_path(path: str) -> ReadDate | None:
    """The day in the path of a URL, or else its month."""
    for found in _PATH_DAY.finditer(path):
        if (read := _day(int(found["y"]), int(found["m"] or found["m2"]), int(found["d"] or found["d2"]))) is not None:
            return read
    month = _PATH_MONTH.search(path)
    return _month(month) if month else None


def _of(found: re.Match[str]) -> ReadDate | None:
    if found["y"]:
        return _day(int(found["y"]), int(found["m"]), int(found["d"]))
    if found["y2"]:
        return _day(int(found["y2"]), int(found["m2"]), int(found["d2"]))
    if found["y3"]:
        first, second, year = int(found["a"]), int(found["b"]), int(found["y3"])
        if found["mark"] == "." or first > 12 or first == second:
            return _day(year, second, first)
        return _day(year, first, second) if second > 12 else _day(year, 1, 1, Precision.YEAR)
    name, day_text, year_text = (found[f"{part}{4 if found['y4'] else 5}"] for part in ("name", "d", "y"))
    month = _MONTHS.get(name[:4].lower()) or _MONTHS.get(name[:3].lower())
    return _day(int(year_text), month, int(day_text)) if month else None


def _month(found: re.Match[str]) -> ReadDate | None:
    return _day(int(found["y"]), int(found["m"]), 1, Precision.MONTH)


def _day(year: int, month: int, day: int, precision: Precision = Precision.DAY) -> ReadDate | None:
    try:
        return ReadDate(date(year, month, day), precision)
    except ValueError:
        return None
