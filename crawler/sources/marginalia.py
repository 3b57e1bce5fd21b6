"""The Marginalia Search API (about.marginalia-search.com/article/api): an index of the small, old web."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

from crawler.sources.answer_parsing import JsonEngine, at_path
from crawler.sources.settings import MarginaliaSettings
from crawler.sources.source import Query, Results, SourceAnswer, SourceRequest

PUBLIC_KEY = "public"  # shared by all users without a key, often over its limit
_OVER = "over the limit of its key: ask for a key of your own, or lower search.marginalia.rate"
_MEANS = {
    401: "check the key",
    403: "the key is wrong or blocked; write to Marginalia, or unset it to use the shared one",
    429: _OVER,
    503: _OVER,
}


class Marginalia(JsonEngine):
    """Marginalia's results, under CC-BY-NC-SA unless the key is a commercial one."""

    name = "marginalia"
    key_is_optional = True
    _means = _MEANS

    def __init__(self, settings: MarginaliaSettings, key: str) -> None:
        super().__init__(settings, key or PUBLIC_KEY)

    def request(self, query: Query, page: int) -> SourceRequest:
        fields = {"query": query.text, "count": str(self._count), "page": str(page)}
        return SourceRequest(f"{self._url}?{urlencode(fields)}", secret_headers={"API-Key": self._key})

    def results(self, answer: SourceAnswer, page: int) -> Results:
        said, results = self.read(answer)
        pages = at_path(said, "pages")
        more = page < pages if isinstance(pages, int) else results.places >= self._count
        return replace(results, more=more and results.more)
