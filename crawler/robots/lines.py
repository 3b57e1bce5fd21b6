"""The lines of a robots.txt, and the group that applies to us (RFC 9309 sections 2.1, 2.2.1 and 2.2.4).

Compares octets, as the RFC does: bytes that are no UTF-8 become lone surrogates. Lines end with CR, LF or both. Clear
mistakes are accepted, as by Google's parser and protego: a misspelled `Disallow`, a missing colon, a version after our
name. Unknown lines, `Sitemap` and `Crawl-delay` end no group (section 2.2.4).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from crawler.robots.preferences import LINES_CAP, Stated, stated_in_line

ROBOTS_CAP_BYTES = 500 * 1024
DELAY_MOST_S = 1e9  # longer Crawl-delays are cut to this
SITEMAPS_CAP = 1000  # `Sitemap:` lines that are kept


class Key(enum.Enum):
    """The subject of a line."""

    AGENT = "user-agent"
    ALLOW = "allow"
    DISALLOW = "disallow"
    DELAY = "crawl-delay"
    SITEMAP = "sitemap"
    USAGE = "content-usage"
    SIGNAL = "content-signal"


class Line(NamedTuple):
    """A meaningful line. `number` counts from 1."""

    number: int
    key: Key
    value: str


class RobotsRule(NamedTuple):
    """An `Allow` or `Disallow` line of our group, with the pattern as written."""

    number: int
    allow: bool
    pattern: str


@dataclass(slots=True, eq=False)
class RobotsGroup:
    """The rules for us: of all groups that name us, or else of all that name `*`."""

    agents: list[Line] = field(default_factory=list)  # the lines that name us
    rules: list[RobotsRule] = field(default_factory=list)
    delay_s: float = 0.0  # the longest one for us
    delay_line: Line | None = None  # that asks for it
    stated: list[Stated] = field(default_factory=list)  # preferences on the use of content


_KEYS = {
    **dict.fromkeys(("user-agent", "useragent", "user agent"), Key.AGENT),
    **dict.fromkeys(("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"), Key.DISALLOW),
    **dict.fromkeys(("crawl-delay", "crawldelay", "crawl delay"), Key.DELAY),
    **dict.fromkeys(("sitemap", "sitemaps", "site-map"), Key.SITEMAP),
    "allow": Key.ALLOW,
    "content-usage": Key.USAGE,
    **dict.fromkeys(("content-signal", "content-signals"), Key.SIGNAL),
}
_EOL = re.compile(r"\r\n?|\n")
_TOKEN = re.compile(r"[a-z_-]+")
# `inf` and powers of ten are long delays, not invalid ones; without a unit it is seconds
_DELAY = re.compile(
    r"(\+?(?:(?:[0-9]{1,400}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:e[+-]?[0-9]{1,4})?|inf(?:inity)?\b))"
    r"[ \t]*(?:(?:(ms|milliseconds?|msecs?)|(m|mins?|minutes?)|(h|hrs?|hours?))\b)?",
    re.IGNORECASE,
)


def lines_of(text: bytes) -> Iterator[Line]:
    """The lines of the first 500 KiB; a line that the cap may have cut is dropped, because its rule may be longer."""
    cut = len(text) >= ROBOTS_CAP_BYTES
    decoded = text[:ROBOTS_CAP_BYTES].decode("utf-8", "surrogateescape").replace("\0", "")
    # A byte order mark, also of UTF-16: without its zeros such a text is readable
    start = re.match("\ufeff|\udcff\udcfe|\udcfe\udcff|\udcef(?:\udcbb\udcbf?)?", decoded)
    lines = _EOL.split(decoded[start.end() :] if start else decoded)
    if cut:
        del lines[-1]
    for number, line in enumerate(lines, 1):
        stripped = line.partition("#")[0].strip(" \t")
        if stripped:
            pair = _key_and_value(stripped)
            if pair is not None:
                yield Line(number, *pair)


def group_of(lines: Iterator[Line] | list[Line], agent: str) -> tuple[RobotsGroup, list[Line]]:
    """Our group and the `Sitemap` lines. `agent` is our product token; case does not matter."""
    ours, everyone = RobotsGroup(), RobotsGroup()
    named = {agent.lower(): ours, "*": everyone}
    bound: list[RobotsGroup] = []
    begun = False  # whether the group has a rule, so that the next user agent begins a new group
    sitemaps: list[Line] = []
    for line in lines:
        if line.key is Key.AGENT:
            if begun:
                bound, begun = [], False
            group = named.get(_token(line.value))
            if group is not None:
                group.agents.append(line)
                if group not in bound:
                    bound.append(group)
        elif line.key is Key.SITEMAP:
            if len(sitemaps) < SITEMAPS_CAP and line.value:
                sitemaps.append(line)
        elif line.key is Key.DELAY:
            seconds = _delay_s(line.value)
            for group in bound:
                if seconds > group.delay_s:
                    group.delay_s, group.delay_line = seconds, line
        elif line.key in (Key.USAGE, Key.SIGNAL):
            begun |= line.key is Key.USAGE  # it is a rule by draft-ietf-aipref-attach
            for group in bound:
                if len(group.stated) < LINES_CAP:
                    group.stated.append(stated_in_line(line.key.value, line.value))
        else:
            begun = True
            if line.value:
                rule = RobotsRule(line.number, line.key is Key.ALLOW, line.value)
                for group in bound:
                    group.rules.append(rule)
    return (ours if ours.agents else everyone), sitemaps


def _key_and_value(line: str) -> tuple[Key, str] | None:
    name, colon, value = line.partition(":")
    key = _KEYS.get(name.strip(" \t").lower()) if colon else None
    if key is not None:
        return key, value.strip(" \t")
    words = line.split(None, 2)  # without the colon
    for count in (1, 2):
        key = _KEYS.get(" ".join(words[:count]).lower())
        if key is not None and len(words) > count:
            return key, line.split(None, count)[count]
    return None


def _delay_s(value: str) -> float:
    """The seconds of a `Crawl-delay`, as in `2`, `0.5`, `500ms` or `1 min`; 0 if it is invalid."""
    found = _DELAY.match(value)
    if found is None:
        return 0.0
    number, milliseconds, minutes, hours = found.groups()
    unit_s = 0.001 if milliseconds else 60 if minutes else 3600 if hours else 1
    return min(float(number) * unit_s, DELAY_MOST_S)


def _token(value: str) -> str:
    """The product token at the start of a `User-agent` value, lower case; `*` for everyone, "" for none."""
    lower = value.lower()
    if lower.startswith("*") and (len(lower) == 1 or lower[1].isspace()):
        return "*"
    token = _TOKEN.match(lower.lstrip("*"))
    return token[0] if token else ""
