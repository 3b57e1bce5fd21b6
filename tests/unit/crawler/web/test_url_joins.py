"""Joining links: results of the URL Standard (url.spec.whatwg.org) for references that occur on pages.

The cases are a selection of the standard's published test data; ada-url passes all of it.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.errors import UnusableUrl
from crawler.web.links import internal_links
from crawler.web.urls import URL_CAP, host_of, normalise, page_id, page_id_of_normal

BASE = "http://example.org/foo/bar"

PATHS = [
    ("", "/foo/bar"),
    ("#frag", "/foo/bar"),
    ("?q", "/foo/bar?q"),
    ("?q#f", "/foo/bar?q"),
    ("x", "/foo/x"),
    ("x?y", "/foo/x?y"),
    (".", "/foo/"),
    ("./x", "/foo/x"),
    ("..", "/"),
    ("../x", "/x"),
    ("../../../x", "/x"),
    ("/x", "/x"),
    ("/x/..", "/"),
    ("/x/../y", "/y"),
    ("/..//x", "//x"),
    ("/x//../y", "/x/y"),
    ("/x/..../y", "/x/..../y"),
    ("/%2E%2e/x", "/x"),
    ("/a%2fb", "/a%2fb"),
    ("/a%2Fb/..", "/"),
    ("/%41", "/%41"),
    ("/%", "/%"),
    ("/a b", "/a%20b"),
    ("/a\tb\r\nc", "/abc"),
    ("/a\x00b", "/a%00b"),
    ("/a\x7fb", "/a%7Fb"),
    ("/\u00e4", "/%C3%A4"),
    ("/\U0001f4a9", "/%F0%9F%92%A9"),
    ("?\u00e4", "/foo/bar?%C3%A4"),
    ('/"<>`', "/%22%3C%3E%60"),
    ("?a b<>\"'", "/foo/bar?a%20b%3C%3E%22%27"),
    ("\\x\\y", "/x/y"),
    ("?x\\y", "/foo/bar?x\\y"),
    (";x", "/foo/;x"),
    ("x;y?z;w", "/foo/x;y?z;w"),
    ("/a:b", "/a:b"),
    ("/@x", "/@x"),
    ("http:x", "/foo/x"),
    ("http:?q", "/foo/bar?q"),
    ("ht\ntp:x", "/foo/x"),
]

HOSTS = [
    ("//h/x", "http://h/x"),
    ("/\\h/x", "http://h/x"),
    ("http:///h", "http://h/"),
    ("http:\\\\h\\x", "http://h/x"),
    ("https://H/X", "https://h/X"),
    ("http://h:80/", "http://h/"),
    ("http://h:443/", "http://h:443/"),
    ("https://h:443/", "https://h/"),
    ("http://h:/", "http://h/"),
    ("http://u@v@h/", "http://h/"),
    ("http://h@evil/", "http://evil/"),
    ("http://h\\@evil/", "http://h/@evil/"),
    ("http://h./x", "http://h/x"),
    ("http://h\t/\nx", "http://h/x"),
    ("http://a_b/", "http://a_b/"),
    ("http://%65xample.com/", "http://example.com/"),
    # IPv4 in each notation
    ("http://127.1/", "http://127.0.0.1/"),
    ("http://127.0.1/", "http://127.0.0.1/"),
    ("http://127.0.0.1./", "http://127.0.0.1/"),
    ("http://2130706433/", "http://127.0.0.1/"),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://0x7F000001/", "http://127.0.0.1/"),
    ("http://0177.0.0.01/", "http://127.0.0.1/"),
    ("http://%30x7f.1/", "http://127.0.0.1/"),
    ("http://\uff10\uff38\uff17\uff46\uff0e\uff11/", "http://127.0.0.1/"),
    ("http://127\u30020.0.1/", "http://127.0.0.1/"),
    ("http://0/", "http://0.0.0.0/"),
    ("http://0x/", "http://0.0.0.0/"),
    # IPv6
    ("http://[::1]/", "http://[::1]/"),
    ("http://[0:0::1]:80/", "http://[::1]/"),
    ("http://[::127.0.0.1]/", "http://[::7f00:1]/"),
    ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
    # IDNA
    ("http://b\u00fccher.de/", "http://xn--bcher-kva.de/"),
    ("http://fa\u00df.de/", "http://xn--fa-hia.de/"),
    ("http://\uff47\uff4f\uff4f.com/", "http://goo.com/"),
    ("http://h\u00ad/x", "http://h/x"),
    ("HTTP://EXAMPLE.com:80/a/../c?x#f", "http://example.com/c?x"),
    ("https://user:secret@example.com./", "https://example.com/"),
    ("https://b\u00fccher.example/\u00e4?q=\u00f6", "https://xn--bcher-kva.example/%C3%A4?q=%C3%B6"),
    ("http://[::FFFF:127.0.0.1]:8080/", "http://[::ffff:7f00:1]:8080/"),
]

# No web URL: without a usable host or port, of another scheme, or too long
REFUSED = [
    "a:b", "http://h:65536/", "http://h:x/", "http://:80/", "http://", "http:///", "//", "http://?q", "http://@/",
    "http://a..b/", "http://a b/", "http://a%20b/", "http://a|b/", "http://a^b/", "http://a<b/", "http://a%00b/",
    "http://4294967296/", "http://256.256.256.256/", "http://1.2.3.4.5/", "http://1.2.3.08/", "http://foo.0x4/",
    "http://[1::2::3]/", "http://[::1%25eth0]/", "http://[www.example.com]/", "http://::1/", "http://\u200b/",
    "http://\ufdd0.com/", "http://goo\u3000goo.com/", "ftp://h/", "file:///x", "mailto:a@b", "javascript:alert(1)",
    "data:text/html,x", "about:blank", "tel:1", "ws://h/", "https://example.com/" + "a" * 3000,
    "https://example.com/" + "\u00e4" * 1000, "http://\ud800.example/", "http:///\0", "http://./", "http://[::1/",
    "http://h../", "http://a.1../", "http://a.0x../x", "http://1.2.3.4../", "http://h%2E%2e/", "http://h\u3002\u3002/",
]  # fmt: skip


@pytest.mark.parametrize(("reference", "path"), PATHS)
def test_references_within_a_site(reference: str, path: str) -> None:
    """Dots, slashes of both kinds, queries, escapes and whitespace resolve as in a browser."""
    url = f"http://example.org{path}"
    assert normalise(reference, BASE) == normalise(url) == url


@pytest.mark.parametrize(("reference", "url"), HOSTS)
def test_references_to_a_host(reference: str, url: str) -> None:
    """Each spelling of a host is one host; an address in any notation is that address."""
    assert normalise(reference, BASE) == normalise(url) == url
    assert page_id_of_normal(url) == (page_id(reference) if "://" in reference else page_id(url))


@pytest.mark.parametrize("reference", REFUSED)
def test_what_is_no_web_url_is_refused(reference: str) -> None:
    """Any text but an http(s) URL with a host raises UnusableUrl."""
    with pytest.raises(UnusableUrl):
        normalise(reference, BASE)


@pytest.mark.parametrize(
    ("base", "reference", "url"),
    [
        ("http://a.example", "x", "http://a.example/x"),
        ("http://a.example?q", "x", "http://a.example/x"),
        ("http://a.example/x/y/", "z", "http://a.example/x/y/z"),
        ("http://a.example/x/y?a/b", "z", "http://a.example/x/z"),
        ("http://a.example/x/y?a", "#f", "http://a.example/x/y?a"),
        ("http://a.example/x/y?a", "?b", "http://a.example/x/y?b"),
        ("http://a.example:8080/x", "/y", "http://a.example:8080/y"),
        ("http://a.example:8080/x", "//b.example/y", "http://b.example/y"),
        ("https://a.example/x", "//b.example:443/", "https://b.example/"),
        ("https://a.example/x", "http:y", "http://y/"),
        ("https://a.example/x", "https:y", "https://a.example/y"),
    ],
)
def test_bases_of_each_form(base: str, reference: str, url: str) -> None:
    """Query, port and scheme of the base are kept unless the reference replaces them."""
    assert normalise(reference, base) == url


@pytest.mark.parametrize(("reference", "path"), PATHS)
def test_links_are_joined_as_urls_are(reference: str, path: str) -> None:
    """The fast path of `internal_links` gives the same URLs as `normalise` for every reference in the table."""
    if any(character in reference for character in "\"'<>&\x00"):
        return
    page = f'<a href="{reference}">'.encode()
    found = list(internal_links(page, "utf-8", BASE))
    expected = f"http://example.org{path}"
    assert found in ([expected], [])
    if not path.startswith(("/foo/bar", "//")) and path.strip("/"):
        assert found == [expected]


_pieces = st.sampled_from(
    [*"ab/\\:?#.@%[]& \t\n;", "%2e", "..", "//", "http:", "example.org", "\u00e4", "\u3002", "0x7f"]
)
_text = st.lists(_pieces, max_size=12).map("".join)


@given(_text)
def test_a_link_is_of_the_site_and_in_its_one_spelling(reference: str) -> None:
    """Any followed link is on the page's own host, and normalising it again changes nothing."""
    for url in internal_links(f'<a href="{reference}">'.encode(), "utf-8", BASE):
        assert host_of(url) == "example.org" and normalise(url) == url and len(url) <= URL_CAP


def test_a_calendar_of_ten_thousand_links_lists_nothing() -> None:
    """Endless days and months of a calendar are recognised in each notation."""
    days = [
        text
        for year, month in itertools.product(range(2000, 2083), range(1, 13))
        for text in (
            f"/calendar/{year}/{month}", f"/events/{year}/{month}/", f"/?year={year}&month={month}",
            f"/diary?date={year}-{month}-01", f"/{year}/{month}/1", f"/x/{year}/{month}/28",
            f"/show?cal={year}{month}", f"/show?x=1&day={year}-{month}", f"/{year}/{month}",
            f"/kalender/m{year}-{month}",
        )
    ]  # fmt: skip
    assert len(days) > 9_900
    page = "".join(f'<a href="{day}">d</a>' for day in days).encode()
    assert list(internal_links(page, "utf-8", BASE)) == []


def test_session_ids_make_no_new_pages() -> None:
    """Links with a session id are not followed, in any of the usual forms."""
    forms = ("/a;jsessionid={}", "/a?PHPSESSID={}", "/a?x=1&sid={}", "/(S({}))/a", "/a;sid={}?b", "/a?session_id={}&b")
    page = "".join(f'<a href="{form.format(n)}">' for n in range(100) for form in forms).encode()
    assert list(internal_links(page, "utf-8", BASE)) == []


def test_paths_that_deepen_without_end_do_not() -> None:
    """An endless chain of links to `a/` or `../x/a/` is left after a few steps."""
    for reference in ("a/", "b/a/", "x/y/z/", "./a/../a/b/"):
        url, steps = "https://a.example/start/", 0
        while found := next(internal_links(f"<a href='{reference}'>".encode(), "utf-8", url), None):
            url, steps = found, steps + 1
            assert steps < 10
