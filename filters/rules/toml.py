"""TOML written by users: a guard around the standard parser, and values of it in messages."""

from __future__ import annotations

import json
import tomllib
from typing import Any

_LONG = 60  # characters of a value that a message shows


class BadToml(ValueError):
    """The text is not TOML, or is too large; the parser's message names line and column."""


def read_toml(source: str, most_bytes: int) -> dict[str, Any]:
    """Parse a TOML text of at most `most_bytes` bytes. Raises BadToml, whatever the text."""
    if len(source.encode("utf-8", "surrogatepass")) > most_bytes:
        raise BadToml(f"larger than {most_bytes // 1024} KiB")
    try:
        return tomllib.loads(source)
    except (ValueError, RecursionError) as error:
        raise BadToml(f"not TOML: {error}") from None


def as_toml(value: object) -> str:
    """A value of the TOML parser for a message: one line, without characters that steer a terminal."""
    try:
        return printable(json.dumps(value, ensure_ascii=False, default=str), _LONG)
    except (ValueError, RecursionError):  # an integer of thousands of digits, or lists within lists
        return "…"


def printable(text: str, longest: int) -> str:
    """The text with its other characters escaped; a long one is cut and ends in "…"."""
    shown = "".join([c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:longest]])
    return shown if len(text) <= longest else f"{shown}…"
