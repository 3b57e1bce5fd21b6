"""Common Crawl: its index and WARC ranges give the same pages as a direct import."""

from __future__ import annotations

import io
import json
import time
from urllib.parse import parse_qsl, urlsplit

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from crawler.settings import CrawlSettings
from crawler.sources.commoncrawl import CommonCrawl
from crawler.sources.settings import CommonCrawlSettings
from crawler.sources.source import ArchivePlace, Query, QueryRefused, SourceAnswer, SourceRefused, SourceRequest
from crawler.warc.pages import ArchivedPage, pages_of
from stream.memory.log import MemoryLog
from stream.schema.records import Page, decode
from stream.schema.topics import PAGES, all_topics
from tests.support.web.search_desk import PARTITIONS, Desk, answer

SOURCE = CommonCrawl(CommonCrawlSettings(crawl="CC-MAIN-2026-43"))
RULES = CrawlSettings()
FILE = "crawl-data/CC-MAIN-2026-43/segments/1/warc/CC-MAIN-1.warc.gz"
NO_CAPTURES = json.dumps({"message": "No Captures found for: b.example/*"}).encode()
HOST = Query("a.example", "a.example")


@pytest.fixture
def log() -> MemoryLog:
    """A log with every topic."""
    made = MemoryLog()
    made.create(all_topics(PARTITIONS, "e"))
    return made


def _pages(log: MemoryLog) -> list[Page]:
    return [decode(Page, m.value or b"") for p in range(PARTITIONS) for m in log.read(PAGES, p)]


def _warc(pages: int) -> tuple[bytes, list[dict[str, str]]]:
    """A WARC file of pages of a.example, and its lines of the index."""
    made = io.BytesIO()
    writer = WARCWriter(made, gzip=True)
    lines = []
    for number in range(pages):
        url = f"https://a.example/{number}"
        head = StatusAndHeaders("200 OK", [("Content-Type", "text/html; charset=utf-8")], protocol="HTTP/1.1")
        body = f"<html><body><p>Page {number} of a garden.</p></body></html>".encode()
        start = made.tell()
        writer.write_record(writer.create_warc_record(url, "response", payload=io.BytesIO(body), http_headers=head))
        lines.append(
            {
                "urlkey": f"example,a)/{number}",
                "timestamp": "20240801000000",
                "url": url,
                "mime": "text/html",
                "mime-detected": "text/html",
                "status": "200",
                "length": str(made.tell() - start),
                "offset": str(start),
                "filename": FILE,
            }
        )
    return made.getvalue(), lines


def _desk(log: MemoryLog, warc: bytes, lines: list[dict[str, str]], tries: int = 5, **changed: int) -> Desk:
    """A search of Common Crawl that gets its answers from this file and index."""
    mine = CommonCrawlSettings(crawl="CC-MAIN-2026-43", rate=100.0, **{"pages": 3, **changed})  # type: ignore[arg-type]

    def answering(request: SourceRequest) -> SourceAnswer:
        url = urlsplit(request.url)
        query = dict(parse_qsl(url.query))
        status, body = 206, b""
        if url.path == f"/{FILE}":
            first, _, last = request.headers["Range"].removeprefix("bytes=").partition("-")
            body = warc[int(first) : int(last) + 1]
        elif query["url"] != "a.example/*":
            status, body = 404, NO_CAPTURES
        elif query["page"] != "0":
            status = 400
        else:
            status, body = 200, b"\n".join(json.dumps(line).encode() for line in lines[: int(query["limit"])]) + b"\n"
        return SourceAnswer(status, {}, body, desk.now)

    desk = Desk(log, CommonCrawl(mine), mine, answering, tries)
    desk.now = time.time()  # warcio dates its records
    return desk


def test_a_site_is_imported_as_its_warc_file_would_be(log: MemoryLog) -> None:
    """Each page equals that of a direct import of the same file, and points at its hit."""
    warc, lines = _warc(4)
    desk = _desk(log, warc, [*lines, lines[0]])
    summary = desk.run([HOST, Query("b.example", "b.example")], kept=False)
    assert (summary.queries, summary.pages, summary.hits, summary.skipped, summary.ended) == (2, 4, 4, 0, "")
    assert (summary.outcomes["found"], summary.outcomes["empty"]) == (1, 1)
    pages, hits = _pages(log), desk.hits()
    direct = [
        found.page
        for found in pages_of(io.BytesIO(warc), CrawlSettings(), now_ms=int(time.time() * 1000), source="commoncrawl")
        if isinstance(found, ArchivedPage)
    ]
    assert sorted(pages, key=lambda page: page.url) == direct
    assert {hit.id for hit in hits} == {ident for page in pages for ident in page.hits}
    assert all(hit.imported and hit.source == "commoncrawl" and hit.query_id == "a.example" for hit in hits)
    assert all(page.found_by == "import" for page in pages)


def test_no_more_pages_than_asked_are_imported(log: MemoryLog) -> None:
    """`count` limits the imported pages per page of the index."""
    warc, lines = _warc(5)
    desk = _desk(log, warc, lines, count=2, pages=1)
    assert desk.run([HOST], kept=False).pages == 2
    assert len(desk.asked) == 1 + 2


@pytest.mark.parametrize(
    ("at", "field", "more", "why", "outcome"),
    [(0, "offset", 7, "broken", "found"), (1, "length", 100_000, "lost", "failed")],
)
def test_a_record_that_cannot_be_read_costs_only_its_page(
    log: MemoryLog, at: int, field: str, more: int, why: str, outcome: str
) -> None:
    """An unreadable record costs only its page; if a range has the wrong length, the query fails."""
    warc, lines = _warc(2)
    lines[at][field] = str(int(lines[at][field]) + more)
    summary = _desk(log, warc, lines, tries=1, pages=1).run([HOST], kept=False)
    assert (summary.pages, summary.skipped_reasons, summary.outcomes) == (1, {why: 1}, {outcome: 1})


def test_pages_that_are_there_are_not_appended_again(log: MemoryLog) -> None:
    """A repeated round, or a repeated line of the index, appends each record once."""
    warc, lines = _warc(3)
    lines[2] = {**lines[0], "url": "https://a.example/again"}
    first, second = (_desk(log, warc, lines).run([HOST], kept=False) for _ in range(2))
    assert (first.hits, first.pages, first.skipped_reasons) == (2, 2, {"known": 1})
    assert (second.hits, second.pages, second.skipped_reasons) == (0, 0, {"known": 3})
    assert second.outcomes["found"] == 1
    assert len(_pages(log)) == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"filename": "../etc/passwd"},
        {"filename": "http://elsewhere.example/x"},
        {"length": "99999999999"},
        {"offset": "-1"},
        {"length": "0"},
        {"status": "301"},
        {"mime-detected": "application/pdf"},
    ],
)
def test_a_line_of_the_index_that_cannot_be_right_is_passed_over(changed: dict[str, str]) -> None:
    """Index lines with a path outside the archive, an unbounded range, or a capture other than HTML are skipped."""
    line = {**_warc(1)[1][0], **changed}
    results = SOURCE.results(answer(line), 1)
    assert (list(results.found), len(results.bad)) == ([], 1)


def test_a_query_is_a_host_name() -> None:
    """A query is a host name: a URL stands for its host; words are refused."""
    assert "url=a.example%2F%2A" in SOURCE.request(Query("q", "https://A.example/x"), 1).url
    with pytest.raises(QueryRefused, match="host name"):
        SOURCE.request(Query("q", "how to garden"), 1)


def test_a_server_that_ignores_ranges_is_not_read() -> None:
    """If a server ignores the range and sends the whole file, the response is not read."""
    with pytest.raises(SourceRefused, match="answers 200 in place of a record"):
        SOURCE.record(answer({}), ArchivePlace(FILE, 0, 10), RULES)
    assert SOURCE.record(answer({}, status=404), ArchivePlace(FILE, 0, 10), RULES) == "http_404"
