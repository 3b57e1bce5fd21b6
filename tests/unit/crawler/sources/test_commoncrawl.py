"""Common Crawl on loopback: an index and WARC ranges become the pages that a direct import gives."""

from __future__ import annotations

import asyncio
import io
import json
import time
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from crawler.hit_records import KnownHits
from crawler.settings import CrawlSettings
from crawler.sources.commoncrawl import CommonCrawl
from crawler.sources.http_client import SourceClient
from crawler.sources.ledger import Ledger, Round
from crawler.sources.paced_client import PacedClient
from crawler.sources.searcher import RoundSummary, Searcher
from crawler.sources.settings import CommonCrawlSettings
from crawler.sources.source import ArchivePlace, BadAnswer, Query, QueryRefused
from crawler.warc.pages import ArchivedPage, pages_of
from stream.memory.log import MemoryLog
from stream.processing.metrics import Metrics
from stream.schema.records import Hit, Page, decode
from stream.schema.topics import HITS, PAGES, all_topics
from tests.support.search_desk import answer
from tests.support.search_engines import Asked, Engine, Reply

SOURCE = CommonCrawl(CommonCrawlSettings(crawl="CC-MAIN-2026-43"), CrawlSettings())
FILE = "crawl-data/CC-MAIN-2026-43/segments/1/warc/CC-MAIN-1.warc.gz"
NO_CAPTURES = json.dumps({"message": "No Captures found for: b.example/*"}).encode()
PARTITIONS = 2


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


def _serving(warc: bytes, lines: list[dict[str, str]]) -> Engine:
    def answering(asked: Asked) -> Reply:
        if asked.path == "/CC-MAIN-2026-43-index":
            if asked.query["url"] != "a.example/*":
                return Reply(NO_CAPTURES, 404)
            if asked.query["page"] != "0":
                return Reply(b"", 400)
            chosen = lines[: int(asked.query["limit"])]
            return Reply(b"\n".join(json.dumps(line).encode() for line in chosen) + b"\n")
        if asked.path == f"/{FILE}":
            first, _, last = asked.headers["Range"].removeprefix("bytes=").partition("-")
            return Reply(warc[int(first) : int(last) + 1], 206)
        return Reply(b"", 404)

    return Engine(answering)


def _search(
    engine: Engine,
    hosts: list[str],
    log: MemoryLog,
    count: int = 40,
    tries: int = 5,
    pages: int = 3,
    imports: KnownHits | None = None,
) -> RoundSummary:
    mine = CommonCrawlSettings(
        url=engine.url, data_url=engine.url, crawl="CC-MAIN-2026-43", rate=100.0, pages=pages, count=count, tries=tries
    )
    queries = [Query(host, host) for host in hosts]

    async def go() -> RoundSummary:
        async with SourceClient("test") as asker:
            turns = PacedClient(
                CommonCrawl(mine, CrawlSettings()),
                mine,
                Ledger(log, "commoncrawl"),
                asker.ask,
                clock=time.time,
                sleep=asyncio.sleep,
                stopped=lambda: False,
                metrics=Metrics(),
                patience_s=5.0,
            )
            searcher = Searcher(turns, PARTITIONS, imports or KnownHits(log))
            return await searcher.round(queries, Round(started_ms=1, total=len(queries)), kept=False)

    return asyncio.run(go())


def test_a_site_is_imported_as_its_warc_file_would_be(log: MemoryLog) -> None:
    """Index, ranges, pages and hits: each page is that of a direct import of the same file, and points at its hit."""
    warc, lines = _warc(4)
    with _serving(warc, [*lines, lines[0]]) as engine:
        summary = _search(engine, ["a.example", "b.example"], log)
    assert (summary.queries, summary.pages, summary.hits, summary.skipped, summary.ended) == (2, 4, 4, 0, "")
    assert (summary.outcomes["found"], summary.outcomes["empty"]) == (1, 1)
    pages = _pages(log)
    hits = [decode(Hit, m.value or b"") for p in range(PARTITIONS) for m in log.read(HITS, p)]
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
    """`count` bounds what is read of a page of the index."""
    warc, lines = _warc(5)
    with _serving(warc, lines) as engine:
        assert _search(engine, ["a.example"], log, count=2).pages == 2
    assert [asked.path for asked in engine.seen].count(f"/{FILE}") == 2


@pytest.mark.parametrize(
    ("at", "field", "more", "why", "outcome"),
    [(0, "offset", 7, "broken", "found"), (1, "length", 100_000, "lost", "failed")],
)
def test_a_record_that_cannot_be_read_costs_only_its_page(
    log: MemoryLog, at: int, field: str, more: int, why: str, outcome: str
) -> None:
    """The others are imported; of a range with another length than asked for, the query is no success."""
    warc, lines = _warc(2)
    lines[at][field] = str(int(lines[at][field]) + more)
    with _serving(warc, lines) as engine:
        summary = _search(engine, ["a.example"], log, tries=1, pages=1)
    assert (summary.pages, summary.skipped_reasons, summary.outcomes) == (1, {why: 1}, {outcome: 1})


def test_pages_that_are_there_are_not_appended_again(log: MemoryLog) -> None:
    """By a round that is repeated, or by a line that the index has twice: each record is on the log once."""
    warc, lines = _warc(3)
    lines[2] = {**lines[0], "url": "https://a.example/again"}
    with _serving(warc, lines) as engine:
        first, second = (_search(engine, ["a.example"], log) for _ in range(2))
    assert (first.hits, first.pages, first.skipped_reasons) == (2, 2, {"known": 1})
    assert (second.hits, second.pages, second.skipped_reasons) == (0, 0, {"known": 3})
    assert second.outcomes["found"] == 1
    assert len(_pages(log)) == 2


def test_a_search_knows_what_it_and_others_appended(log: MemoryLog, tmp_path: Path) -> None:
    """Rounds of one process, and another process in between: each record is appended once, whoever holds the lock."""
    warc, lines = _warc(4)
    ours, other = (KnownHits(log, tmp_path / "lock") for _ in range(2))
    with _serving(warc, lines) as engine:
        rounds = [(1, ours), (2, ours), (3, other), (3, ours), (4, ours)]
        appended = [_search(engine, ["a.example"], log, count=n, imports=by).pages for n, by in rounds]
    assert appended == [1, 1, 1, 0, 1]
    assert len(_pages(log)) == 4


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
    """Paths out of the archive, ranges without bounds, and what is no HTML page."""
    line = {**_warc(1)[1][0], **changed}
    results = SOURCE.results(answer(line), 1)
    assert (list(results.found), len(results.bad)) == ([], 1)


def test_a_query_is_a_host_name() -> None:
    """A URL stands for its host; words are refused."""
    assert "url=a.example%2F%2A" in SOURCE.request(Query("q", "https://A.example/x"), 1).url
    with pytest.raises(QueryRefused, match="host name"):
        SOURCE.request(Query("q", "how to garden"), 1)


def test_a_server_that_ignores_ranges_is_not_read() -> None:
    """It would send the whole file, a gigabyte."""
    with pytest.raises(BadAnswer, match="whole file"):
        SOURCE.record(answer({}), ArchivePlace(FILE, 0, 10))
    assert SOURCE.record(answer({}, status=404), ArchivePlace(FILE, 0, 10)) == "http_404"
