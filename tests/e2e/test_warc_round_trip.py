"""CRAWL with an archive: importing the archive gives the same pages as the crawl."""

from __future__ import annotations

import errno
import gzip
import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import brotli
import msgspec
import pytest
import zstandard
from aiohttp import web

from crawler.errors import ArchiveUnwritable
from crawler.settings import CrawlSettings
from crawler.warc.pages import ArchivedPage, Skipped, pages_of
from crawler.web.urls import host_of
from farmwatch.labels.labelled_pages import LabelledPages
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from stream.schema.records import Features, Hit, Page
from tests.support.front_door import article_html
from tests.support.web.crawl_driver import crawl, driving, hits_of, settings_for
from tests.support.web.loopback import Reply, Web, redirect
from tests.support.web.warc_check import Read, assert_clean, finished, read_all

HTML_TYPE = {"Content-Type": "text/html"}
SAME = [
    *("site", "page_id", "url", "outcome", "final_url", "status", "headers", "content_type", "encoding"),
    *("body_bytes", "truncated", "opt_out", "address"),
]


def html(words: int, text: str = "", encoding: str = "utf-8") -> bytes:
    return article_html(words).replace("A garden", f"A garden {text}").encode(encoding)


async def chunked(request: web.Request) -> web.StreamResponse:
    """A chunked page with gzip inside."""
    response = web.StreamResponse(headers={**HTML_TYPE, "Content-Encoding": "gzip"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    body = gzip.compress(html(300, "in chunks"))
    for start in range(0, len(body), 100):
        await response.write(body[start : start + 100])
    await response.write_eof()
    return response


def encoded(body: bytes, encoding: str) -> Reply:
    return Reply(body, headers={**HTML_TYPE, "Content-Encoding": encoding})


@pytest.fixture
def loopback() -> Iterator[Web]:
    """Sites with a page of each kind that an archive could change."""
    with Web() as served:
        served.routes |= {
            "a.test/robots.txt": Reply(b"User-agent: *\nDisallow: /private\n", headers={"Content-Type": "text/plain"}),
            "a.test/plain": Reply(html(400), headers={"Content-Type": "text/html; charset=utf-8"}),
            "a.test/gzip": encoded(gzip.compress(html(350, "gzip")), "gzip"),
            "a.test/deflate": encoded(zlib.compress(html(320, "deflate")), "deflate"),
            "a.test/br": encoded(brotli.compress(html(310, "br")), "br"),
            "a.test/not-gzip": encoded(html(200), "gzip"),
            "a.test/lie": encoded(brotli.compress(html(210)), "gzip"),
            "a.test/chunked": chunked,
            "a.test/latin": Reply(
                html(330, "Zürich café", "cp1252"), headers={"Content-Type": "text/html; charset=iso-8859-1"}
            ),
            "a.test/no-charset": Reply(html(340, "Привет", "cp1251").replace(b"<body>", b'<meta charset="cp1251">')),
            "a.test/long": Reply(html(30_000), headers=HTML_TYPE),
            "a.test/long-gzip": encoded(gzip.compress(html(30_000, "packed")), "gzip"),
            "a.test/empty": Reply(b"", headers=HTML_TYPE),
            "a.test/opted-out": Reply(html(300, "no"), headers={**HTML_TYPE, "X-Robots-Tag": "noai, noindex"}),
            "a.test/pdf": Reply(b"%PDF-1.7", headers={"Content-Type": "application/pdf"}),
            "a.test/gone": Reply(b"gone", status=410),
            "a.test/moved": redirect("/moved-on"),
            "a.test/moved-on": redirect("http://www.a.test/there"),
            "www.a.test/there": Reply(html(360, "there"), headers=HTML_TYPE),
            "a.test/away": redirect("http://b.test/plain"),
            "b.test/sitemap.xml": Reply(
                b"<urlset><url><loc>http://b.test/found</loc></url></urlset>", headers={"Content-Type": "text/xml"}
            ),
            "b.test/plain": Reply(html(380, "b") + b'<a href="/linked">x</a>', headers=HTML_TYPE),
            "b.test/found": Reply(html(390, "found"), headers=HTML_TYPE),
            "b.test/linked": Reply(html(370, "linked"), headers=HTML_TYPE),
        }
        yield served


HITS = hits_of(
    *(
        f"http://a.test/{path}"
        for path in (
            *("plain", "gzip", "deflate", "br", "not-gzip", "chunked", "latin", "no-charset", "long", "long-gzip"),
            *("lie", "empty", "opted-out", "pdf", "gone", "moved", "away", "private"),
        )
    ),
    "http://b.test/plain",
)


def features_of(pages: list[Page]) -> dict[str, Features]:
    """Features of pages by URL, measured in the order of their fetches."""
    measurer = Measurer(MeasureSettings())
    return {
        page.url: measurer.measure(
            page.final_url,
            zstandard.ZstdDecompressor().decompress(page.body),
            page.site,
            encoding=page.encoding,
            page_id=page.page_id,
            fetched_at=page.fetched_at,
        )
        for page in sorted(pages, key=lambda page: (page.fetched_at, page.url))
    }


def crawl_and_import(settings: CrawlSettings, hits: list[Hit]) -> tuple[list[Page], list[Page], list[Skipped]]:
    """The fetched pages of a crawl, and the pages and skipped records of its archive."""
    crawled = crawl(settings, hits)
    found: list[ArchivedPage | Skipped] = []
    for file in finished(Path(settings.warc_folder)):
        with file.open("rb") as stream:
            found += pages_of(stream, settings, now_ms=4 * 10**12)
    pages = [one.page for one in found if isinstance(one, ArchivedPage)]
    return [p for p in crawled if p.outcome == "fetched"], pages, [one for one in found if isinstance(one, Skipped)]


def assert_same(crawled: list[Page], imported: list[Page]) -> None:
    """Each crawled page is unchanged in the archive, and gives the same features."""
    told = {page.url: page for page in imported}
    assert sorted(told) == sorted(page.url for page in crawled) and len(told) == len(imported)
    for page in crawled:
        for name in SAME:
            assert getattr(told[page.url], name) == getattr(page, name), (page.url, name)
        # A redirect to the twin of a site: the crawl keeps the time of the site's own last request, for its spacing
        is_at_home = host_of(page.final_url) == page.site
        assert (told[page.url].fetched_at == page.fetched_at) is is_at_home, page.url
        unpacked = [zstandard.ZstdDecompressor().decompress(one.body) for one in (page, told[page.url])]
        assert unpacked[0] == unpacked[1]
    before, after = features_of(crawled), features_of(imported)
    assert any(features.text_digest for features in before.values())
    for url, features in before.items():
        for name in ("page_id", "url", "epoch", "text", "text_digest", "measures", "quality", "blocks", "extract_path"):
            assert getattr(after[url], name) == getattr(features, name), (url, name)


def test_an_import_of_what_a_crawl_wrote_is_that_crawl(loopback: Web, tmp_path: Path) -> None:
    """Pages, URLs, charsets, headers, times and features are equal; refused and failed fetches give no page."""
    settings = settings_for(loopback.target, warc_folder=str(tmp_path), body_bytes=100_000)
    crawled, imported, skipped = crawl_and_import(settings, HITS)
    names = ("a.test/moved", "a.test/long", "a.test/not-gzip", "b.test/found")
    assert {page.url for page in crawled} >= {f"http://{name}" for name in names}
    assert_same(crawled, imported)
    assert not any(one.is_fault for one in skipped)
    assert {one.reason for one in skipped} >= {"robots", "sitemap", "http_302", "http_410", "bad_encoding"}


def test_the_archive_holds_every_exchange_as_the_server_had_it(loopback: Web, tmp_path: Path) -> None:
    """The archive has a response for each request that the server saw, with its bytes; warcio finds no error."""
    settings = settings_for(loopback.target, warc_folder=str(tmp_path))
    crawl_and_import(settings, HITS)
    files = finished(tmp_path)
    assert_clean(files)
    records = read_all(files)
    responses = {r.headers["WARC-Target-URI"]: r for r in records if r.kind == "response"}
    assert sorted(responses) == sorted(f"http://{seen.host}{seen.path}" for seen in loopback.seen)
    assert len(responses) == sum(r.kind == "response" for r in records) == sum(r.kind == "request" for r in records)
    for path, route in loopback.routes.items():
        if isinstance(route, Reply) and route.status == 200 and "pdf" not in path:
            assert responses[f"http://{path}"].body == route.body, path
    in_chunks = responses["http://a.test/chunked"]
    assert ("X-Crawler-Transfer-Encoding", "chunked") in in_chunks.http
    assert gzip.decompress(in_chunks.body) == html(300, "in chunks")
    requests = [r for r in records if r.kind == "request"]
    assert all(_named(r, "User-Agent") == settings.user_agent for r in requests)
    assert {_named(r, "Host").partition(":")[0] for r in requests} == {"a.test", "www.a.test", "b.test"}


def _named(record: Read, name: str) -> str:
    return next(value for known, value in record.http if known.lower() == name.lower())


@pytest.mark.data
def test_real_pages_come_back_with_the_same_features(shared: Path, tmp_path: Path) -> None:
    """Labelled pages that are served, crawled, imported and measured have the same features."""
    found = LabelledPages(shared / "data" / "pages", on_bad=lambda _: None)
    some = found._pages(found.labels[:: max(1, len(found.labels) // 9)])
    bodies = [zstandard.ZstdDecompressor().decompress(page.body) for _, page in some]
    with Web() as served:
        for number, body in enumerate(bodies):
            how = number % 3
            sent = [body, gzip.compress(body), brotli.compress(body, quality=4)][how]
            headers = HTML_TYPE | ({}, {"Content-Encoding": "gzip"}, {"Content-Encoding": "br"})[how]
            served.routes[f"site{number}.test/page"] = Reply(sent, headers=headers)
        hits = hits_of(*(f"http://site{number}.test/page" for number in range(len(bodies))))
        settings = settings_for(served.target, warc_folder=str(tmp_path))
        settings = msgspec.structs.replace(settings, use_sitemaps=False, use_links=False)
        crawled, imported, _ = crawl_and_import(settings, hits)
    assert len(crawled) == len(bodies)
    assert_same(crawled, imported)


def test_a_disk_that_fills_stops_the_crawl_and_loses_no_page(
    loopback: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the archive cannot be written, no site gets a request; afterwards crawl and archive are complete."""
    settings = settings_for(loopback.target, warc_folder=str(tmp_path))
    write = os.write

    def full(fd: int, data: bytes) -> int:
        if str(tmp_path) in str(Path(f"/proc/self/fd/{fd}").readlink()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data)

    with driving(settings) as driver:
        driver.round(HITS)
        driver.run_until(lambda: len(driver.store.pages) >= 3)
        monkeypatch.setattr(os, "write", full)
        refused, asked, until = 0, 0, time.monotonic() + 20
        while refused < 20:
            assert time.monotonic() < until
            try:
                driver.round()
            except ArchiveUnwritable:
                driver.stage.lost(range(len(driver.store.states)))
                time.sleep(0.02)
                refused += 1
                asked = asked if refused > 5 else len(loopback.seen)  # requests in flight may end
        assert len(loopback.seen) == asked
        monkeypatch.undo()
        crawled = [page for page in driver.run() if page.outcome == "fetched"]
    assert len({page.id for page in driver.store.pages}) == len(driver.store.pages)
    assert {hit.id for hit in HITS} == {hit for page in driver.store.pages for hit in page.hits}
    assert_clean(finished(tmp_path))
    records = read_all(finished(tmp_path))[1:]
    archived = {record.headers["WARC-Target-URI"] for record in records if record.status == "200"}
    assert {page.final_url for page in crawled} <= archived
