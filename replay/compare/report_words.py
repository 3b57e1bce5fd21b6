"""Numbers of a comparison as the report writes them."""

from __future__ import annotations

import time

from replay.compare.comparison import FailedRule, ShareChange, points

_LONGEST = 300  # characters of a threshold, which may be a list of patterns


def count(number: int) -> str:
    """1,234."""
    return f"{number:,}"


def signed(number: int) -> str:
    """A change of a count: +12, -3, 0."""
    return f"{number:+,}" if number else "0"


def percent(share: float | None) -> str:
    """41.2%, or a dash where there is nothing to divide by."""
    return "–" if share is None else f"{share:.1%}"


def part(number: int, whole: int) -> str:
    """412 of 1,000."""
    return f"{number:,} of {whole:,}"


def difference(change: ShareChange) -> str:
    """-3.1 points (-4.2 to -1.9)."""
    if change.difference is None:
        return "nothing to compare"
    if change.low is None or change.high is None:
        return f"{points(change.difference)} points, no interval"
    return f"{points(change.difference)} points ({points(change.low)} to {points(change.high)})"


def moment(ms: int) -> str:
    """A time in UTC, to the minute."""
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(ms / 1000))
    except (OverflowError, OSError, ValueError):
        return f"{ms} ms"


def window(from_at: int, to_at: int) -> str:
    """The window of a run."""
    return f"{moment(from_at) if from_at else 'the beginning'} to {moment(to_at) if to_at else 'no end'}"


def rule(failed: FailedRule) -> str:
    """The condition that a page does not meet, and its value."""
    value = "unknown" if failed.value is None else _value(failed.value)
    return f"{failed.name} is {value}, not {failed.op} {_value(failed.threshold)}"


def shortened(text: str) -> str:
    """A value or a threshold, cut where it is long."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def _value(value: float | str | list[str] | None) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return shortened(", ".join(value) if isinstance(value, list) else str(value))
