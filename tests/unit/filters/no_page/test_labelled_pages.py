"""Labelled pages are pages, but for recorded walls and errors: of a quarter of them (FARMWATCH_LONG: of all)."""

from __future__ import annotations

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
import pytest
import zstandard

from filters.no_page.inspector import Inspected, inspect
from filters.no_page.outline import same
from tests.support.sizes import LONG

NO_PAGES = {
    "057675211e": "soft_404",  # "404 : Page Not Found"
    "2a00123bd6": "soft_404",  # "File not found"
    "4df41c90c9": "soft_404",  # "Page not found", the page you requested
    "5185c01be0": "soft_404",  # title "Page Not Found"
    "9f58b6b8d4": "soft_404",  # "404 page not found"
    "a26ea227a8": "soft_404",  # "Page Not Found"
    "a647f96de7": "soft_404",  # a forum: the topic does not exist
    "364132a297": "login_wall",  # "Members only"
    "22c1b4a7af": "challenge",  # Anubis
    "73510a3ebb": "challenge",  # PerimeterX
    "a5b5bd14ea": "maintenance",  # "We'll be right back!"
}
"""Ids of the labelled pages that are no page, by looking at each."""


PART = 1 if LONG else 0.2  # of the pages that are there, at least
LONG_CHARS = 3_000  # of the main text of an article


class Label(msgspec.Struct):
    id: str
    url: str = ""
    page_type: str = ""
    articleBody: str | None = None


class Labelled(NamedTuple):
    label: Label
    found: Inspected


def host_of(label: Label) -> str:
    return urlsplit(label.url or "").hostname or label.id


def read(shared: Path) -> Iterator[tuple[Label, bytes]]:
    for source in sorted((shared / "data" / "pages").iterdir()):
        for line in (source / "gold.jsonl").read_bytes().splitlines():
            label = msgspec.json.decode(line, type=Label)
            if not (LONG or zlib.crc32(host_of(label).encode()) % 4 == 0 or label.id[:10] in NO_PAGES):
                continue
            body = (source / "html" / f"{label.id}.html.zst").read_bytes()
            yield label, zstandard.ZstdDecompressor().decompress(body, max_output_size=1 << 26)


@pytest.fixture(scope="module")
def inspected(shared: Path) -> list[Labelled]:
    return [Labelled(label, inspect(label.url, 200, {}, html, "")) for label, html in read(shared)]


@pytest.mark.data
@pytest.mark.slow
def test_labelled_pages_are_pages(inspected: list[Labelled]) -> None:
    """Of the labelled pages, at most one is taken for no page that is one."""
    named = {page.label.id[:10]: page.found.reason for page in inspected if page.found.reason}
    assert len(inspected) > 3_000 * PART
    assert len({key: reason for key, reason in named.items() if NO_PAGES.get(key) != reason}) <= 1, named
    assert len(NO_PAGES.keys() - named) <= 1


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("sign", ["Coming soon", "Forbidden", "Just a moment", "404"])
def test_articles_with_the_title_of_no_page_are_pages(shared: Path, sign: str) -> None:
    """Of long articles with such a title and heading, at most 1 in 100 is taken for no page."""
    found = Counter(
        inspect("", 200, {}, retitled(html, sign.encode()), "").reason
        for label, html in read(shared)
        if label.page_type == "article" and len(label.articleBody or "") >= LONG_CHARS
    )
    assert found.total() > 300 * PART
    assert found.total() - found[""] <= max(1, 0.01 * found.total()), found


def retitled(html: bytes, sign: bytes) -> bytes:
    html = re.sub(rb"(?is)<title.*?</title>", b"", html, count=1)
    return b"<title>%s | Review</title>" % sign + re.sub(rb"(?is)<h1[ >].*?</h1>", b"<h1>%s</h1>" % sign, html, count=1)


@pytest.mark.data
@pytest.mark.slow
def test_labelled_pages_of_one_site_are_not_the_same(inspected: list[Labelled]) -> None:
    """No two pages of one host are taken for the same "not found" page."""
    hosts = defaultdict(list)
    for page in inspected:
        if (host := urlsplit(page.label.url).hostname) and not page.found.reason:
            hosts[host].append(page)
    pairs = [
        pair for pages in hosts.values() for pair in combinations(pages, 2) if pair[0].label.url != pair[1].label.url
    ]
    assert len(pairs) > 500 * PART
    assert [(a.label.url, b.label.url) for a, b in pairs if same(a.found.outline, b.found.outline)] == []
