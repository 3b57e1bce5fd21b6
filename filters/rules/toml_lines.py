"""TOML of users: a guard before the standard parser, and where in a text a value stands, which that does not tell.

The beginning of a TOML text, cut between two statements, is TOML too. So a path is brought by the statement at which
the beginnings start to have it, and halving takes few parses. Tables, dotted keys, inline tables and quoted keys need
no code of their own: the parser that reads the file finds them.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

DEEPEST = 32
"""Lists and tables within each other, and parts of a dotted key, of which the parser's memory is the square."""

_AT_LINE = re.compile(r"at line (\d+)")
_PIECE = re.compile(  # a string without an end goes to the end of its line, or of the text: each is read once
    r'"""(?:\\.|[^\\])*?(?:"{3,5}|\\?\Z)'
    r"|'''.*?(?:'{3,5}|\Z)"
    r'|"(?:\\[^\n]|[^"\\\n])*"?'
    r"|'[^'\n]*'?"
    r"|\#[^\n]*"
    r"|[\[\]{}.,=\n]",
    re.DOTALL,
)


class BadToml(ValueError):
    """A text that is no TOML, or that would cost the parser too much. `line` is where (from 1); 0 = not known."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


def read_toml(source: str, most_bytes: int) -> dict[str, Any]:
    """The tables of a TOML text of at most so many bytes. Raises BadToml, whatever the text."""
    if len(source.encode("utf-8", "surrogatepass")) > most_bytes:
        raise BadToml(f"larger than {most_bytes // 1024} KiB")
    if line := _too_deep(source):
        raise BadToml("lists, tables or the parts of a key are nested too deep", line)
    try:
        return tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise BadToml(f"not TOML: {error}", line_of_error(error, source)) from None
    except ValueError:  # of Python's integers
        raise BadToml("not TOML: a number has thousands of digits") from None


def _too_deep(source: str) -> int:
    """First line (from 1) that nests lists, tables or a dotted key deeper than DEEPEST; 0 where none does."""
    depth, parts, line = 0, 1, 1
    for piece in _pieces(source):
        if piece == ".":
            parts += 1
        elif piece in _BETWEEN:
            parts = 1
        depth = max(0, depth + _NESTS.get(piece, 0))
        if max(depth, parts) > DEEPEST:
            return line
        line += piece.count("\n")
    return 0


def line_of(source: str, path: Sequence[str]) -> int:
    """First line (from 1) of the statement that brings the key `path`; 0 where none does. `source` has to be TOML.

    A table's line is its header, or the first statement that writes into it.
    """
    lines = source.replace("\r\n", "\n").split("\n")
    ends = _ends(source)
    place = bisect_left(ends, True, key=lambda end: _has(tomllib.loads("\n".join(lines[:end])), path))
    if place == len(ends):
        return 0
    return (ends[place - 1] if place else 0) + 1


def line_of_item(source: str, path: Sequence[str], item: str) -> int:
    """Line of a text in the list at `path`: the first from there that has it in quotes, or that of the list."""
    start = line_of(source, path)
    written = (f'"{item}"', f"'{item}'")
    rest = source.replace("\r\n", "\n").split("\n")[max(0, start - 1) :]
    return next((number for number, line in enumerate(rest, start) if any(text in line for text in written)), start)


def line_of_error(error: tomllib.TOMLDecodeError, source: str) -> int:
    """Line that an error of the TOML parser speaks of; the last where it names none."""
    found = _AT_LINE.search(str(error))
    return int(found.group(1)) if found else len(source.splitlines())


_NESTS = {"[": 1, "{": 1, "]": -1, "}": -1}
_BETWEEN = frozenset("[]{},=\n")  # what stands between two keys


def _pieces(source: str) -> Iterator[str]:
    """Strings and comments whole, and the marks outside of them."""
    return (piece.group() for piece in _PIECE.finditer(source))


def _ends(source: str) -> list[int]:
    """The lines at which no statement goes on, the last line among them."""
    ends, depth, line = [], 0, 1
    for piece in _pieces(source):
        if piece == "\n" and not depth:
            ends.append(line)
        depth += _NESTS.get(piece, 0)
        line += piece.count("\n")
    return [*ends, line]


def _has(content: object, path: Sequence[str]) -> bool:
    for key in path:
        if not isinstance(content, Mapping) or key not in content:
            return False
        content = content[key]
    return True
