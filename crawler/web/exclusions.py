"""Exclusions: hosts that are never visited, by name or pattern.

| exclusion | covers |
|---|---|
| `www.example.com` | this host |
| `example.com`, a registrable domain | this host and all hosts below it |
| `*.blog.example.com`, `casino*` | each host that matches; `*` stands for any characters, dots included |
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from functools import lru_cache

from crawler.errors import UnusableUrl
from crawler.web.urls import site_of
from stream.text.registrable_domain import registrable_domain

_PATTERN = re.compile(r"[a-z0-9.*_-]{1,253}")
_HOSTS = 65_536  # answers remembered


def exclusion_of(named: str, *, is_new: bool = True) -> str:
    """An exclusion as the log spells it; a host may be given in capitals or as a URL. Raises UnusableUrl."""
    if "*" not in named:
        host = site_of(named if "://" in named else f"http://{named}/")
        if is_new and "." not in host and not host.startswith("[") and host != "localhost":  # a slip
            raise UnusableUrl("the name of a host has a dot")
        return host
    pattern = named.strip().lower().rstrip(".")  # no host of the crawl ends in a dot
    if not _PATTERN.fullmatch(pattern):
        raise UnusableUrl(f"a pattern has letters, digits, '.', '-', '_' and '*' only: {named[:200]!r}")
    return pattern


def is_boundless(exclusion: str) -> bool:
    """Whether a pattern matches hosts of more than one registrable domain."""
    *rest, tail = exclusion.split("*")
    if not rest:
        return False
    suffix = tail.removeprefix(".")
    return not tail.startswith(".") or registrable_domain(f"a.{suffix}") == f"a.{suffix}"


def reach_of(exclusion: str) -> str:
    """What an exclusion covers, in words."""
    if "*" in exclusion:
        return "each host that matches"
    return "the domain with all its hosts" if is_domain(exclusion) else "this host"


def is_domain(exclusion: str) -> bool:
    """Whether an exclusion without a * covers a domain with all its hosts."""
    return registrable_domain(f"a.{exclusion}") == exclusion


class Exclusions:
    """The exclusions in force."""

    def __init__(self, exclusions: Iterable[str] = ()) -> None:
        every = list(exclusions)
        self._names = frozenset(name for name in every if "*" not in name)
        patterns = [re.compile(fnmatch.translate(pattern)) for pattern in every if "*" in pattern]

        @lru_cache(_HOSTS)
        def covers(host: str) -> bool:
            return (
                host in self._names
                or registrable_domain(host) in self._names
                or any(pattern.match(host) for pattern in patterns)
            )

        self._covers = covers if every else lambda _: False

    def covers(self, host: str) -> bool:
        return self._covers(host)
