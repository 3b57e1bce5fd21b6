"""URLs: one spelling, ids from it, and what is skipped."""

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
    other_scheme,
    page_id,
    port_of,
    site_of,
    twin_of,
)
from stream.text.registrable_domain import registrable_domain


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("HTTP://EXAMPLE.com:80/a/../c?x#f", "http://example.com/c?x"),
        ("https://user:secret@example.com./", "https://example.com/"),
        ("https://bücher.example/ä?q=ö", "https://xn--bcher-kva.example/%C3%A4?q=%C3%B6"),
        ("  http://example.com ", "http://example.com/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("https://example.com:443/x", "https://example.com/x"),
        ("http://[::FFFF:127.0.0.1]:8080/", "http://[::ffff:7f00:1]:8080/"),
    ],
)
def test_spellings_of_a_url_become_one(url: str, normal: str) -> None:
    """Case, default ports, dots, credentials, fragments and host notations do not make another URL."""
    assert normalise(url) == normal
    assert page_id(url) == page_id(normal)


@pytest.mark.parametrize(
    "url",
    ["", "x", "//example.com/", "ftp://example.com/", "mailto:a@b.example", "http://", "http://a b/",
     "javascript:alert(1)", "http://a..b/", "http://./", "http://[::1/", "https://example.com/" + "a" * 3000,
     "https://example.com/" + "ä" * 1000,
     "http://\ud800.example/", "http:///\0"],
)  # fmt: skip
def test_what_is_no_web_url_is_refused(url: str) -> None:
    """Anything but an http(s) URL with a host raises UnusableUrl, and nothing else."""
    with pytest.raises(UnusableUrl):
        print(normalise(url))


@pytest.mark.parametrize(
    "host", ["novels.5f0c2a91d3b7e604.12.9.human.canary.invalid", "a.INVALID.", "invalid", "%69nvalid"]
)
def test_no_hit_has_a_reserved_host(host: str) -> None:
    """A hit under `.invalid`, however it is spelled, could pass for a canary site: it is refused, and says why."""
    with pytest.raises(UnusableUrl, match=r"under \.invalid, which is reserved \(RFC 2606\)"):
        hit_url(f"https://{host}/1")
    assert hit_url("https://invalid.example/a#b") == "https://invalid.example/a"


def test_site_is_the_host_without_port() -> None:
    """Ports stay in the URL and out of the site."""
    assert site_of("http://Shop.Example.com:8080/x") == "shop.example.com"
    assert port_of("http://shop.example.com:8080/x") == "8080"
    assert port_of("http://shop.example.com/x") == ""
    assert origin_of("http://shop.example.com:8080/x/y") == "http://shop.example.com:8080"
    assert host_of("http://[::1]:8080/") == host_of("http://[::1]/") == "[::1]"
    assert port_of("http://[::1]/") == "" and port_of("http://[::1]:81/") == "81"


def test_fetch_ids_tell_visits_apart() -> None:
    """A visit has one id for ever; another visit has another."""
    assert fetch_id("http://a.example/", 1) == fetch_id("http://a.example/", 1)
    assert fetch_id("http://a.example/", 1) != fetch_id("http://a.example/", 2) != page_id("http://a.example/")


@pytest.mark.parametrize(
    ("path", "skipped"),
    [
        ("/", True),
        ("/index.php", True),
        ("/tag/x", True),
        ("/page/2/", True),
        ("/search?q=1", True),
        ("/?s=word", True),
        ("/feed/", True),
        ("/login", True),
        ("/photo.JPG", True),
        ("/wp-login.php", True),
        ("/a.pdf?x=1", True),
        ("/2024/10/an-article", False),
        ("/?p=12", False),
        ("/researching-tags", False),
        ("/how-to-search-well.html", False),
        ("/printing-at-home", False),
        ("/a/article.jsp;jsessionid=1F2E", True),
        ("/a;JSESSIONID=1F2E?x=1", True),
        ("/(S(lit3py55t21z5v55vlm25s55))/article.aspx", True),
        ("/(A(x)F(y))/article.aspx", True),
        ("/article?PHPSESSID=1f2e", True),
        ("/article?x=1&sid=1f2e", True),
        ("/article?x=1&jsessionid=1f2e", True),
        ("/why-foo-(bar)-matters", False),
        ("/matrix;color=red/x", False),
        ("/article?side=left", False),
        ("/calendar/2031/05", True),
        ("/calendar?month=5", True),
        ("/events?year=2031&month=5", True),
        ("/events?date=2031-05-01", True),
        ("/2024/", True),
        ("/2024/10", True),
        ("/blog/2024/10/31/", True),
        ("/2024/10/31/1", False),
        ("/article/123456", False),
        ("/12/34", False),
        ("/a/a/a/a/a", True),
        ("/a/b/a/b/a/b/a/b", True),
        ("/a/b/a/b/a/x", False),
        ("/" + "/".join(f"d{n}" for n in range(25)), True),
        ("/1/2/3/4/5/6/7/8/9/article", False),
    ],
)
def test_indexes_media_and_traps_are_skipped(path: str, skipped: bool) -> None:
    """Discovered URLs that are no articles by their looks, or endlessly many, are told from those that may be."""
    assert is_skipped(f"https://a.example{path}") is skipped


def test_twins() -> None:
    """`www.` comes and goes; so does the s of https."""
    assert twin_of("www.a.example") == "a.example"
    assert twin_of("a.example") == "www.a.example"
    assert other_scheme("http://a.example/") == "https://a.example/"
    assert other_scheme("https://a.example/") == "http://a.example/"


@given(st.text(max_size=60) | st.text(max_size=40).map(lambda t: "http://" + t))
def test_normalising_twice_changes_nothing(text: str) -> None:
    """Any text is refused or has one spelling, whose host is the site and whose parts can be read off."""
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
    """A link must not make us talk to a mail or a chat server; ports of web servers are taken."""
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
    """Public suffixes, private ones among them, part owners; literals and single labels are their own domain."""
    assert registrable_domain(host) == domain
