"""The cuts of a rate as options of commands: read, and in words."""

from __future__ import annotations

import re
from datetime import date

from farmwatch.tables.listing import read_share
from scoring.rates.cuts import Cut
from stream.text.times import read_day
from stream.text.user_errors import UsageError

_RANKS = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")


def cut_text(cut: Cut) -> str:
    """The cut in words, "" without one."""
    said = {
        "source": cut.source,
        "engine": cut.engine,
        "query group": cut.group,
        "rank": "-".join(map(str, dict.fromkeys(cut.ranks or ()))),
        "since": cut.since,
        "until": cut.until,
    }
    return ", ".join(f"{name} {value}" for name, value in said.items() if value)


def read_ranks(text: str) -> tuple[int, int] | None:
    """`1-10`, or one rank; None for "". Raises UsageError."""
    if not text:
        return None
    match = _RANKS.fullmatch(text.strip())
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= first <= last:
        raise UsageError(f"--rank {text!r}: expected a rank or a range of ranks from 1 on, such as 1-10")
    return first, last


def read_days(since: str, until: str, now_ms: int) -> tuple[date | None, date | None]:
    """The days of --from and --to; None for "". Raises UsageError, also for a future begin and days in reverse."""
    first, last = read_option_day(since, "--from", now_ms), read_option_day(until, "--to", now_ms, may_come=True)
    if first and last and first > last:
        raise UsageError(f"--from {first} is after --to {last}")
    return first, last


def read_part(text: str, option: str, below: float) -> float:
    """A share such as 5% or 0.05, above 0. Raises UsageError."""
    try:
        part = read_share(text)
    except ValueError:
        part = 0.0
    if not 0 < part < below:
        raise UsageError(f"{option} {text}: give a share above 0 and below {below:g}, such as 1% or 0.05")
    return part


def read_option_day(text: str, option: str, now_ms: int, *, may_come: bool = False) -> date | None:
    """The day of an option; None for "". Raises UsageError, also for a future day unless it `may_come`."""
    if not text:
        return None
    try:
        return read_day(text, now_ms, may_come=may_come)
    except ValueError as error:
        raise UsageError(f"{option} {error}") from None
