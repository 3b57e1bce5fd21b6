"""The Brave Web Search API (api.search.brave.com/app/documentation/web-search): its own index, 20 results a page."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

from crawler.sources.answer_parsing import JsonEngine, at_path, whole_number
from crawler.sources.source import Query, QueryRefused, Results, SourceAnswer, SourceRefused, SourceRequest

_MEANS = {
    401: "check the key",
    402: "the credit of the plan is spent",
    403: "the plan of this key does not have web search: choose one in Brave's dashboard",
    429: "more requests than the plan allows: lower search.brave.rate, or the month's quota is spent",
}
_KEY_WRONG = b"SUBSCRIPTION_TOKEN_INVALID"  # an error code
_TEXT_CAP, _WORDS_CAP = 400, 50  # of a query
_MONTH_LEAST_S = 86_400  # a window at least so long is a quota, a shorter one a rate


class Brave(JsonEngine):
    """Brave's web results. Its `offset` counts result pages, 0 to 9."""

    name = "brave"
    _means = _MEANS
    _items = "web.results"

    def request(self, query: Query, page: int) -> SourceRequest:
        if len(query.text) > _TEXT_CAP or len(query.text.split()) > _WORDS_CAP:
            raise QueryRefused(f"brave takes queries of {_TEXT_CAP} characters and {_WORDS_CAP} words at most")
        fields = {"q": query.text, "count": str(self._count), "offset": str(page - 1), "result_filter": "web"}
        if query.language:
            fields["search_lang"] = query.language.lower()
        if query.country:
            fields["country"] = query.country.upper()
        secret = {"X-Subscription-Token": self._key}
        return SourceRequest(f"{self._url}?{urlencode(fields)}", {"Accept": "application/json"}, secret)

    def results(self, answer: SourceAnswer, page: int) -> Results:
        if answer.status == 422 and _KEY_WRONG in answer.body:
            raise SourceRefused("brave answers 422: it does not know the key (X-Subscription-Token)")
        said, results = self.read(answer)
        left, reset_s = _quota(answer)
        more = at_path(said, "query.more_results_available") is not False and page < self.pages_cap
        return replace(results, more=more and results.more, left=left, reset_s=reset_s)


def _quota(answer: SourceAnswer) -> tuple[int | None, float]:
    """Requests left and seconds until they renew, of the longest window in X-RateLimit-*; None if it is only a rate.

    The headers are lists with one entry per window: `X-RateLimit-Policy: 1;w=1, 15000;w=2592000`.
    """
    policies = [part.strip() for part in answer.headers.get("x-ratelimit-policy", "").split(",")]
    windows = [whole_number(policy.partition("w=")[2].partition(";")[0]) or 0 for policy in policies]
    longest = max(range(len(windows)), key=windows.__getitem__)
    left = [whole_number(part.partition(";")[0]) for part in answer.headers.get("x-ratelimit-remaining", "").split(",")]
    reset = [whole_number(part.partition(";")[0]) for part in answer.headers.get("x-ratelimit-reset", "").split(",")]
    limit = whole_number(policies[longest].partition(";")[0])
    if windows[longest] < _MONTH_LEAST_S or not limit or longest >= min(len(left), len(reset)):
        return None, 0.0  # a limit of 0 is how plans without a monthly quota say so
    return left[longest], float(reset[longest] or 0)
