"""Sources: requests as the APIs document them, and results from arbitrary answers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.sources.catalogue import SOURCES, configured, open_source, read_key, settings_for
from crawler.sources.settings import BraveSettings, JsonHttpSettings, SearchSettings, refuse_url
from crawler.sources.source import (
    BadAnswer,
    MissingKey,
    Query,
    QueryRefused,
    Source,
    SourceAnswer,
    SourceBusy,
    SourceError,
    SourceRefused,
)
from tests.support.paths import ROOT
from tests.support.web.search_engines import BRAVE, BRAVE_LIMITS, MARGINALIA, MOJEEK, SEARXNG

KEY = "s3cr3t-0f-the-test"
ENVIRONMENT = dict.fromkeys(("BRAVE_API_KEY", "MOJEEK_API_KEY", "MARGINALIA_API_KEY", "MINE_KEY"), KEY)
MINE = JsonHttpSettings(
    url="https://api.mine.example/v1?q={query}&from={offset}&n={count}&p={page}&hl={language}",
    items="data.items",
    item_url="link.href",
    title="name",
    snippet="parts.0.text",
    error="fault",
    rank="position",
    key_env="MINE_KEY",
    key_header="Authorization",
    key_prefix="Bearer ",
)


def _settings() -> SearchSettings:
    blank = SearchSettings()
    return replace(
        blank,
        searxng=replace(blank.searxng, url="http://127.0.0.1:8080/", engines=["mojeek", "brave"]),
        commoncrawl=replace(blank.commoncrawl, crawl="CC-MAIN-2024-33"),
        json_http={"mine": MINE},
    )


def _open(name: str) -> Source:
    return open_source(_settings(), name, ENVIRONMENT)


def _answer(value: Any, status: int = 200, **headers: Any) -> SourceAnswer:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return SourceAnswer(status, {name.replace("_", "-").lower(): text for name, text in headers.items()}, body, 1000.0)


QUERY = Query("q1", "garden & wall", "de", "at")
MINE_ITEMS = [
    {
        "link": {"href": "https://a.example/garden"},
        "name": "A garden",
        "parts": [{"text": "About one."}],
        "position": 1,
    },
    {"link": {"href": "https://b.example/"}, "name": "B", "parts": [], "position": "2"},
]
ANSWERS = {
    "searxng": SEARXNG,
    "brave": BRAVE,
    "mojeek": MOJEEK,
    "marginalia": MARGINALIA,
    "mine": {"data": {"items": MINE_ITEMS}},
}


@pytest.mark.parametrize(
    ("name", "page", "path", "fields"),
    [
        ("searxng", 2, "http://127.0.0.1:8080/search", "format=json&pageno=2&engines=mojeek,brave&language=de-at"),
        (
            "brave",
            2,
            "https://api.search.brave.com/res/v1/web/search",
            "count=20&offset=1&result_filter=web&search_lang=de&country=AT",
        ),
        ("mojeek", 1, "https://api.mojeek.com/search", "fmt=json&t=100"),
        ("marginalia", 2, "https://api2.marginalia-search.com/search", "count=20&page=2"),
        ("mine", 3, "https://api.mine.example/v1", "from=20&n=10&p=3&hl=de"),
    ],
)
def test_a_request_is_as_documented(name: str, page: int, path: str, fields: str) -> None:
    """Query, page, language and country are in the parameters of each API, quoted."""
    request = _open(name).request(QUERY, page)
    assert request.shown == path
    query = f"{'query' if name == 'marginalia' else 'q'}=garden+%26+wall&{fields}"
    assert parse_qs(urlsplit(request.url).query) == parse_qs(query)


def test_a_key_is_sent_where_the_api_wants_it_and_never_shown() -> None:
    """The key is in the header or parameter of the API; neither the URL nor the repr of a request shows it."""
    sent = {
        "brave": ("X-Subscription-Token", KEY),
        "marginalia": ("API-Key", KEY),
        "mine": ("Authorization", f"Bearer {KEY}"),
    }
    for name, (header, value) in sent.items():
        request = _open(name).request(QUERY, 1)
        assert request.secret_headers == {header: value}
        assert KEY not in request.url + repr(request)
    request = _open("mojeek").request(QUERY, 1)
    assert request.secret_params == {"api_key": KEY}
    assert KEY not in request.url + repr(request)


@pytest.mark.parametrize("name", ANSWERS)
def test_results_are_read_in_the_order_of_the_answer(name: str) -> None:
    """A result has the URL, title, snippet and rank of the documented answer."""
    results = _open(name).results(_answer(ANSWERS[name]), 1)
    assert [(found.url, found.rank, found.title) for found in results.found] == [
        ("https://a.example/garden", 1, "A garden"),
        ("https://b.example/", 2, "B"),
    ]
    assert results.found[0].snippet == "About one."
    assert (results.places, list(results.bad), results.more) == (
        2,
        [],
        name != "mojeek",
    )  # its recipe asks for one page


def test_searxng_names_the_engines_and_those_that_did_not_answer() -> None:
    """The engines of a result are stored together, sorted; unresponsive engines are stored with their reasons."""
    results = _open("searxng").results(_answer(SEARXNG), 1)
    assert [found.engine for found in results.found] == ["brave,mojeek", "brave"]
    assert results.unresponsive == {"duckduckgo": "timeout", "qwant": "access denied"}


def test_brave_tells_what_is_left_of_the_month() -> None:
    """Of the windows in Brave's headers, the longest is the quota; a window of seconds, or no header, is none."""
    brave = _open("brave")
    results = brave.results(_answer(BRAVE, 200, **BRAVE_LIMITS), 1)
    assert (results.left, results.reset_s) == (1234, 86400.0)
    assert brave.results(_answer(BRAVE), 1).left is None
    rate_only = {"X_RateLimit_Policy": "50;w=1", "X_RateLimit_Remaining": "49", "X_RateLimit_Reset": "1"}
    assert brave.results(_answer(BRAVE, 200, **rate_only), 1).left is None
    unlimited = {**BRAVE_LIMITS, "X_RateLimit_Policy": "50;w=1, 0;w=2592000", "X_RateLimit_Remaining": "49, 0"}
    assert brave.results(_answer(BRAVE, 200, **unlimited), 1).left is None


def test_brave_stops_at_its_tenth_page_and_where_it_says_so() -> None:
    """`offset` goes to 9 at most; `more_results_available: false` ends a query earlier."""
    brave = _open("brave")
    assert brave.pages_cap == 10
    last = {**BRAVE, "query": {"more_results_available": False}}
    assert not brave.results(_answer(last), 1).more
    with pytest.raises(QueryRefused, match="400 characters"):
        brave.request(Query("q", "x" * 401), 1)


@pytest.mark.parametrize(
    ("name", "status", "body", "kind", "said"),
    [
        ("searxng", 403, b"Forbidden", SourceRefused, "search.formats"),
        ("searxng", 429, b"", SourceBusy, "limiter"),
        ("searxng", 502, b"", SourceBusy, "overloaded"),
        ("searxng", 200, b"<!doctype html>", BadAnswer, "an HTML page in place of JSON"),
        ("searxng", 200, b'{"results": {}}', BadAnswer, "no list"),
        ("brave", 401, b"", SourceRefused, "key"),
        ("brave", 403, b"", SourceRefused, "plan"),
        ("brave", 422, b'{"error": {"code": "SUBSCRIPTION_TOKEN_INVALID"}}', SourceRefused, "does not know the key"),
        ("brave", 422, b'{"error": {"code": "VALIDATION"}}', QueryRefused, "does not accept the query"),
        ("brave", 429, b"", SourceBusy, "search.brave.rate"),
        ("mojeek", 200, b'{"response": {"status": "ERROR: Access Denied"}}', SourceRefused, "'ERROR: Access Denied'"),
        ("mojeek", 200, f'{{"response": {{"status": "ERROR: {KEY}"}}}}'.encode(), SourceRefused, "'ERROR: [*]{8}'"),
        ("mine", 200, b'{"data": {"items": []}, "fault": {"code": 7}}', SourceRefused, "mine says .*7"),
        ("mine", 200, b'{"fault": null}', QueryRefused, "there is none"),
        ("mine", 403, b"", SourceRefused, "search.json_http.mine says how"),
        ("mine", 404, b"", SourceRefused, "nothing at this URL"),
        ("mine", 400, b"", QueryRefused, "does not understand"),
        ("commoncrawl", 403, b"", SourceRefused, "wait a day"),
        ("commoncrawl", 503, b"", SourceBusy, "slow down"),
        ("commoncrawl", 404, b"<html>", SourceRefused, "no such crawl"),
    ],
)
def test_a_refusal_is_told_in_words(name: str, status: int, body: bytes, kind: type[SourceError], said: str) -> None:
    """Each status is an error with its meaning for this source, and tells whether a retry may help."""
    with pytest.raises(SourceError, match=said) as raised:
        _open(name).results(_answer(body, status), 1)
    assert type(raised.value) is kind
    assert raised.value.retriable == (kind in (SourceBusy, BadAnswer))


def test_a_bad_result_takes_its_place_and_is_passed_over_with_its_reason() -> None:
    """A bad result keeps its rank and is skipped with a reason, so that other ranks do not move."""
    spoiled = {"results": [{"title": "no url"}, 7, {"url": "https://b.example/"}, {"url": ["x"]}]}
    results = _open("searxng").results(_answer(spoiled), 1)
    assert [(found.url, found.rank) for found in results.found] == [("https://b.example/", 3)]
    assert results.bad == ["result 1 has no url", "result 2 is no object", "result 4 has no url"]
    assert results.places == 4


def test_a_wrong_path_of_json_http_is_an_error_that_names_what_is_there() -> None:
    """A wrong path, or no usable result, is an error and not an empty answer. A result without a rank is skipped."""
    source = _open("mine")
    with pytest.raises(QueryRefused, match=r"items is 'data.items', and there is none; there are results"):
        source.results(_answer({"results": []}), 1)
    with pytest.raises(QueryRefused, match=r"there are href.*item_url"):
        source.results(_answer({"data": {"items": [{"href": "https://a.example/"}]}}), 1)
    assert not source.results(_answer({"data": {"items": []}}), 1).found
    bad, good = ({"link": {"href": "https://a.example/"}, "position": place} for place in ("first", 2))
    results = source.results(_answer({"data": {"items": [bad, good]}}), 1)
    assert ([found.rank for found in results.found], results.bad) == ([2], ["result 1 has no rank at 'position'"])


@pytest.mark.parametrize("name", ["keyword", "author", "monkey", "search_lang"])
def test_ordinary_parameters_are_not_taken_for_secrets(name: str) -> None:
    """Names that merely contain `key` or `auth`, and values that the query fills in, are not secrets."""
    refuse_url(f"https://a.example/?{name}=x")
    refuse_url("https://a.example/?key={query}")
    for secret in ("appid", "sig", "bearer", "apiKey", "X-Api-Key"):
        with pytest.raises(ValueError, match="holds a key"):
            refuse_url(f"https://a.example/?{secret}=x")


def test_a_key_in_the_place_of_its_variables_name_is_not_repeated() -> None:
    """A key in place of its variable's name is refused and not shown; only a short word that may be a name is shown."""
    for key in ("BSAq7xLm2Zp9Kd4", "A1B2C3D4E5F6A7B8C9D0", "sk-123", "lower_case"):
        with pytest.raises(ValueError, match="key_env is no name") as told:
            JsonHttpSettings(url="https://a.example/?q={query}", key_env=key, key_param="key")
        assert key not in str(told.value)


def test_settings_that_would_do_nothing_are_refused() -> None:
    """Settings without an effect are refused, such as more pages than a source has."""
    with pytest.raises(ValueError, match="neither"):
        JsonHttpSettings(url="https://a.example/?q={query}", pages=2)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"pages": 11}, BraveSettings)


_NAMES = ["results", "web", "response", "url", "title", "engines", "unresponsive_engines", "data", "items", "pages"]
_NAMES += ["status", "head", "query", "link", "href", "position"]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4),
    max_leaves=20,
)


@given(said=_JSON, name=st.sampled_from([*ANSWERS, "commoncrawl"]), status=st.sampled_from([200, 404, 422]))
def test_whatever_json_comes_is_results_or_a_source_error(said: Any, name: str, status: int) -> None:
    """Any JSON gives results or a source error, never an internal error."""
    source = _open(name)
    try:
        results = source.results(_answer(said, status), 1)
    except SourceError:
        return
    assert len(results.found) + len(results.bad) <= results.places
    assert all(isinstance(found.title + found.snippet + found.engine, str) for found in results.found)


@pytest.mark.parametrize("body", [b"[" * 200_000, b"\xff\xfe", b"", b'{"results": [' + b"[" * 100_000])
def test_an_answer_that_is_no_json_is_bad_not_fatal(body: bytes) -> None:
    """Deep nesting and empty bodies are bad answers, and are retried."""
    with pytest.raises(BadAnswer):
        _open("searxng").results(_answer(body), 1)


def test_control_characters_of_an_answer_go_nowhere() -> None:
    """Titles and engines of a source contain no control characters for the terminal."""
    spoiled = {"results": [{"url": "https://a.example/", "title": "a\x1b[2Jb\n c", "engine": "\x07e"}]}
    (found,) = _open("searxng").results(_answer(spoiled), 1).found
    assert (found.title, found.engine) == ("a[2Jb c", "e")


def test_a_key_of_json_http_may_be_a_parameter() -> None:
    """A json_http key is separate from the URL; without a header or parameter to send it in, it is refused."""
    settings = JsonHttpSettings(url="https://a.example/?q={query}", key_env="MINE_KEY", key_param="api_key")
    source = open_source(SearchSettings(json_http={"second": settings}), "second", ENVIRONMENT)
    request = source.request(QUERY, 1)
    assert (request.secret_params, request.secret_headers) == ({"api_key": KEY}, {})
    assert not source.results(_answer({"results": [{"url": "https://b.example/"}]}), 1).more
    with pytest.raises(ValueError, match="key_header or key_param"):
        JsonHttpSettings(url="https://a.example/?q={query}", key_env="MINE_KEY")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"url": "https://a.example/"}, "no {query}"),
        ({"url": "https://a.example/?q={query}&k={key}"}, "no other braces"),
        ({"url": "ftp://a.example/{query}"}, "no http or https URL"),
        ({"url": "https://{query}.example/"}, "no http or https URL"),
        ({"url": "https://a.example/?q={query}&token=x"}, "holds a key"),
        ({"url": "https://a.example/?q={query}", "headers": {"X-Api-Key": "x"}}, "a key goes into"),
        ({"url": "https://a.example/?q={query}", "headers": {"X-A": "a\r\nX-B: c"}}, "is no header"),
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any], said: str) -> None:
    """Settings that cannot work are refused before any request; the message names the mistake."""
    with pytest.raises(ValueError, match=re.escape(said)):
        JsonHttpSettings(**wrong)


@pytest.mark.parametrize("name", ["brave", "file", "Mine", "a b", "x" * 40])
def test_a_name_of_json_http_is_one_word_and_not_taken(name: str) -> None:
    """A json_http name becomes the source of hits and a metrics label: it is one word and not taken."""
    with pytest.raises(ValueError, match=r"cannot be a source's name|is a built-in source"):
        SearchSettings(json_http={name: MINE})


def test_a_key_file_is_taken_before_the_environment(tmp_path: Path) -> None:
    """The content of the file is the key; the error for an empty, absent or invalid file does not show the content."""
    file = tmp_path / "key"
    file.write_text(f" {KEY}-of-the-file\n")
    brave = replace(SearchSettings().brave, key_file=str(file))
    assert read_key("brave", brave, ENVIRONMENT) == f"{KEY}-of-the-file"
    for content, said in ("", "is empty"), (f"{KEY}\nsecond line", "holds no key"), ("ä" * 9, "holds no key"):
        file.write_text(content)
        with pytest.raises(MissingKey, match=said) as raised:
            read_key("brave", brave, ENVIRONMENT)
        assert KEY not in str(raised.value)
    file.unlink()
    with pytest.raises(MissingKey, match="cannot be read"):
        read_key("brave", brave, ENVIRONMENT)


def test_results_of_one_answer_are_capped() -> None:
    """The number of results of one answer, and their texts, are capped."""
    many = {"results": [{"url": "https://a.example/", "title": "x" * 10_000}] * 5000}
    results = _open("searxng").results(_answer(many), 1)
    assert len(results.found) == 1000
    assert len(results.found[0].title) == 2000


def test_a_source_without_what_it_needs_says_where_it_belongs() -> None:
    """A source without its key, address or crawl is refused; the message names the setting or the variable."""
    for name, said in (
        ("brave", "BRAVE_API_KEY"),
        ("searxng", "search.searxng.url"),
        ("commoncrawl", "search.commoncrawl.crawl"),
        ("mine", "MINE_KEY"),
    ):
        with pytest.raises(MissingKey, match=said):
            open_source(SearchSettings(json_http={"mine": MINE}), name, {})
    with pytest.raises(SourceError, match="file, searxng, brave, commoncrawl"):
        settings_for(SearchSettings(), "bing")


def test_what_was_set_up_is_told_by_its_table_or_its_key() -> None:
    """The doctor has a line for configured sources only."""
    assert configured(SearchSettings(), {}) == []
    assert configured(SearchSettings(), {"BRAVE_API_KEY": "x"}) == ["brave"]
    assert configured(_settings(), {}) == ["searxng", "commoncrawl", "mine"]
    assert configured(_settings(), {"MOJEEK_API_KEY": "x"}) == ["searxng", "commoncrawl", "mojeek", "mine"]
    own = [f"own{number}" for number in range(9)]
    assert configured(SearchSettings(json_http=dict.fromkeys(own, MINE)), {}) == own
    assert {*SOURCES, "json_http", "deepen_above"} == set(SearchSettings.__struct_fields__)


def test_retry_after_is_what_a_busy_source_asked_for() -> None:
    """Retry-After is read as seconds or a date; without the header it is none."""
    for header, wait_s in (
        ({"Retry_After": "17"}, 17.0),
        ({"Retry_After": "Thu, 01 Jan 1970 00:17:20 GMT"}, 40.0),
        ({}, None),
    ):
        with pytest.raises(SourceBusy) as raised:
            _open("brave").results(_answer(b"", 429, **header), 1)
        assert raised.value.wait_s == wait_s


def test_each_source_is_documented() -> None:
    """docs/reference/sources.md has a row and a section for each source, and for no other."""
    page = (ROOT / "docs/reference/sources.md").read_text(encoding="utf-8")
    assert {*re.findall(r"^\| `(\w+)` \|", page, re.M)} >= {*SOURCES}
    assert {*SOURCES, "json_http"} == {*re.findall(r"^## ([a-z_]+)$", page, re.M)}
