r"""Patterns that tell kinds of URL: regular expressions of RE2, which reads a URL once, whatever the two of them are.

A URL is whatever a site likes. Python's own regular expressions take exponential time for some pairs (`(a+)+$` and 40
times a), and one page would stop a stage for good. RE2 has no lookaround and no backreferences for that reason; \d, \w,
\s and \b mean ASCII; case is ignored in every script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MOST_BYTES = 1 << 20
"""Memory of one pattern; bounds the time of a search too (some ten milliseconds for a URL's 500 characters)."""

OTHER = "other"
"""The kind of a URL in which no pattern is found."""

_LONG = 60  # characters of an error that are shown
_ANY_URL = "/\x01"  # what no pattern looks for
_SYNTAX = {
    "invalid perl operator": "lookahead, lookbehind and the like are not part of RE2's syntax",
    "invalid escape sequence": "RE2 has no such escape, and no backreferences",
    "bad repetition operator": "RE2 has no possessive repetition",
    "pattern too large": "its repetitions need more than 1 MiB",
}


class BadPattern(ValueError):
    """A text is no pattern; the message says why, in words for the pattern's author."""


@dataclass(frozen=True, slots=True)
class UrlPattern:
    """A compiled pattern; equal to any of the same text."""

    text: str
    _compiled: Any = field(compare=False, repr=False)

    def find(self, path: str) -> str | None:
        """The first piece of path and query in which it is found, "" included; None where it is not. Never raises."""
        found = self._compiled.search(path.encode("utf-8", "surrogatepass"))
        return None if found is None else found.group().decode("utf-8", "replace")


def compile_pattern(text: str) -> UrlPattern:
    """Compile a pattern, case ignored. Raises BadPattern; also for one that matches the empty text, and so any URL."""
    pattern = _compiled(text, MOST_BYTES)
    if pattern.find("") is not None and pattern.find(_ANY_URL) is not None:
        raise BadPattern("is found in every URL, since it matches the empty text; for all that is left write '.'")
    return pattern


def any_of(patterns: Sequence[UrlPattern]) -> UrlPattern | None:
    """A pattern that is found where one of these is: most URLs have none, and one search says so.

    None where there is no such pattern: of less than two, of quotations that may be open, or of too many.
    """
    if len(patterns) < 2 or any(r"\Q" in pattern.text for pattern in patterns):
        return None
    try:
        return _compiled("|".join(f"(?:{pattern.text})" for pattern in patterns), MOST_BYTES * len(patterns))
    except BadPattern:
        return None


def _compiled(text: str, most_bytes: int) -> UrlPattern:
    import re2  # only where a ruleset has patterns

    options = re2.Options()
    options.case_sensitive = False
    options.never_capture = True
    options.log_errors = False
    options.max_mem = most_bytes
    try:
        return UrlPattern(text, re2.compile(text.encode("utf-8", "surrogatepass"), options))
    except re2.error as error:
        raise BadPattern(_reason(error)) from None


def _reason(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    shown = text if len(text) <= _LONG else text[:_LONG] + "…"
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
    words = next((words for beginning, words in _SYNTAX.items() if text.startswith(beginning)), "")
    return f"cannot be used: {shown}" + (f" ({words})" if words else "")
