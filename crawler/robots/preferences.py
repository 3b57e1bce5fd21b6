"""Preferences on the use of content by AI: `Content-Usage` (AIPREF) and `Content-Signal`.

| name | where | values | source |
|---|---|---|---|
| Content-Usage | header; robots.txt, after a path | `train-ai=n, search=y` | draft-ietf-aipref-attach, -vocab |
| Content-Signal | robots.txt; header | `ai-train=no, search=yes` | contentsignals.org |

In robots.txt the lines of our group count, of each name those with the longest matching path; a line without a path is
for all. Words and values that no source defines are kept as they are, and mean nothing. Of several statements the most
restrictive one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from crawler.robots.path_patterns import PathPattern, target_of

NAMES = ("content-usage", "content-signal")
IN_HEADERS = "header:"  # how a signal of a response begins
LINES_CAP = 64  # lines of a group that are kept
WORDS_CAP = 16  # of a line or header
SIGNALS_CAP = 32  # of a page, and of a site
_LINE_CHARACTERS = 500
_REFUSABLE = frozenset({"train-ai", "ai-use", "ai-train", "ai-input"})  # uses that concern a reader of texts
_NOES = frozenset({"n", "no"})
# A key of a dictionary (RFC 9651 section 3.2), and its value without parameters
_WORD = re.compile(r"([a-z*][a-z0-9_.*-]{0,39})[ \t]*=[ \t]*([a-z0-9?_.-]{1,20})[ \t]*(?:;.*)?", re.DOTALL)


class Stated(NamedTuple):
    """A line of robots.txt. `pattern` is its path, "/" if it has none."""

    name: str
    pattern: str
    words: tuple[str, ...]


def words_of(value: str) -> Iterator[str]:
    """The preferences `use=value` of a list, lower case; what is no such word is left out."""
    latest = {}
    for part in value[:_LINE_CHARACTERS].lower().split(",", WORDS_CAP)[:WORDS_CAP]:
        word = _WORD.fullmatch(part.strip(" \t"))
        if word is not None:
            latest[word[1]] = word[2]  # of a key that comes twice, the last one (RFC 9651 section 4.2.2)
    return (f"{key}={value}" for key, value in latest.items())


def stated_in_line(name: str, value: str) -> Stated:
    """A `Content-Usage` or `Content-Signal` line of robots.txt."""
    pattern, preferences = "/", value
    if value.startswith(("/", "*")):
        pattern, _, preferences = value.replace("\t", " ").partition(" ")
    return Stated(name, pattern[:_LINE_CHARACTERS], tuple(words_of(preferences)))


def stated_in_headers(headers: Mapping[str, str]) -> list[str]:
    """The signals of a response, as `header:content-usage:train-ai=n`. `headers` has lower-case names."""
    return [f"{IN_HEADERS}{name}:{word}" for name in NAMES if name in headers for word in words_of(headers[name])]


class StatedRules:
    """The lines of one robots.txt for us. Immutable."""

    def __init__(self, lines: Iterable[Stated]) -> None:
        self._lines = [(PathPattern(line.pattern), line) for line in lines]

    def signals(self, url: str) -> list[str]:
        """The signals on a URL, as `robots.txt:content-usage:train-ai=n`."""
        if not self._lines:  # as on most sites
            return []
        found: dict[str, None] = {}
        target = target_of(url)
        for name in NAMES:
            matching = [entry for entry in self._lines if entry[1].name == name and entry[0].matches(target)]
            longest = max((pattern.octets for pattern, _ in matching), default=0)
            for pattern, line in matching:
                if pattern.octets == longest:
                    found.update((f"robots.txt:{name}:{word}", None) for word in line.words)
        return capped(found)


def capped(signals: Iterable[str]) -> list[str]:
    """Preferences, each once: SIGNALS_CAP of them, of more first those that are a no to a use by AI."""
    unique = list(dict.fromkeys(signals))
    if len(unique) > SIGNALS_CAP:
        unique.sort(key=lambda signal: not prefers_no([signal]))
    return unique[:SIGNALS_CAP]


def is_preference(signal: str) -> bool:
    """Whether a signal of a page is a preference, not an opt-out."""
    return "=" in signal


def prefers_no(signals: Iterable[str]) -> bool:
    """Whether one of these signals is a no to a use by AI."""
    words = (signal.rpartition(":")[2].partition("=") for signal in signals)
    return any(use in _REFUSABLE and value in _NOES for use, _, value in words)
