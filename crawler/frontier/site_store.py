"""Access to the rows of one partition: sites, URLs and queues change together, so that their sums agree."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Collection, Iterator

from crawler.frontier.rows import (
    MAY_PASS,
    NO_SUMS,
    TOTALS_KEY,
    Ask,
    Place,
    Priority,
    SitemapRow,
    SiteRow,
    Stop,
    Sums,
    UrlRow,
    pack,
    queue_prefix,
    revisit_prefix,
    robots_key,
    site_key,
    site_of_key,
    sitemap_key,
    summed,
    tdm_key,
    unpack,
)
from crawler.frontier.statuses import Status
from crawler.frontier.stored_times import StoredClock, believe
from crawler.settings import CrawlSettings
from crawler.web.urls import page_bytes
from stream.processing.stage import Context
from stream.processing.state import KeyedState
from stream.schema.records import Record, Sitemaps
from stream.schema.topics import SITEMAPS

_HEADS = 8  # places of a queue kept in its site's row
STEP = 100  # URLs of a site processed without a request in one step; the rest follows at once
MAY_REOPEN = MAY_PASS | {Stop.DECIDED, Stop.EXCLUDED}
_UNCOUNTED = {Stop.EXCLUDED, Stop.INTERNAL}  # no more is to be known of the site, or its rows may be broken


def url_key(site: str, page: bytes) -> bytes:
    """Key of a UrlRow."""
    return b"%s\0u%s" % (site.encode(), page)


def queue_key(site: str, priority: int, number: int) -> bytes:
    """Key of a place in the queue: ordered by priority, then by number."""
    return queue_prefix(site) + bytes([priority]) + number.to_bytes(8, "big")


def revisit_key(site: str, due: int, page: bytes) -> bytes:
    """Key of a revisit: ordered by time (ms)."""
    return revisit_prefix(site) + due.to_bytes(8, "big") + page


def revisit_of_key(site: str, key: bytes) -> tuple[int, bytes]:
    """Time and page of a revisit."""
    rest = key[len(revisit_prefix(site)) :]
    return int.from_bytes(rest[:8], "big"), rest[8:]


def scheme_bit(url: str) -> int:
    """The bit of a URL's scheme in `SiteRow.schemes`."""
    return 2 if url.startswith("https:") else 1


def due_sites(ctx: Context, limit: int, busy: Collection[str]) -> Iterator[tuple[int, int, bytes, bytes]]:
    """The due sites of a partition that are not `busy`, each once: (due time, partition, key, row).

    Reads `limit` of them at first, and more while the caller asks.
    """
    seen: set[bytes] = set()
    while True:
        wanted = limit + len(seen) + len(busy)
        rows = ctx.state.due(ctx.now_ms, wanted)
        for key, value, due_at in rows:
            if key not in seen and site_of_key(key) not in busy:
                seen.add(key)
                yield due_at, ctx.partition, key, value
        if len(rows) < wanted:
            return
        limit *= 2


class SiteStore:
    """The rows during one step. Methods change `row` in place; `save` stores it."""

    def __init__(
        self,
        state: KeyedState,
        settings: CrawlSettings,
        now_ms: int,
        emit: Callable[[str, Record], None] = lambda _topic, _record: None,
    ) -> None:
        self.state = state
        self.settings = settings
        self.now_ms = now_ms
        self.emit = emit
        self.clock = StoredClock(state, now_ms)
        self._stored: dict[str, Sums] = {}  # contribution of the stored rows to the totals
        self._statuses: dict[bytes, Status | None] = {}  # of the URLs read; None = not stored

    # Sites

    def site(self, site: str) -> SiteRow | None:
        value = self.state.get(site_key(site))
        return self.read(value) if value is not None else None

    def read(self, value: bytes) -> SiteRow:
        row = self.look(value)
        self._stored[row.site] = self._sums(row)
        return row

    def look(self, value: bytes) -> SiteRow:
        """The same for a reader, which does not save it."""
        row = unpack(SiteRow, value)
        if self.clock.was_ahead:
            believe(row, self.settings, self.now_ms)
        return row

    def new_site(self, site: str) -> SiteRow:
        return SiteRow(site, next_start=self.now_ms, delay_s=self.settings.delay_s)

    def save(self, row: SiteRow) -> None:
        """Store a site with its due time, and update the totals. A stored site must have been read here."""
        sums, stored = self._sums(row), self._stored.get(row.site, NO_SUMS)
        if sums != stored:
            self._stored[row.site] = sums
            self.state.put(TOTALS_KEY, summed(self.state.get(TOTALS_KEY), sums, stored))
        self.state.put(site_key(row.site), pack(row), self.due(row))

    def forget_site(self, row: SiteRow) -> None:
        """Take a site out of the totals; the caller deletes its rows."""
        stored = self._stored.pop(row.site, NO_SUMS)
        self.state.put(TOTALS_KEY, summed(self.state.get(TOTALS_KEY), NO_SUMS, stored))

    def due(self, row: SiteRow) -> int | None:
        """When a site is processed next; None if there is nothing to do."""
        if row.stopped:
            return self.now_ms if self.has_work(row) else None
        if self.has_work(row):
            return row.next_start
        ahead = [at for at in (row.revisit_at, row.sitemaps_at if self.has_room(row) else 0) if at]
        return max(row.next_start, min(ahead)) if ahead else None

    def has_work(self, row: SiteRow) -> bool:
        """Whether a site has something to do now, beyond later revisits."""
        if row.stopped:
            return row.queued > 0 or (row.revisit_at > 0 and not self.may_reopen(row))
        return row.queued > 0 or self.wants_sitemap(row) or self.wants_ads_txt(row)

    def stop(self, row: SiteRow, reason: str) -> None:
        """Make no more requests to a site, drop its texts, and count its sitemaps so far; the first reason stays."""
        if row.stopped:
            return
        row.stopped, row.stopped_at = reason, self.now_ms
        row.robots_until = row.tdm_until = 0
        value = self.state.get(sitemap_key(row.site))
        if value is not None and reason not in _UNCOUNTED:
            reading = unpack(SitemapRow, value)
            self.count_sitemaps(row, reading, is_part=bool(reading.pending))
        for key in (robots_key, tdm_key, sitemap_key):
            self.state.delete(key(row.site))

    def count_sitemaps(self, row: SiteRow, reading: SitemapRow, *, is_part: bool = False) -> None:
        """Emit what the sitemaps list. A reading that stopped early, or has a gap, replaces no fuller count."""
        is_part |= reading.missed
        if not reading.good or (is_part and reading.urls <= row.listed):
            return
        row.listed = reading.urls
        counts = Sitemaps(
            id=row.site,
            site=row.site,
            urls=reading.urls,
            files_read=reading.good,
            files_listed=reading.files,
            months=dict(sorted(reading.months.items())),
            read_at=self.now_ms,
        )
        self.emit(SITEMAPS, counts)

    def may_reopen(self, row: SiteRow) -> bool:
        return row.stopped in MAY_REOPEN

    def wants_sitemap(self, row: SiteRow) -> bool:
        """Whether sitemaps are still to be read, and the budget has room for their URLs."""
        room = row.spent + row.wanted < self.settings.page_budget
        return self.settings.use_sitemaps and not row.sitemaps_done and room and bool(row.origin)

    def wants_ads_txt(self, row: SiteRow) -> bool:
        """Whether ads.txt is to be requested."""
        return self.settings.ask_ads_txt and row.ads_txt is Ask.NOW

    def has_room(self, row: SiteRow) -> bool:
        """Whether a site may get more URLs than are queued."""
        planned = row.spent + row.queued - row.again
        return planned < self.settings.page_budget and row.known < self.settings.url_cap

    def _sums(self, row: SiteRow) -> Sums:
        active = self.has_work(row)
        stopped = bool(row.stopped)
        parked = active and not stopped and row.parked_until > 0
        resting = not active and not stopped
        sums = (1, active, stopped, row.queued, row.fetched, 0, parked, resting)
        return sums, tuple(row.urls) or NO_SUMS[1], bool(row.preferences)

    # URLs

    def url(self, site: str, url: str) -> UrlRow | None:
        return self._url(url_key(site, page_bytes(url)))

    def _url(self, key: bytes) -> UrlRow | None:
        value = self.state.get(key)
        url_row = unpack(UrlRow, value) if value is not None else None
        self._statuses[key] = url_row.status if url_row is not None else None
        return url_row

    def stored_url(self, site: str, page: bytes) -> UrlRow:
        """A URL of the queue or of the revisits."""
        url_row = self._url(url_key(site, page))
        assert url_row is not None, "it has a row"
        return url_row

    def put_url(self, row: SiteRow, url_row: UrlRow) -> None:
        """Store a URL, and update the counts by status."""
        key = url_key(row.site, url_row.page)
        if key not in self._statuses:
            self._url(key)
        before = self._statuses[key]
        if before is not url_row.status:
            if before is not None:
                row.count(before, -1)
            row.count(url_row.status, 1)
            row.schemes |= scheme_bit(url_row.url)
            self._statuses[key] = url_row.status
        self.state.put(key, pack(url_row))

    def forget_url(self, row: SiteRow, url_row: UrlRow) -> None:
        """Remove a queued URL as if it had never been discovered."""
        self._unqueue(row, url_row)
        key = url_key(row.site, url_row.page)
        self.state.delete(key)
        self._statuses[key] = None
        row.count(url_row.status, -1)

    # The queue

    def head(self, row: SiteRow) -> tuple[Priority, bytes] | None:
        if row.queued and not row.heads:
            row.heads = self.places(row.site, _HEADS)
        return (Priority(row.heads[0][0]), row.heads[0][2]) if row.heads else None

    def places(self, site: str, limit: int) -> list[Place]:
        return [
            (key[-9], int.from_bytes(key[-8:], "big"), page) for key, page in self.state.scan(queue_prefix(site), limit)
        ]

    def queue(self, row: SiteRow, url_row: UrlRow, place: Priority | None = None) -> None:
        """Append a URL to the queue of its priority, or of `place`, out of any other, and store it."""
        if url_row.is_queued:
            self._unqueue(row, url_row)
        self._unschedule(row, url_row)
        url_row.place = url_row.priority if place is None else place
        url_row.number = row.next_number
        row.next_number += 1
        entry = (int(url_row.place), url_row.number, url_row.page)
        if len(row.heads) == row.queued or (row.heads and entry < row.heads[-1]):  # else others stand between
            bisect.insort(row.heads, entry)
            del row.heads[_HEADS:]
        self._count_queued(row, url_row.place, 1)
        self.state.put(queue_key(row.site, url_row.place, url_row.number), url_row.page)
        self.put_url(row, url_row)

    def _unqueue(self, row: SiteRow, url_row: UrlRow) -> None:
        assert url_row.place is not None, "only what is queued leaves the queue"
        self.state.delete(queue_key(row.site, url_row.place, url_row.number))
        self._count_queued(row, url_row.place, -1)
        row.heads = [place for place in row.heads if place[:2] != (url_row.place, url_row.number)]
        url_row.place = None

    def _count_queued(self, row: SiteRow, place: Priority, change: int) -> None:
        row.queued += change
        row.wanted += change * (place < Priority.LINK)
        row.again += change * (place is Priority.AGAIN)

    # Revisits

    def schedule(self, row: SiteRow, url_row: UrlRow, from_ms: int) -> None:
        """Store a URL that is done, out of the queue, and schedule the revisit of a page, counted from `from_ms`."""
        if url_row.is_queued:
            self._unqueue(row, url_row)
        self._unschedule(row, url_row)
        if url_row.status is Status.FETCHED and self.settings.refetch_fetched_s > 0:
            url_row.due = from_ms + int(1000 * self.settings.refetch_fetched_s)
            self.state.put(revisit_key(row.site, url_row.due, url_row.page), b"")
            row.revisit_at = min(row.revisit_at or url_row.due, url_row.due)
        self.put_url(row, url_row)

    def revisits(self, row: SiteRow, limit: int) -> list[bytes]:
        rows = self.state.scan(revisit_prefix(row.site), limit)
        revisits = (revisit_of_key(row.site, key) for key, _ in rows)
        return [page for due, page in revisits if due <= self.now_ms]

    def forget_revisits(self, row: SiteRow, limit: int) -> None:
        rows = self.state.scan(revisit_prefix(row.site), limit)
        for key, _ in rows:
            self.state.delete(key)
        if len(rows) == limit:
            self._look_ahead(row)
        else:
            row.revisit_at = 0

    def _unschedule(self, row: SiteRow, url_row: UrlRow) -> None:
        if url_row.due:
            self.state.delete(revisit_key(row.site, url_row.due, url_row.page))
            if url_row.due == row.revisit_at:
                self._look_ahead(row)
            url_row.due = 0

    def _look_ahead(self, row: SiteRow) -> None:
        first = self.state.scan(revisit_prefix(row.site), 1)
        row.revisit_at = revisit_of_key(row.site, first[0][0])[0] if first else 0
