"""The Mojeek Search API (mojeek.com/support/api/search): its own index."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

from crawler.sources.answer_parsing import JsonEngine, at_path, text_of
from crawler.sources.source import Query, QuotaSpent, Results, SourceAnswer, SourceRefused, SourceRequest
from crawler.sources.usage import next_month_s
from stream.text.times import DAY_S

_MEANS = {
    401: "check the key",
    403: "the key is wrong, has ended, or is not allowed from this address: see Mojeek's dashboard",
    429: "more requests than the plan allows: lower search.mojeek.rate",
}
_BOOST = "10"  # of results in the wanted language or country, as Mojeek recommends


class Mojeek(JsonEngine):
    """Mojeek's web results. The key is a parameter, and so a secret part of the URL."""

    name = "mojeek"
    _means = _MEANS
    _items = "response.results"
    _paths = ("url", "title", "desc")
    pages_cap = 100

    def request(self, query: Query, page: int) -> SourceRequest:
        fields = {"q": query.text, "fmt": "json", "t": str(self._count), "s": str((page - 1) * self._count + 1)}
        if query.language:
            fields |= {"lb": query.language.upper(), "lbb": _BOOST}
        if query.country:
            fields |= {"rb": query.country.upper(), "rbb": _BOOST}
        return SourceRequest(f"{self._url}?{urlencode(fields)}", secret_params={"api_key": self._key})

    def results(self, answer: SourceAnswer, page: int) -> Results:
        # Errors also come with status 200
        reply, results = self.read(answer)
        status = text_of(at_path(reply, "response.status"))
        if status.upper().startswith("ERROR"):
            said = f"mojeek says {status.replace(self._key, '********')[:100]!r}"
            if "month" in status.lower():
                raise QuotaSpent(said, next_month_s(answer.at_s) - answer.at_s)
            if "limit" in status.lower():
                raise QuotaSpent(said, DAY_S - answer.at_s % DAY_S)
            raise SourceRefused(f"{said}: check the key and the plan")
        total = at_path(reply, "response.head.results")
        return replace(results, more=results.more and (not isinstance(total, int) or total > page * self._count))
