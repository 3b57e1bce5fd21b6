"""Small pieces of messages: counts with nouns, and text on one line."""

from __future__ import annotations

from typing import Any


def one_line(cell: Any) -> str:
    """A cell, or any data of a page, as text without control characters: it must not steer the operator's terminal."""
    if cell is None:
        return "-"
    text = f"{cell:.4g}" if isinstance(cell, float) else str(cell)
    return "".join(character if character.isprintable() else " " for character in text)


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 hit, 2,000 hits."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
