"""SearXNG's search API (docs.searxng.org/dev/search_api): one instance queries many engines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from crawler.sources.answer_parsing import JsonEngine, text_of
from crawler.sources.settings import SearxngSettings
from crawler.sources.source import Query, Results, SearchResult, Source, SourceAnswer, SourceRequest

_MEANS = {
    403: "JSON is off there by default: add `json` to search.formats in the instance's settings.yml",
    429: "the limiter of the instance takes this for a bot: allow this machine in its limiter.toml, or turn"
    " server.limiter off",
}
_ENGINES_CAP = 50


class Searxng(JsonEngine):
    """A SearXNG instance, which chooses the number of results per page."""

    name = "searxng"
    _means = _MEANS
    _paths = ("url", "title", "content")
    pages_cap = 100
    at_once = 2

    def __init__(self, settings: SearxngSettings, key: str = "") -> None:
        """A `key` is sent as a bearer token, for a proxy before the instance."""
        Source.__init__(self, key)
        self.key_is_optional = not (settings.key_env or settings.key_file)
        self._url = settings.url.rstrip("/").removesuffix("/search") + "/search"
        self._fixed = {
            name: ",".join(values)
            for name, values in (("engines", settings.engines), ("categories", settings.categories))
            if values
        }
        self._secret = {"Authorization": f"Bearer {key}"} if key else {}

    def request(self, query: Query, page: int) -> SourceRequest:
        language = f"{query.language}-{query.country}" if query.language and query.country else query.language
        fields = {"q": query.text, "format": "json", "pageno": str(page), **self._fixed}
        if language:
            fields["language"] = language
        return SourceRequest(f"{self._url}?{urlencode(fields)}", secret_headers=self._secret)

    def results(self, answer: SourceAnswer, page: int) -> Results:  # noqa: ARG002 - the answer says all
        said, results = self.read(answer)
        return replace(results, unresponsive=_unresponsive(said))

    def _item(self, item: dict[str, Any], place: int) -> SearchResult:
        engines = item.get("engines")
        named = [name for name in engines if isinstance(name, str)] if isinstance(engines, list) else []
        engine = ",".join(sorted(named)) or text_of(item.get("engine"))
        return replace(super()._item(item, place), engine=engine[:200])


def _unresponsive(said: Any) -> dict[str, str]:
    """Engine -> why it did not answer; empty if the field has another shape."""
    pairs = said.get("unresponsive_engines") if isinstance(said, dict) else None
    return {
        text_of(pair[0])[:64]: text_of(pair[1])[:100] if len(pair) > 1 else ""
        for pair in (pairs if isinstance(pairs, list) else ())[:_ENGINES_CAP]
        if isinstance(pair, list) and pair and isinstance(pair[0], str)
    }
