"""Common Crawl: its index (CDXJ, as pywb serves it) lists a site's pages, its WARC files hold them.

A query is a host name. Pages are imported: no request goes to the site itself.
"""

from __future__ import annotations

import io
import re
from typing import Any
from urllib.parse import urlencode

import msgspec

from crawler.errors import UnusableUrl
from crawler.settings import CrawlSettings
from crawler.sources.answer_parsing import read_items, refuse_status, url_of, whole_number
from crawler.sources.http_client import ANSWER_CAP
from crawler.sources.settings import CommonCrawlSettings
from crawler.sources.source import (
    ArchivePlace,
    BadAnswer,
    MissingKey,
    Query,
    QueryRefused,
    Results,
    SearchResult,
    Source,
    SourceAnswer,
    SourceRefused,
    SourceRequest,
)
from crawler.warc.pages import ArchivedPage, pages_of
from crawler.web.inspection import Inspector
from crawler.web.urls import hit_url, host_of

_HTML = ("text/html", "application/xhtml+xml")
_FILE = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._/=-]{0,500}")
_BLOCKS = "1"  # of the index per page: about 3,000 lines
_SLOW = "it asks everybody to slow down"
_MEANS = {
    403: "too many requests from this address: lower search.commoncrawl.rate and wait a day",
    429: _SLOW,
    503: _SLOW,
}


class CommonCrawl(Source):
    """One crawl of Common Crawl."""

    name = "commoncrawl"
    pages_cap = 100

    def __init__(self, settings: CommonCrawlSettings, key: str = "") -> None:  # noqa: ARG002 - it takes none
        """Search the crawl `settings.crawl`. Raises MissingKey without a crawl."""
        super().__init__()
        if not settings.crawl:
            raise MissingKey(
                "commoncrawl needs the name of a crawl: set search.commoncrawl.crawl, such as CC-MAIN-2026-43"
                f" ({settings.url}/collinfo.json lists them)"
            )
        self._index = f"{settings.url.rstrip('/')}/{settings.crawl}-index"
        self._data = settings.data_url.rstrip("/")
        self._count = settings.count

    def request(self, query: Query, page: int) -> SourceRequest:
        try:
            host = host_of(hit_url(query.text if "://" in query.text else f"http://{query.text}"))
        except UnusableUrl as error:
            raise QueryRefused(f"a query of commoncrawl is a host name: {error}") from None
        fields = [
            ("url", f"{host}/*"),
            ("output", "json"),
            ("filter", "=status:200"),
            ("filter", r"~mime-detected:(text/html|application/xhtml\+xml)"),
            ("limit", str(self._count)),
            ("pageSize", _BLOCKS),
            ("page", str(page - 1)),
        ]
        return SourceRequest(f"{self._index}?{urlencode(fields)}")

    def results(self, answer: SourceAnswer, page: int) -> Results:
        if answer.status == 404 and b'"no captures' in answer.body[:200].lower():
            return Results((), 0)
        if answer.status in (400, 404) and page > 1:  # beyond the last page
            return Results((), 0)
        means = {**_MEANS, 404: "there is no such crawl: check search.commoncrawl.crawl"}
        refuse_status(self.name, answer, means)
        lines = [line for line in answer.body.split(b"\n") if line.strip()][: self._count]
        captures, bad = read_items(map(_line, lines), _capture)
        once = {capture.url: capture for capture in captures}
        return Results(list(once.values()), len(lines), bad, bool(lines))

    def record_request(self, place: ArchivePlace) -> SourceRequest:
        last = place.offset + place.length - 1
        headers = {"Range": f"bytes={place.offset}-{last}", "Accept-Encoding": "identity"}
        return SourceRequest(f"{self._data}/{place.file}", headers)

    def record(
        self, answer: SourceAnswer, place: ArchivePlace, crawl: CrawlSettings, inspector: Inspector | None = None
    ) -> ArchivedPage | str:
        """The page of a record, or why there is none; `crawl` has the rules for pages. Raises SourceError."""
        if answer.status == 404:
            return "http_404"
        if answer.status != 206:
            refuse_status(self.name, answer, _MEANS)
            raise SourceRefused(f"commoncrawl answers {answer.status} in place of a record")
        if len(answer.body) != place.length:
            raise BadAnswer(f"commoncrawl sent {len(answer.body)} bytes of a record of {place.length}")
        now_ms = int(answer.at_s * 1000)
        for page in pages_of(
            io.BytesIO(answer.body), crawl, now_ms=now_ms, source=self.name, offset=place.offset, inspector=inspector
        ):
            return page if isinstance(page, ArchivedPage) else "broken" if page.is_fault else page.reason
        return "no_response"


def _line(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _capture(item: dict[str, Any], place: int) -> SearchResult:
    if item.get("status", "200") != "200" or item.get("mime-detected", item.get("mime", _HTML[0])) not in _HTML:
        raise ValueError("is no HTML page")
    file, offset, length = item.get("filename"), whole_number(item.get("offset")), whole_number(item.get("length"))
    if not isinstance(file, str) or not _FILE.fullmatch(file):
        raise ValueError("names no file")
    if offset is None or not length or length > ANSWER_CAP:
        raise ValueError(f"names no range of at most {ANSWER_CAP} bytes")
    return SearchResult(url_of(item.get("url")), place, place=ArchivePlace(file, offset, length))
