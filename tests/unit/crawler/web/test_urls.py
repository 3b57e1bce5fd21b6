"""URLs: normalisation, ids, and URLs that are skipped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.errors import UnusableUrl
from crawler.web.urls import (
    fetch_id,
    hit_url,
    host_of,
    is_skipped,
    normalise,
    origin_of,
    page_id,
    port_of,
    site_of,
    twin_of,
)
from stream.text.registrable_domain import registrable_domain


@pytest.mark.parametrize(
    "host", ["novels.5f0c2a91d3b7e604.12.9.human.canary.invalid", "a.INVALID.", "invalid", "%69nvalid"]
)
def test_no_hit_has_a_reserved_host(host: str) -> None:
    """A hit under `.invalid`, in any spelling, is refused with the reason: it could pass for a canary site."""
    with pytest.raises(UnusableUrl, match=r"under \.invalid, which is reserved \(RFC 2606\)"):
        hit_url(f"https://{host}/1")
    assert hit_url("https://invalid.example/a#b") == "https://invalid.example/a"


def test_site_is_the_host_without_port() -> None:
    """The site of a URL is its host without the port; the URL keeps the port."""
    assert site_of("http://Shop.Example.com:8080/x") == "shop.example.com"
    assert port_of("http://shop.example.com:8080/x") == "8080"
    assert port_of("http://shop.example.com/x") == ""
    assert origin_of("http://shop.example.com:8080/x/y") == "http://shop.example.com:8080"
    assert host_of("http://[::1]:8080/") == host_of("http://[::1]/") == "[::1]"
    assert port_of("http://[::1]/") == "" and port_of("http://[::1]:81/") == "81"


SKIPPED = """
    / /index.php /tag/x /page/2/ /search?q=1 /?s=word /feed/ /login /photo.JPG /wp-login.php /a.pdf?x=1
    /a/article.jsp;jsessionid=1F2E /a;JSESSIONID=1F2E?x=1 /(S(lit3py55t21z5v55vlm25s55))/article.aspx
    /(A(x)F(y))/article.aspx /article?PHPSESSID=1f2e /article?x=1&sid=1f2e /article?x=1&jsessionid=1f2e
    /calendar/2031/05 /calendar?month=5 /events?year=2031&month=5 /events?date=2031-05-01 /2024/ /2024/10
    /blog/2024/10/31/ /a/a/a/a/a /a/b/a/b/a/b/a/b
""".split()  # noqa: SIM905  # a table of words
KEPT = """
    /2024/10/an-article /?p=12 /researching-tags /how-to-search-well.html /printing-at-home /why-foo-(bar)-matters
    /matrix;color=red/x /article?side=left /2024/10/31/1 /article/123456 /12/34 /a/b/a/b/a/x
    /1/2/3/4/5/6/7/8/9/article
""".split()  # noqa: SIM905  # a table of words


@pytest.mark.parametrize("path", [*SKIPPED, "/" + "/".join(f"d{n}" for n in range(25))])
def test_indexes_media_and_traps_are_skipped(path: str) -> None:
    """Discovered URLs of indexes, media and traps are skipped."""
    assert is_skipped(f"https://a.example{path}")


@pytest.mark.parametrize("path", KEPT)
def test_what_may_be_an_article_is_not_skipped(path: str) -> None:
    """Paths that only resemble an index, a search, a session or a date are followed."""
    assert not is_skipped(f"https://a.example{path}")


def test_twins() -> None:
    """A host and its `www.` twin count as twins."""
    assert twin_of("www.a.example") == "a.example"
    assert twin_of("a.example") == "www.a.example"


@given(st.text(max_size=60) | st.text(max_size=40).map(lambda t: "http://" + t))
def test_normalising_twice_changes_nothing(text: str) -> None:
    """Any text is refused, or normalises to one spelling whose host is the site and whose parts can be read."""
    try:
        normal = normalise(text)
    except UnusableUrl:
        return
    assert normalise(normal) == normal
    assert site_of(normal) == host_of(normal) != ""
    assert "#" not in normal and "\n" not in normal
    is_skipped(normal)


@pytest.mark.parametrize("port", [1, 22, 25, 6667, 10080])
def test_ports_of_other_protocols_are_no_web(port: int) -> None:
    """Ports of other protocols, such as mail, are refused; ports of web servers are accepted."""
    with pytest.raises(UnusableUrl, match="another protocol"):
        normalise(f"http://a.example:{port}/")
    assert normalise("http://a.example:8080/") == "http://a.example:8080/"


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("example.com", "example.com"),
        ("www.example.com", "example.com"),
        ("a.b.shop.example.co.uk", "example.co.uk"),
        ("one.blogspot.com", "one.blogspot.com"),
        ("www.one.blogspot.com", "one.blogspot.com"),
        ("someone.github.io", "someone.github.io"),
        ("blogspot.com", "blogspot.com"),
        ("co.uk", "co.uk"),
        ("x.y.kawasaki.jp", "x.y.kawasaki.jp"),
        ("www.city.kawasaki.jp", "city.kawasaki.jp"),
        ("www.xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("a.nosuchtld", "a.nosuchtld"),
        ("b.a.nosuchtld", "a.nosuchtld"),
        ("localhost", "localhost"),
        ("192.0.2.7", "192.0.2.7"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("www.example.com.", "example.com"),
        ("", ""),
    ],
)
def test_registrable_domains(host: str, domain: str) -> None:
    """Public suffixes, private ones included, separate owners; IP literals and single labels are their own domain."""
    assert registrable_domain(host) == domain


def test_fetch_ids_tell_visits_apart() -> None:
    """A visit has a constant id; another visit to the URL has another id."""
    assert fetch_id("http://a.example/", 1) == fetch_id("http://a.example/", 1)
    assert fetch_id("http://a.example/", 1) != fetch_id("http://a.example/", 2) != page_id("http://a.example/")
