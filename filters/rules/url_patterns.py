r"""Patterns that tell kinds of URL: regular expressions of RE2, whose time is linear in the URL.

Python's own regular expressions take exponential time for some pairs of pattern and URL, and a site chooses its URLs:
one page could stop a stage for good. For the same reason RE2 has no lookaround and no backreferences; \d, \w, \s and \b
mean ASCII. Case is ignored in every script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from filters.rules.toml import printable

MOST_BYTES = 1 << 20  # memory of one pattern; bounds the time of a search too: some 10 ms for 500 characters
OTHER = "other"  # the kind of a URL in which no pattern is found
_ANY_URL = "/\x01"  # what no pattern looks for


class BadPattern(ValueError):
    """A text is no pattern; the message says why."""


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
        raise BadPattern("is found in every URL, since it matches the empty text; to match the rest write '.'")
    return pattern


def any_of(patterns: Sequence[UrlPattern]) -> UrlPattern | None:
    """A pattern found where one of these is, so that most URLs take one search; None for too few or too many."""
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
        said = error.args[0]  # bytes
        raise BadPattern(f"cannot be used in RE2: {printable(said.decode('utf-8', 'replace'), 60)}") from None
