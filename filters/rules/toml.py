"""TOML written by users: a guard before the standard parser, and values as TOML writes them, for messages."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from datetime import date, time
from typing import Any

DEEPEST = 32
"""Deepest nesting of lists and tables, and most parts of a dotted key (the parser's memory grows with their square)."""

_PIECE = re.compile(  # a string without an end goes to the end of its line, or of the text: each is read once
    r'"""(?:\\.|[^\\])*?(?:"{3,5}|\\?\Z)'
    r"|'''.*?(?:'{3,5}|\Z)"
    r'|"(?:\\[^\n]|[^"\\\n])*"?'
    r"|'[^'\n]*'?"
    r"|\#[^\n]*"
    r"|[\[\]{}.,=\n]",
    re.DOTALL,
)
_NESTS = {"[": 1, "{": 1, "]": -1, "}": -1}
_BETWEEN_KEYS = frozenset("[]{},=\n")
_LONG = 60  # characters of a value that a message shows
_DEEP = 3  # lists or tables within each other that a message shows
_LARGE = 1 << 200  # Python writes no integer of thousands of digits in decimal


class BadToml(ValueError):
    """The text is not TOML, or would cost the parser too much; the parser's message names line and column."""


def read_toml(source: str, most_bytes: int) -> dict[str, Any]:
    """Parse a TOML text of at most `most_bytes` bytes. Raises BadToml, whatever the text."""
    if len(source.encode("utf-8", "surrogatepass")) > most_bytes:
        raise BadToml(f"larger than {most_bytes // 1024} KiB")
    if _too_deep(source):
        raise BadToml("lists, tables or the parts of a key are nested too deep")
    try:
        return tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise BadToml(f"not TOML: {error}") from None
    except ValueError:  # of Python's integers
        raise BadToml("not TOML: a number has thousands of digits") from None


def _too_deep(source: str) -> bool:
    depth, parts = 0, 1
    for match in _PIECE.finditer(source):
        piece = match.group()
        if piece == ".":
            parts += 1
        elif piece in _BETWEEN_KEYS:
            parts = 1
        depth = max(0, depth + _NESTS.get(piece, 0))
        if max(depth, parts) > DEEPEST:
            return True
    return False


def as_toml(value: object) -> str:
    """A value of the TOML parser as a file may have it, in one line; what is long or deep ends in "…".

    Characters that do not print are escaped: a message must not steer the terminal.
    """
    text = _written(value, _DEEP)
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"


def _written(value: object, deep: int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if -_LARGE < value < _LARGE else hex(value)
    if isinstance(value, str):
        return _quoted(value[:_LONG])
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, list | Mapping) and value and not deep:
        return "…"
    if isinstance(value, list):
        return "[" + ", ".join([_written(item, deep - 1) for item in value[:_LONG]]) + "]"
    if isinstance(value, Mapping):
        items = list(value.items())[:_LONG]
        return "{" + ", ".join([f"{_key(key)} = {_written(item, deep - 1)}" for key, item in items]) + "}"
    return str(value)


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("_", "a").replace("-", "a").isalnum()
    return key if bare else _quoted(key)


def _quoted(text: str) -> str:
    return "".join([c if c.isprintable() else _escaped(c) for c in json.dumps(text, ensure_ascii=False)])


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"
