"""Values as TOML writes them, for messages about a TOML file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, time

_LONG = 60  # characters of a value that a message shows
_DEEP = 3  # lists or tables within each other
_LARGE = 1 << 200  # Python writes no integer of thousands of digits in decimal


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
