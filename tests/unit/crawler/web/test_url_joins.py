"""Links of pages: joined as the URL Standard does, and no traps."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from crawler.web.links import internal_links
from crawler.web.urls import URL_CAP, host_of, normalise
from tests.unit.crawler.web.test_url_standard import CASES

BASE = "http://example.org/foo/bar"


def test_links_are_joined_as_urls_are() -> None:
    """A followed link is what `normalise` makes of its reference, for each reference of the standard's table."""
    followed = 0
    for reference, _, _ in CASES:
        if any(character in reference for character in "\"'<>&\x00") or not reference.isascii():
            continue
        for link in internal_links(f'<a href="{reference}">'.encode(), "utf-8", BASE):
            assert link == normalise(reference, BASE)
            followed += 1
    assert followed > 10


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
