r"""URL patterns, to tell kinds of URL: regular expressions of RE2, linear in the length of the URL.

Python's regular expressions take exponential time for some pairs of pattern and URL, and sites choose their URLs: one
page could stop a stage for good. RE2 therefore has no lookaround and no backreferences; \d, \w, \s and \b match ASCII.
Patterns ignore case in every script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stream.text.toml import printable

MOST_BYTES = 1 << 20  # memory of one pattern; also bounds a search to some 10 ms per 500 characters
OTHER = "other"  # the kind of a URL that no pattern matches
_ANY_URL = "/\x01"  # only a pattern that matches every URL matches this


class BadPattern(ValueError):
    """A text is not a valid pattern; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class UrlPattern:
    """A compiled pattern; patterns with the same text are equal."""

    text: str
    _compiled: Any = field(compare=False, repr=False)

    def find(self, path: str) -> str | None:
        """The first match in path and query (may be ""); None without a match. Never raises."""
        match = self._compiled.search(path.encode("utf-8", "surrogatepass"))
        return None if match is None else match.group().decode("utf-8", "replace")


def compile_pattern(text: str) -> UrlPattern:
    """Compile a pattern that ignores case. Raises BadPattern, also for a pattern that matches every URL."""
    pattern = _compiled(text, MOST_BYTES)
    if pattern.find("") is not None and pattern.find(_ANY_URL) is not None:
        raise BadPattern("matches every URL, because it matches the empty text; to match the rest write '.'")
    return pattern


def any_of(patterns: Sequence[UrlPattern]) -> UrlPattern | None:
    """One pattern that matches if any of these does: most URLs take one search. None for too few or too many."""
    if len(patterns) < 2 or any(r"\Q" in pattern.text for pattern in patterns):
        return None
    try:
        return _compiled("|".join(f"(?:{pattern.text})" for pattern in patterns), MOST_BYTES * len(patterns))
    except BadPattern:
        return None


def _compiled(text: str, most_bytes: int) -> UrlPattern:
    import re2  # only needed if a ruleset has patterns

    options = re2.Options()
    options.case_sensitive = False
    options.never_capture = True
    options.log_errors = False
    options.max_mem = most_bytes
    try:
        return UrlPattern(text, re2.compile(text.encode("utf-8", "surrogatepass"), options))
    except re2.error as error:
        said = error.args[0]  # bytes
        raise BadPattern(f"cannot be used in RE2: {printable(said.decode('utf-8', 'replace'), 60)}") from None
