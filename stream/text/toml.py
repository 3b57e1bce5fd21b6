"""Reads TOML of users with a size limit, and formats its values for messages."""

from __future__ import annotations

import json
import re
import tomllib
from datetime import date, time
from typing import Any

_LONG = 60  # characters of a value in a message
_LONG_KEY = re.compile(  # 32 parts; the parser's time and memory are the square of the parts
    r"""(?m)(?:^|[\[{,])[ \t]*(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){32}"""
)


class BadToml(ValueError):
    """The text is not TOML, or is too large; the parser's message names line and column."""


def read_toml(source: str, most_bytes: int) -> dict[str, Any]:
    """Parse a TOML text of at most `most_bytes` bytes. Raises only BadToml."""
    if len(source.encode("utf-8", "surrogatepass")) > most_bytes:
        raise BadToml(f"larger than {most_bytes // 1024} KiB")
    if _LONG_KEY.search(source):
        raise BadToml("a dotted key has more than 32 parts")
    try:
        return tomllib.loads(source)
    except (ValueError, RecursionError) as error:
        raise BadToml(f"not TOML: {error}") from None


def as_toml(value: object) -> str:
    """A TOML value for a message: one line without control characters."""
    if isinstance(value, date | time):  # TOML has no quotes around them
        return value.isoformat()
    try:
        return printable(json.dumps(value, ensure_ascii=False, default=str), _LONG)
    except (ValueError, RecursionError):  # an integer of thousands of digits, or deeply nested lists
        return "…"


def quoted(text: str) -> str:
    """Any text as a TOML string, in one line."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def printable(text: str, longest: int) -> str:
    """The text with unprintable characters escaped; a long text is cut and ends in "…"."""
    shown = "".join([c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:longest]])
    return shown if len(text) <= longest else f"{shown}…"
