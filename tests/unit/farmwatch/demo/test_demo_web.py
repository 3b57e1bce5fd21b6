"""The demo's web: its articles, its pages and its server, and that the filters keep exactly its articles."""

from __future__ import annotations

import gzip
import re
import time
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from itertools import chain
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farmwatch.demo.demo_web import CLOSED_HOST, FEW, DemoWeb, build_demo_web
from farmwatch.demo.human_pages import PAGE_WORDS, HumanPage, human_pages, prose
from farmwatch.demo.server import LoopbackWeb, Response
from farmwatch.demo.site_pages import (
    DISALLOWED,
    FIRST_MONTH,
    LOGIN,
    NEARLY_EMPTY,
    OLD_PATH,
    REPEATED,
    Article,
    DemoSite,
    Family,
    llm_articles,
)
from filters.measure.page_measures import measure
from filters.rules.judgement import judge
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings
from stream.schema.records import Features, Verdict
from tests.support.sizes import LONG

SETTINGS = MeasureSettings()


@pytest.fixture(scope="module")
def demo() -> DemoWeb:
    return build_demo_web()


def _sites(demo: DemoWeb) -> Iterator[DemoSite]:
    return (site for site in demo.hosts.values() if isinstance(site, DemoSite))


_MARKS = {Family.MAGAZINE: b'id="cookie-notice"', Family.JOURNAL: b'class="masthead"', Family.MANUAL: b'role="main"'}


def _kind_and_family(demo: DemoWeb, site: DemoSite) -> tuple[str, Family | None]:
    found = [family for family, mark in _MARKS.items() if mark in site["/"].body]
    return demo.truth[site.host], found[0] if found else None


def _html(response: Response) -> bytes:
    zipped = response.headers.get("Content-Encoding") == "gzip"
    return gzip.decompress(response.body) if zipped else response.body


def _verdict(host: str, path: str, response: Response) -> Verdict:
    url = f"http://{host}{path}"
    found = measure(url, _html(response), "utf-8", SETTINGS)
    features = Features(
        id=url,
        site=host,
        page_id=url,
        url=url,
        epoch="test",
        extract_path=found.path,
        extract_error=found.error,
        text=found.text,
        measures=found.measures,
        blocks=found.blocks,
    )
    return judge(features, load_ruleset("default"))


def test_every_host_has_a_truth(demo: DemoWeb) -> None:
    """Eight sites have nine articles or more, but one LLM site; three of each kind are small, and one is closed."""
    assert set(demo.expected) == set(demo.hosts) == {*demo.truth, CLOSED_HOST}
    assert Counter(demo.truth.values()) == {"llm": 11, "human": 11}
    no_verdict = {host for host, verdict in demo.expected.items() if verdict != demo.truth.get(host)}
    assert Counter(demo.truth.get(host) for host in no_verdict) == {"llm": 4, "human": 3, None: 1}
    for site in _sites(demo):
        assert FEW < 9 and (len(site.articles) >= 9) == (demo.expected[site.host] != "unclassifiable"), site.host


def test_all_families_of_templates_are_used_by_both_kinds(demo: DemoWeb) -> None:
    """The template does not reveal the author of a site."""
    seen = {_kind_and_family(demo, site) for site in _sites(demo)}
    assert {(kind, family) for kind in ("llm", "human") for family in Family} <= seen


def test_the_default_ruleset_keeps_articles_and_drops_the_rest(demo: DemoWeb) -> None:
    """Each article and the copy pass the article rules (without repetition), and no other page does."""
    one_of_each = {_kind_and_family(demo, site): site for site in _sites(demo)}
    for site in _sites(demo) if LONG else one_of_each.values():
        pages = {path: response for path, response in site.items() if response.status == 200}
        pages[FIRST_MONTH] = site[FIRST_MONTH]
        for path in ("/robots.txt", "/sitemap.xml"):
            del pages[path]
        kept = {path for path, response in pages.items() if _verdict(site.host, path, response).verdict == "article"}
        assert kept == {*site.articles, REPEATED}, site.host


def test_the_calendar_never_ends(demo: DemoWeb) -> None:
    """Each "next" link leads to a new month, over years."""
    site = next(_sites(demo))
    path, seen = FIRST_MONTH, set[str]()
    for _ in range(40):
        seen.add(path)
        link = re.search(rb'<a href="(/calendar/\d+/\d+)">Next month', site[path].body)
        assert link
        path = link[1].decode()
    assert len(seen) == 40
    with pytest.raises(KeyError):
        site["/calendar/2026/13"]


def test_hits_rank_pages_of_all_sites(demo: DemoWeb) -> None:
    """At least eight queries with 3-10 ranked results; every site is among them, most several times."""
    queries: dict[object, list[object]] = {}
    for hit in demo.hits:
        assert hit.keys() == {"query", "rank", "url"}
        queries.setdefault(hit["query"], []).append(hit["rank"])
    assert len(queries) >= 8
    assert all(ranks == list(range(1, len(ranks) + 1)) and 3 <= len(ranks) <= 10 for ranks in queries.values())
    hosts = Counter(urlsplit(str(hit["url"])).hostname for hit in demo.hits)
    assert hosts.keys() == demo.hosts.keys()
    assert sum(count >= 2 for count in hosts.values()) >= 14


def test_all_hits_but_the_missing_page_are_served(demo: DemoWeb) -> None:
    """The results lead to existing pages, traps included, and to one missing page."""
    missing = []
    for hit in demo.hits:
        url = urlsplit(str(hit["url"]))
        try:
            demo.hosts[str(url.hostname)][url.path]
        except KeyError:
            missing.append(url.path)
    assert missing == ["/no-such-page"]
    paths = {urlsplit(str(hit["url"])).path for hit in demo.hits}
    assert {DISALLOWED, FIRST_MONTH, LOGIN, NEARLY_EMPTY, OLD_PATH, REPEATED} <= paths


@pytest.mark.parametrize("family", Family)
def test_texts_are_escaped(family: Family) -> None:
    """Markup in a text or a title is shown as text."""
    text = Article("a.example", "one", "T & <i>", "## A & B\n\n<script>x</script>")
    site = DemoSite("a.example", "<b>", family, [text, Article("a.example", "two", "Two", "x")], author="<b>")
    page = site[next(iter(site.articles))].body.decode()
    assert "<h2>A &amp; B</h2>\n<p>&lt;script&gt;x&lt;/script&gt;</p>" in page and "T &amp; &lt;i&gt;" in page
    assert not re.search("<(i|b|script)>", page)


HOSTS = {
    "a.example": {
        "/": Response(body=b"front of a"),
        "/x?b=1&a=%20": Response(body=b"with query"),
        "/x": Response(body=b"without query"),
        "/moved": Response(302, {"Location": "/x"}),
        "/zipped": Response(
            headers={"Content-Encoding": "gzip", "Content-Type": "text/html"}, body=gzip.compress(b"z")
        ),
        "/slow": Response(503, {"Retry-After": "7"}, b"later", delay_s=0.05),
    },
    "b.example": {"/": Response(body=b"front of b")},
}


@pytest.fixture(scope="module")
def web() -> Iterator[LoopbackWeb]:
    with LoopbackWeb(HOSTS) as running:
        yield running


def _get(web: LoopbackWeb, host: str, path: str, method: str = "GET") -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", web.port, timeout=10)
    try:
        connection.request(method, path, headers={"Host": host, "User-Agent": "tester/1"})
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("host", "path", "body"),
    [
        ("a.example", "/", b"front of a"),
        ("b.example", "/", b"front of b"),
        ("A.EXAMPLE:8080", "/", b"front of a"),
        ("b.example.", "/", b"front of b"),
        ("a.example", "/x?b=1&a=%20", b"with query"),
        ("a.example", "/x?other=1", b"without query"),
        ("c.example", "/", b"nothing here\n"),
        ("b.example", "/x", b"nothing here\n"),
    ],
)
def test_a_page_is_found_by_host_and_path(web: LoopbackWeb, host: str, path: str, body: bytes) -> None:
    """The port of a host does not matter; a query that does not match exactly is ignored; what is unknown is 404."""
    response, got = _get(web, host, path)
    assert (response.status, got) == (404 if body.startswith(b"nothing") else 200, body)


def test_status_headers_and_encoded_body_are_sent_unchanged(web: LoopbackWeb) -> None:
    """A redirect has its Location, and a gzip body its header."""
    moved, _ = _get(web, "a.example", "/moved")
    assert (moved.status, moved.headers["Location"]) == (302, "/x")
    zipped, body = _get(web, "a.example", "/zipped")
    assert (zipped.headers["Content-Encoding"], gzip.decompress(body)) == ("gzip", b"z")
    assert _get(web, "a.example", "/", "HEAD")[1] == b""


def test_requests_are_logged_and_answers_delayed(web: LoopbackWeb) -> None:
    """A recorded request has host, path and start; a response takes its delay."""
    began = time.monotonic()
    assert _get(web, "a.example", "/slow?q=1")[0].headers["Retry-After"] == "7"
    assert time.monotonic() - began >= 0.05
    last = web.requests[-1]
    assert (last.host, last.path, last.started >= began) == ("a.example", "/slow?q=1", True)


ARTICLES = list(chain.from_iterable(llm_articles().values()))


def _name(article: Article) -> str:
    return f"{article.site}/{article.slug}"


def test_hosts_are_reserved_and_slugs_are_url_safe() -> None:
    """No host can exist, slugs need no escaping in a URL, and no article occurs twice."""
    assert all(article.site.endswith(".example") for article in ARTICLES)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", article.slug) for article in ARTICLES)
    assert (
        len({_name(article) for article in ARTICLES}) == len({article.title for article in ARTICLES}) == len(ARTICLES)
    )


def test_no_two_articles_share_a_run_of_twelve_words() -> None:
    """No article repeats twelve consecutive words of another."""
    owner: dict[tuple[str, ...], str] = {}
    for article in ARTICLES:
        words = re.findall(r"[\w']+", article.text.lower())
        for start in range(len(words) - 11):
            run = tuple(words[start : start + 12])
            assert owner.setdefault(run, _name(article)) == _name(article), " ".join(run)


TOPICS = {
    "raise": """The "raise" statement
*********************

   raise_stmt ::= "raise" [expression ["from" expression]]

If no expressions are present, "raise" re-raises the exception that is
currently being handled, which is also known as the *active exception*
(see section Exceptions).  It is a word of the language. [1]

   try:
       print(1 / 0)
   except ZeroDivisionError as exc:
       raise RuntimeError("Something bad happened, as it is bound to do now") from exc

Changed in version 3.3: "None" is now permitted as "Y" in the form that is
shown above, and it has been so ever since that version was made.

Short line.

object.__new__(cls[, ...])

   Called to create a new instance of class *cls*.  It is a **static** method
   that takes the class of which an instance was requested as its argument.

* If the target is an identifier, then the name is bound to the object in
  the current local namespace of the block that is being run.

Deep heading
============

"numbers.Integral"
   These represent elements from the mathematical set of integers, be they
   positive or negative, and there are two types of them in the language.

+---------+------------------------------------------------------------------+
| Flag    | It is a row of a table that is not to be taken for the prose.    |
+---------+------------------------------------------------------------------+
"""
}


def _words(page: HumanPage) -> int:
    return sum(len(paragraph.split()) for paragraph in page.paragraphs)


def test_only_prose_is_used_without_markup() -> None:
    """Paragraphs, list items and definitions are used; code, grammar, tables and version notes are not."""
    assert list(prose(TOPICS)) == [
        (
            "The raise statement",
            "If no expressions are present, raise re-raises the exception that is currently being handled, which is"
            " also known as the active exception. It is a word of the language.",
        ),
        (
            "The raise statement",
            "Called to create a new instance of class cls. It is a static method that takes the class of which an"
            " instance was requested as its argument.",
        ),
        (
            "The raise statement",
            "If the target is an identifier, then the name is bound to the object in the current local namespace of the"
            " block that is being run.",
        ),
        (
            "Deep heading",
            "These represent elements from the mathematical set of integers, be they positive or negative, and there"
            " are two types of them in the language.",
        ),
    ]


def test_the_running_python_has_enough_distinct_pages() -> None:
    """Nine pages for each of eight sites, three for three; each ends with the paragraph that fills it; none twice."""
    pages = human_pages()
    assert len(pages) >= 8 * 9 + 3 * FEW
    for page in pages:
        assert _words(page) - len(page.paragraphs[-1].split()) < PAGE_WORDS <= _words(page)
        assert len(page.paragraphs) >= 2
    paragraphs = [paragraph for page in pages for paragraph in page.paragraphs]
    assert len(set(paragraphs)) == len(paragraphs)
    assert len({page.title for page in pages}) == len(pages)


@given(st.dictionaries(st.text(max_size=8), st.text(alphabet='Aa .\n*="-[]1', max_size=400), max_size=4))
def test_any_topics_give_full_pages_or_none(topics: dict[str, str]) -> None:
    """For any text of topics, pages are full and paragraphs are single lines."""
    for page in human_pages(topics, page_words=20):
        assert _words(page) >= 20
        assert all("\n" not in paragraph for paragraph in page.paragraphs)
