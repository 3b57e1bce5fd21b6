"""Any search that answers a GET with JSON; the settings say where its fields are."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from crawler.sources.answer_parsing import JsonEngine, at_path, text_of
from crawler.sources.settings import JsonHttpSettings
from crawler.sources.source import (
    Query,
    QueryRefused,
    Results,
    SearchResult,
    Source,
    SourceAnswer,
    SourceRefused,
    SourceRequest,
)

_FIELD = re.compile(r"\{(query|page|offset|count|language|country)\}")

_KEYS_CAP = 12  # that are named


class JsonHttp(JsonEngine):
    """The source of a table [search.json_http.NAME]."""

    def __init__(self, name: str, settings: JsonHttpSettings, key: str) -> None:
        Source.__init__(self, key)
        self.key_is_optional = not (settings.key_env or settings.key_file)
        self.name = name
        self.pages_cap = 100 if settings.can_page else 1
        self._settings = settings
        self._items = settings.items
        self._paths = (settings.item_url, settings.title, settings.snippet)
        self._header = {settings.key_header: settings.key_prefix + key} if settings.key_header and key else {}
        self._param = {settings.key_param: key} if settings.key_param and key else {}
        self._means = {
            401: "check the key",
            403: f"the key is wrong, or lacks the right: search.{self._table} says how it is sent",
        }

    @property
    def _table(self) -> str:
        return f"json_http.{self.name}"

    def request(self, query: Query, page: int) -> SourceRequest:
        settings = self._settings
        values = {
            "query": query.text,
            "page": str(page - 1 + settings.first_page),
            "offset": str((page - 1) * settings.count),
            "count": str(settings.count),
            "language": query.language,
            "country": query.country,
        }
        url = _FIELD.sub(lambda field: quote(values[field[1]], safe=""), settings.url)
        return SourceRequest(url, {"Accept": "application/json", **settings.headers}, self._header, self._param)

    def results(self, answer: SourceAnswer, page: int) -> Results:  # noqa: ARG002 - the answer says all
        said, results = self.read(answer)
        error = text_of(str(at_path(said, self._settings.error) or "")) if self._settings.error else ""
        if error.upper() not in ("", "OK"):
            shown = error.replace(self._key, "********") if self._key else error
            raise SourceRefused(f"{self.name} says {shown[:100]!r}: check the key and the plan")
        items = at_path(said, self._items)
        if items is None:
            raise QueryRefused(f"search.{self._table}.items is {self._items!r}, and there is none; {_keys(said)}")
        if results.bad and not results.found:
            why = f"{results.bad[0]}; {_keys(items[0])}"
            raise QueryRefused(f"no result can be used: {why}: check search.{self._table}.item_url")
        return replace(results, more=results.more and self._settings.can_page)

    def _item(self, item: dict[str, Any], place: int) -> SearchResult:
        settings = self._settings
        rank = at_path(item, settings.rank) if settings.rank else place
        if isinstance(rank, str) and rank.isascii() and rank.isdigit():
            rank = int(rank[:9])
        if not isinstance(rank, int) or isinstance(rank, bool) or not 0 < rank < 2**31:
            raise ValueError(f"has no rank at {settings.rank!r}")
        return super()._item(item, rank)


def _keys(value: Any) -> str:
    if not isinstance(value, dict):
        return "what is there is no object"
    return f"there are {', '.join(text_of(name)[:40] for name in list(value)[:_KEYS_CAP]) or 'no names'}"
