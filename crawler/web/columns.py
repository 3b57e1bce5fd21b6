"""The columns of a file of hits or queries, by the names that search tools give them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from crawler.errors import CrawlError

Names = Mapping[str, Sequence[str]]  # field -> further names of its column, the best first

HIT_NAMES: Names = {
    "url": (
        "link",
        "landing page",
        "page",
        "address",
        "current url",
        "ranking url",
        "result url",
        "page url",
        "top pages",
    ),
    "query": ("keyword", "search term", "search query", "term", "phrase", "top queries"),
    "rank": ("position", "current position", "rank absolute", "average position", "avg position"),
    "engine": ("search engine",),
    "fetched_at": ("timestamp", "date", "time", "datetime", "current date", "updated", "last update"),
    "title": ("page title",),
    "snippet": ("description",),
    **dict.fromkeys(("query_id", "source", "result_page"), ()),
}
QUERY_NAMES: Names = {"query": HIT_NAMES["query"], **dict.fromkeys(("query_id", "language", "country"), ())}
_UNUSED_CAP = 100  # names kept of columns that are not used
_SIGNS = re.compile(r"[\W_]+")


class UnknownColumn(CrawlError):
    """A file has no column of a name that was given."""


class FileColumns:
    """Which columns of one file are fields, and which are not used. Case, spaces and signs of names do not matter."""

    def __init__(self, needed: str, names: Names, given: Mapping[str, str] | None = None) -> None:
        """`needed`: the field that each record has. `given`: field -> name of its only column; "" = it has none."""
        self.needed = needed
        self.needed_name = (given or {}).get(needed, needed)
        self.used: dict[str, str] = {}  # field -> name of its column
        self.unused: dict[str, None] = {}
        self.left_out: Counter[str] = Counter()  # field -> values that it cannot have
        self._given = given or {}
        every = {field: [self._given[field]] if field in self._given else [field, *names[field]] for field in names}
        self._names = {field: [_plain(name) for name in of_field if name] for field, of_field in every.items()}
        self._header: tuple[str, ...] = ()
        self._of_header: dict[str, str] = {}

    @property
    def guessed(self) -> dict[str, str]:
        """Field -> name of its column, where it is neither the field's own nor a given one."""
        used = self.used.items()
        return {field: name for field, name in used if field not in self._given and _plain(name) != _plain(field)}

    def is_needed(self, name: str) -> bool:
        """Whether a column of this name has the needed field."""
        return _plain(name) in self._names[self.needed]

    def fields(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a record. Raises UnknownColumn if the first one lacks a column of a given name."""
        if (header := tuple(record)) != self._header:
            by_plain = {_plain(name): name for name in reversed(header)}
            found = {
                field: next((by_plain[name] for name in names if name in by_plain), None)
                for field, names in self._names.items()
            }
            for field, name in self._given.items():
                if name and not found[field] and not self._header:
                    raise UnknownColumn(f"there is no column {name!r} for {field}: it has {', '.join(header)[:400]}")
            self._header, self._of_header = header, {field: name for field, name in found.items() if name is not None}
            self.used |= self._of_header
            unused = (name for name in header if name not in self._of_header.values())
            self.unused |= dict.fromkeys(list(unused)[: _UNUSED_CAP - len(self.unused)])
        return {field: record[name] for field, name in self._of_header.items()}


def _plain(name: str) -> str:
    return _SIGNS.sub("", name.lower())
