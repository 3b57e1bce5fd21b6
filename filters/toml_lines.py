"""Where in a TOML text a value stands: the standard parser does not tell.

The beginning of a TOML text, cut between two statements, is TOML too; cut within one it is not. So a path is brought by
the statement at which the beginnings start to have it. Tables, dotted keys, inline tables and quoted keys need no code
of their own: the parser that reads the file finds them, and halving takes few parses.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping, Sequence

_AT_LINE = re.compile(r"at line (\d+)")


def line_of(source: str, path: Sequence[str]) -> int:
    """First line (from 1) of the statement that brings the key `path`; 0 where none does. `source` has to be TOML.

    A table's line is its header, or the first statement that writes into it.
    """
    lines = source.replace("\r\n", "\n").split("\n")
    known: dict[int, bool] = {len(lines) + 1: False}  # of lines; a statement of many is not parsed anew for each

    def brought(line: int) -> bool:
        """The statement that the line belongs to, or one before it, brings the path."""
        end = line
        while end not in known:
            try:
                known[end] = _has(tomllib.loads("\n".join(lines[:end])), path)
            except tomllib.TOMLDecodeError:
                end += 1  # cut within a statement
        known.update(dict.fromkeys(range(line, end), known[end]))
        return known[end]

    number = bisect_left(range(len(lines) + 1), True, key=brought)
    return 0 if number > len(lines) else number


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


def _has(content: object, path: Sequence[str]) -> bool:
    for key in path:
        if not isinstance(content, Mapping) or key not in content:
            return False
        content = content[key]
    return True
