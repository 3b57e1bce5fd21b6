"""Reports on a frontier: totals, queues, parked and stopped sites with their reasons, and single sites.

Reads the committed state once, in pages. Memory is bounded by the lines shown.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from crawler.frontier.rows import (
    TOTALS_KEY,
    Ask,
    Priority,
    SitemapRow,
    SiteRow,
    Totals,
    UrlRow,
    beyond_site,
    is_queue_key,
    is_site_key,
    refuse_other_format,
    robots_key,
    site_key,
    sitemap_key,
    unpack,
)
from crawler.frontier.site_store import SiteStore, url_key
from crawler.frontier.statuses import Status
from crawler.frontier.stored_times import StoredClock
from crawler.reasons import group_of_reason
from crawler.settings import SLOW_S, CrawlSettings
from stream.log.contract import Log, StateReader
from stream.processing.state import KeyedState
from stream.schema.topics import FRONTIER_STORE

T = TypeVar("T")

_PAGE = 1000  # rows read at a time
STATES = ("active", "parked", "resting", "stopped")
_ADS_TXT = {
    Ask.NOT_YET: "no page with ads yet",
    Ask.NOW: "to be asked for",
    Ask.DONE: "asked for",
    Ask.FORBIDDEN: "forbidden by robots.txt",
}
QUEUES = {Priority.HIT: "hits", Priority.SITEMAP: "sitemaps", Priority.LINK: "links", Priority.AGAIN: "again"}


def frontier_left(log: Log, partitions: int, store: str = FRONTIER_STORE) -> Totals:
    """The sums of all committed partitions, by one row of each. A crawl is complete when no site is `active`."""
    rows = (next(iter(log.scan_state(store, partition)), None) for partition in range(partitions))
    return _summed(row[1] for row in rows if row is not None and row[0] == TOTALS_KEY)


def frontier_now(log: Log, partitions: int) -> Totals:
    """As `frontier_left`; cheap on Kafka too, where it may miss the last commit."""
    return _summed(log.state_values(FRONTIER_STORE, partitions, TOTALS_KEY))


def _summed(rows: Iterable[bytes]) -> Totals:
    parts = [unpack(Totals, row) for row in rows]
    names = ("sites", "active", "stopped", "queued", "fetched", "preferring")
    return Totals(**{name: sum(getattr(totals, name) for totals in parts) for name in names})


def newest_row_at(log: Log, partitions: int, store: str = FRONTIER_STORE) -> int:
    """When the newest row of all partitions was written, ms, by the clock of its process; 0 = unknown."""
    newest = 0
    for partition in range(partitions):
        with log.read_state(store, partition) as state:
            newest = max(newest, StoredClock(KeyedState(state), 0).row.newest)
    return newest


class FrontierSiteLine(msgspec.Struct, frozen=True, kw_only=True):
    """A site in a list. Times are milliseconds UTC, 0 = none."""

    site: str
    state: str  # active | parked | resting | stopped
    due_at: int = 0  # when it is processed next
    parked_until: int = 0
    parked_why: str = ""
    stopped_why: str = ""
    stopped_at: int = 0
    revisit_at: int = 0
    queued: int = 0  # URLs
    fetched: int = 0  # pages
    preferences: list[str] = []  # on the use by AI, as `robots.txt:content-usage:train-ai=n`
    read_by: int = 0  # of the slow lane: when about its page budget is read, so that it is decided at the latest
    urls: dict[str, int] = {}  # status -> URLs


@dataclass(slots=True)
class FrontierReport:
    """A report on a whole frontier."""

    sites: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATES, 0))  # state -> sites
    due: int = 0  # active sites that are due now, also those in flight
    queued: int = 0  # URLs
    fetched: int = 0  # pages
    parked_reasons: Counter[str] = field(default_factory=Counter)  # reason -> sites
    stopped_reasons: Counter[str] = field(default_factory=Counter)  # reason -> sites
    oldest_due: list[FrontierSiteLine] = field(default_factory=list)  # the longest waiting first
    parked_sites: list[FrontierSiteLine] = field(default_factory=list)  # the next to resume first
    stopped_sites: list[FrontierSiteLine] = field(default_factory=list)  # the last one first
    revisits: list[FrontierSiteLine] = field(default_factory=list)  # of resting sites, the next first


def _site_line(store: SiteStore, row: SiteRow) -> FrontierSiteLine:
    if row.stopped:
        state = "stopped"
    elif not store.has_work(row):
        state = "resting"
    else:
        state = "parked" if row.parked_until > store.now_ms else "active"
    return FrontierSiteLine(
        site=row.site,
        state=state,
        due_at=store.due(row) or 0,
        parked_until=row.parked_until if state == "parked" else 0,
        parked_why=row.parked_why if state == "parked" else "",
        stopped_why=row.stopped,
        stopped_at=row.stopped_at,
        revisit_at=0 if row.stopped else row.revisit_at,
        queued=row.queued,
        fetched=row.fetched,
        preferences=row.preferences,
        read_by=_read_by(store, row) if state in ("active", "parked") and row.delay_s > SLOW_S else 0,
        urls={status.label: row.urls[status] for status in Status} if row.urls else {},
    )


def _read_by(store: SiteStore, row: SiteRow) -> int:
    """When the pages of the budget are fetched, one delay apart, with robots.txt and tdmrep.json in between."""
    settings = store.settings
    pages = max(1, settings.page_budget - row.spent)
    others = 2 * row.delay_s / settings.robots_life_s(row.delay_s)  # share of the requests
    return max(row.next_start, store.now_ms) + int(1000 * row.delay_s * pages / (1 - others))


def lines_of(state: StateReader, settings: CrawlSettings, now_ms: int) -> Iterator[FrontierSiteLine]:
    """The sites of a partition. Raises OldFrontier."""
    require_readable(state)
    store = SiteStore(KeyedState(state), settings, now_ms)
    for _, value in sites_of(state):
        yield _site_line(store, store.look(value))


def frontier_lines(log: Log, settings: CrawlSettings, now_ms: int) -> Iterator[FrontierSiteLine]:
    """All sites of the frontier, a partition after the other. Raises as `Log.read_state`."""
    for partition in range(log.topics().get(f"state.{FRONTIER_STORE}", 0)):
        with log.read_state(FRONTIER_STORE, partition) as state:
            yield from lines_of(state, settings, now_ms)


def report_on(lines: Iterable[FrontierSiteLine], now_ms: int, limit: int | None) -> FrontierReport:
    """Sum up the sites; lists have at most `limit` lines (None: all)."""
    report = FrontierReport()
    due = Shortlist[FrontierSiteLine](limit, lambda line: (line.due_at, line.site))
    parked = Shortlist[FrontierSiteLine](limit, lambda line: (line.parked_until, line.site))
    stopped = Shortlist[FrontierSiteLine](limit, lambda line: (-line.stopped_at, line.site))
    revisits = Shortlist[FrontierSiteLine](limit, lambda line: (line.revisit_at, line.site))
    for line in lines:
        report.sites[line.state] += 1
        report.fetched += line.fetched
        report.queued += line.queued
        if line.state == "parked":
            report.parked_reasons[line.parked_why] += 1
            parked.add(line)
        elif line.state == "stopped":
            report.stopped_reasons[line.stopped_why] += 1
            stopped.add(line)
        elif line.state == "resting" and line.revisit_at:
            revisits.add(line)
        elif line.state == "active" and line.due_at <= now_ms:
            report.due += 1
            due.add(line)
    report.oldest_due, report.parked_sites = due.lines(), parked.lines()
    report.stopped_sites, report.revisits = stopped.lines(), revisits.lines()
    return report


class Shortlist(Generic[T]):
    """The first lines in some order, in bounded memory."""

    def __init__(self, limit: int | None, order: Callable[[T], tuple[int | str, ...]]) -> None:
        self._limit = limit
        self._order = order
        self._found: list[T] = []

    def add(self, line: T) -> None:
        self._found.append(line)
        if self._limit is not None and len(self._found) >= 2 * self._limit + _PAGE:
            self._found = self.lines()

    def lines(self) -> list[T]:
        most = len(self._found) if self._limit is None else self._limit
        return heapq.nsmallest(most, self._found, key=self._order)


def require_readable(state: StateReader) -> None:
    """Raises OldFrontier if another version wrote the rows."""
    refuse_other_format(state.get(TOTALS_KEY), "this log")


def sites_of(state: StateReader) -> Iterator[tuple[bytes, bytes]]:
    """The keys and packed rows of all sites, one lookup each; the other rows of a site are skipped."""
    after = TOTALS_KEY
    while rows := state.scan(b"", 1, after):
        key = rows[0][0]
        if is_site_key(key):
            yield rows[0]
        after = beyond_site(key)


def rows_of(state: StateReader, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    """All rows whose key begins with `prefix`, read in pages."""
    after: bytes | None = None
    while page := state.scan(prefix, _PAGE, after):
        yield from page
        after = page[-1][0]


def queued_pages(log: Log, partition: int, store: str = FRONTIER_STORE) -> Iterator[str]:
    """Page ids of the URLs of a partition that are queued or in flight. Raises OldFrontier."""
    for key, value in log.scan_state(store, partition):
        if key == TOTALS_KEY:
            refuse_other_format(value, f"partition {partition} of the store {store!r}")
        elif is_queue_key(key):
            yield value.hex()


class UrlLine(msgspec.Struct, frozen=True, kw_only=True):
    """A URL of a site. Times are milliseconds UTC, 0 = none."""

    url: str
    status: str
    reason: str = ""
    waits_in: str = ""  # its queue: hits, sitemaps, links or again; "" = none
    found_by: str = ""  # hits, sitemaps or links
    visits: int = 0
    attempts: int = 0
    hits: int = 0
    due_at: int = 0  # time of the next visit


class SiteReport(msgspec.Struct, frozen=True, kw_only=True):
    """A site with its politeness and its URLs."""

    line: FrontierSiteLine
    origin: str
    next_start_at: int
    delay_s: float
    failures: int  # connections in a row
    park_level: int
    robots_until: int  # the stored text is valid until then
    robots_bytes: int
    sitemaps: str  # read | not read yet
    sitemaps_left: int  # files to read
    ads_txt: str  # asked for | to be asked for | forbidden by robots.txt | no page with ads yet | "" = off
    urls_known: int
    urls: list[UrlLine]


def site_report(
    state: StateReader, settings: CrawlSettings, site: str, now_ms: int, limit: int | None
) -> SiteReport | None:
    """A site with its first `limit` URLs (None: all), queued ones first; None if unknown. Raises OldFrontier."""
    require_readable(state)
    value = state.get(site_key(site))
    if value is None:
        return None
    store = SiteStore(KeyedState(state), settings, now_ms)
    row = store.look(value)
    known = 0
    first = Shortlist[UrlRow](limit, _order)
    for _, packed in rows_of(state, url_key(site, b"")):
        known += 1
        url = unpack(UrlRow, packed)
        if row.stopped:
            url.due = 0  # a stopped site has no visits
        first.add(url)
    reading = state.get(sitemap_key(site))
    return SiteReport(
        line=_site_line(store, row),
        origin=row.origin,
        next_start_at=row.next_start,
        delay_s=row.delay_s,
        failures=row.failures,
        park_level=row.park_level,
        robots_until=row.robots_until,
        robots_bytes=len(state.get(robots_key(site)) or b""),
        sitemaps="read" if row.sitemaps_done else "not read yet",
        ads_txt=_ADS_TXT[row.ads_txt] if settings.ask_ads_txt else "",
        sitemaps_left=len(unpack(SitemapRow, reading).pending) if reading is not None else 0,
        urls_known=known,
        urls=[_line(url) for url in first.lines()],
    )


def stored_rows(state: StateReader, site: str, pages: Iterable[bytes]) -> tuple[SiteRow | None, UrlRow | None]:
    """The rows of a site and of the first of these pages that it knows. Raises OldFrontier."""
    require_readable(state)
    value = state.get(site_key(site))
    known = (state.get(url_key(site, page)) for page in pages)
    url = next((unpack(UrlRow, packed) for packed in known if packed is not None), None)
    return (unpack(SiteRow, value) if value is not None else None), url


def why_no_page(state: StateReader, settings: CrawlSettings, site: str, now_ms: int) -> str:
    """The reason why a site has no page, in a few words. Raises OldFrontier."""
    known = site_report(state, settings, site, now_ms, _PAGE)
    if known is None:
        return "not yet crawled"
    reasons = Counter(group_of_reason(url.reason) for url in known.urls)
    reasons[""] = 0
    of_site = group_of_reason(known.line.stopped_why or known.line.parked_why)
    return of_site or max(reasons, key=reasons.__getitem__) or ("not yet crawled" if known.line.queued else "no page")


def _order(url: UrlRow) -> tuple[int, int, int, str]:
    """Queued URLs first, in their order; then revisits by time; then the rest by status."""
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
