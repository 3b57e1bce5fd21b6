"""Ids from users: texts, or whole numbers, which are read as texts."""

from __future__ import annotations

import msgspec

Ident = str | int
"""The type of an id in a JSON line; `str` gives its text."""


def ident_of(value: object) -> str:
    """An id as text. Raises ValueError for any other value; its text ends a sentence."""
    try:
        return str(msgspec.convert(value, Ident))
    except msgspec.ValidationError:
        shown = str(value)[:40]
        raise ValueError(f"is {shown!r}, neither a text nor a whole number") from None
