"""Formats parts of messages: one-line text, counts, durations, times, sizes and queues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from unicodedata import category

_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # general categories
_NAME_CHARS = 100  # of a misspelt name: difflib takes the square of the time
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def one_line(cell: Any) -> str:
    """Text on one line without control characters, safe for the operator's terminal."""
    if cell is None:
        return "-"
    text = f"{cell:.4g}" if isinstance(cell, float) else str(cell)
    return "".join(character if character.isprintable() else " " for character in text)


def escaped(text: str) -> str:
    """The text with escapes for characters that could steer a terminal; line breaks stay."""
    if text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode() if category(c) in _STEERING and c != "\n" else c for c in text)


def nearest(name: str, known: Iterable[str], least: float = 0.6) -> str:
    """The known name that a misspelt one may mean, by `difflib`; "" if none is as similar as `least`."""
    from difflib import get_close_matches  # only for an error

    return next(iter(get_close_matches(name[:_NAME_CHARS], list(known), 1, least)), "")


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 hit, 2,000 hits, 2 fetches."""
    return f"{number:,} {noun}" + ("" if number == 1 else "es" if noun.endswith("ch") else "s")


def lasting(span_s: float) -> str:
    """A span: 0.4 s, 35 s, 3 min 20 s, 2 h 5 min, 4 d 1 h; two units at most, rounded down."""
    if span_s < 10:
        return f"{max(0.0, span_s):.1f} s".replace(".0 s", " s")
    if span_s < 59.5:
        return f"{span_s:.0f} s"
    seconds = max(60, int(span_s))
    (size_s, unit), (less_s, less) = next(pair for pair in pairwise(_UNITS) if seconds >= pair[0][0])
    whole, rest_s = divmod(seconds, size_s)
    return f"{whole} {unit}" + (f" {rest_s // less_s} {less}" if rest_s >= less_s else "")


def when(at_ms: int, now_ms: int) -> str:
    """A moment relative to now: `now`, `in 3 min`, `3 min ago`."""
    if abs(at_ms - now_ms) < 50:
        return "now"
    span = lasting(abs(at_ms - now_ms) / 1000)
    return f"in {span}" if at_ms > now_ms else f"{span} ago"


def moment(at_ms: int) -> str:
    """A moment in UTC: 2026-05-01 12:00:05Z."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def size(size_bytes: float) -> str:
    """Bytes: 512 B, 45.3 KiB, 1.2 MiB, 3.4 GiB."""
    for unit in ("B", "KiB", "MiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} GiB"


def queue_in_words(queued: Mapping[str, int]) -> str:
    """URLs by their queue: 3 of hits, 12 of links, 1 again."""
    return ", ".join(
        f"{count} again" if name == "again" else f"{count} of {name}" for name, count in queued.items() if count
    )
