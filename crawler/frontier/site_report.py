"""One site of a frontier in full: its row, its texts, and its URLs in the order in which they come."""

from __future__ import annotations

import heapq

import msgspec

from crawler.frontier.report import QUEUES, FrontierSiteLine, SiteLines, require_readable, rows_of
from crawler.frontier.rows import SitemapRow, SiteRow, UrlRow, robots_key, site_key, sitemap_key, unpack, url_key
from crawler.frontier.statuses import Status
from crawler.settings import CrawlSettings
from stream.log.contract import StateReader


class UrlLine(msgspec.Struct, frozen=True, kw_only=True):
    """A URL of a site. Times are milliseconds UTC, 0 = none."""

    url: str
    status: str
    reason: str = ""
    waits_in: str = ""  # the queue: hits, sitemaps, links or again; "" = it does not wait
    found_by: str = ""  # hits, sitemaps or links
    visits: int = 0
    attempts: int = 0
    hits: int = 0
    due_at: int = 0  # when it is asked for again


class SiteReport(msgspec.Struct, frozen=True, kw_only=True):
    """A site with its politeness and its URLs."""

    line: FrontierSiteLine
    origin: str
    next_start_at: int
    delay_s: float
    failures: int  # connections in a row
    park_level: int
    robots_until: int  # the text at hand is believed until then
    robots_bytes: int
    sitemaps: str  # read | not read yet
    sitemaps_left: int  # files to read
    urls_known: int
    urls: list[UrlLine]


def site_report(
    state: StateReader, settings: CrawlSettings, site: str, now_ms: int, limit: int | None
) -> SiteReport | None:
    """All of a site with its first `limit` URLs (None: all), those that wait first; None for an unknown one.

    Raises OldFrontier.
    """
    require_readable(state)
    value = state.get(site_key(site))
    if value is None:
        return None
    row = unpack(SiteRow, value)
    known = 0

    def lines() -> list[tuple[tuple[int, int, int, str], UrlLine]]:
        nonlocal known
        found = []
        for _, packed in rows_of(state, url_key(site, b"")):
            known += 1
            url = unpack(UrlRow, packed)
            if row.stopped:
                url.due = 0  # what was planned does not come, unless the site is opened again
            found.append((_order(url), _line(url)))
            if limit is not None and len(found) >= 2 * limit + 1000:
                found = heapq.nsmallest(limit, found, key=lambda item: item[0])
        return found

    found = sorted(lines(), key=lambda item: item[0])
    reading = state.get(sitemap_key(site))
    return SiteReport(
        line=SiteLines(state, settings, now_ms).line(row),
        origin=row.origin,
        next_start_at=row.next_start,
        delay_s=row.delay_s,
        failures=row.failures,
        park_level=row.park_level,
        robots_until=row.robots_until,
        robots_bytes=len(state.get(robots_key(site)) or b""),
        sitemaps="read" if row.sitemaps_done else "not read yet",
        sitemaps_left=len(unpack(SitemapRow, reading).pending) if reading is not None else 0,
        urls_known=known,
        urls=[line for _, line in found[:limit]],
    )


def _order(url: UrlRow) -> tuple[int, int, int, str]:
    """What waits first, in its order; then what is asked for again, by time; then the rest, by status."""
    if url.place is not None:
        return (0, int(url.place), url.number, url.url)
    return (1, 0, url.due, url.url) if url.due else (2, int(url.status), 0, url.url)


def _line(url: UrlRow) -> UrlLine:
    return UrlLine(
        url=url.url,
        status=Status(url.status).label,
        reason=url.reason,
        waits_in=QUEUES[url.place] if url.place is not None else "",
        found_by=QUEUES[url.priority],
        visits=url.visit,
        attempts=url.attempts,
        hits=len(url.hits),
        due_at=url.due,
    )
