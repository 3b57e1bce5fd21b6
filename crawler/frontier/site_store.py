"""Access to the rows of one partition: sites, URLs and queues change together, so that their sums agree."""

from __future__ import annotations

import bisect

from crawler.frontier.rows import (
    MAY_PASS,
    NO_SUMS,
    TOTALS_KEY,
    Place,
    Priority,
    SiteRow,
    Stop,
    Sums,
    UrlRow,
    pack,
    queue_key,
    queue_prefix,
    revisit_key,
    revisit_of_key,
    revisit_prefix,
    robots_key,
    scheme_bit,
    site_key,
    sitemap_key,
    summed,
    tdm_key,
    unpack,
    url_key,
)
from crawler.frontier.statuses import Status
from crawler.frontier.stored_times import StoredClock, believe
from crawler.settings import CrawlSettings
from stream.processing.state import KeyedState

_HEADS = 8  # places of a queue kept in its site's row
STEP = 100  # URLs of a site processed without a request in one step; the rest follows at once
MAY_REOPEN = MAY_PASS | {Stop.DECIDED, Stop.EXCLUDED}


class SiteStore:
    """The rows during one step. Methods change `row` in place; `save` stores it."""

    def __init__(self, state: KeyedState, settings: CrawlSettings, now_ms: int) -> None:
        self.state = state
        self.settings = settings
        self.now_ms = now_ms
        self.clock = StoredClock(state, now_ms)
        self._stored: dict[str, Sums] = {}  # contribution of the stored rows to the totals
        self._statuses: dict[bytes, Status | None] = {}  # of the URLs read; None = not stored

    # Sites

    def site(self, site: str) -> SiteRow | None:
        """A site, or None if it is unknown."""
        value = self.state.get(site_key(site))
        return self.read(value) if value is not None else None

    def read(self, value: bytes) -> SiteRow:
        """A site from its stored row."""
        row = self._unpack(value, limit=self.clock.is_doubtful)
        self._stored[row.site] = self._sums(row)
        return row

    def look(self, value: bytes) -> SiteRow:
        """The same for a reader, which does not save it."""
        return self._unpack(value, limit=self.clock.was_ahead)

    def _unpack(self, value: bytes, *, limit: bool) -> SiteRow:
        row = unpack(SiteRow, value)
        if limit:
            believe(row, self.settings, self.now_ms)
        return row

    def new_site(self, site: str) -> SiteRow:
        """A new site."""
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
        return row.queued > 0 or self.wants_sitemap(row)

    def stop(self, row: SiteRow, reason: str) -> None:
        """Make no more requests to a site, and drop its texts and sitemaps; the first reason stays."""
        if row.stopped:
            return
        row.stopped, row.stopped_at = reason, self.now_ms
        row.robots_until = row.tdm_until = 0
        for key in (robots_key, tdm_key, sitemap_key):
            self.state.delete(key(row.site))

    def may_reopen(self, row: SiteRow) -> bool:
        """Whether the stop of a site may be lifted."""
        return row.stopped in MAY_REOPEN

    def wants_sitemap(self, row: SiteRow) -> bool:
        """Whether sitemaps are still to be read, and the budget has room for their URLs."""
        room = row.spent + row.wanted < self.settings.page_budget
        wanted = self.settings.use_sitemaps and self.settings.sitemap_files > 0
        return wanted and not row.sitemaps_done and room and bool(row.origin)

    def has_room(self, row: SiteRow) -> bool:
        """Whether a site may get more URLs than are queued."""
        planned = row.spent + row.queued - row.again
        return planned < self.settings.page_budget and row.known < self.settings.url_cap

    def _sums(self, row: SiteRow) -> Sums:
        """The contribution of a site to the totals."""
        active = self.has_work(row)
        stopped = bool(row.stopped)
        parked = active and not stopped and row.parked_until > 0
        resting = not active and not stopped
        return (1, active, stopped, row.queued, row.fetched, 0, parked, resting), tuple(row.urls) or NO_SUMS[1]

    # URLs

    def url(self, site: str, page: bytes) -> UrlRow | None:
        """A URL, or None if it is unknown."""
        key = url_key(site, page)
        value = self.state.get(key)
        found = unpack(UrlRow, value) if value is not None else None
        self._statuses[key] = found.status if found is not None else None
        return found

    def stored_url(self, site: str, page: bytes) -> UrlRow:
        """A URL of the queue or of the revisits."""
        found = self.url(site, page)
        assert found is not None, "it has a row"
        return found

    def put_url(self, row: SiteRow, page: bytes, found: UrlRow) -> None:
        """Store a URL, and update the counts by status."""
        key = url_key(row.site, page)
        if key not in self._statuses:
            self.url(row.site, page)
        before = self._statuses[key]
        if before is not found.status:
            if before is not None:
                row.count(before, -1)
            row.count(found.status, 1)
            row.schemes |= scheme_bit(found.url)
            self._statuses[key] = found.status
        self.state.put(key, pack(found))

    def forget_url(self, row: SiteRow, page: bytes, found: UrlRow) -> None:
        """Remove a URL as if it had never been discovered."""
        key = url_key(row.site, page)
        self.state.delete(key)
        self._statuses[key] = None
        row.count(found.status, -1)

    # The queue

    def head(self, row: SiteRow) -> tuple[Priority, bytes] | None:
        """Priority and page at the head of a site's queue."""
        if row.queued and not row.heads:
            row.heads = self.places(row.site, _HEADS)
        return (Priority(row.heads[0][0]), row.heads[0][2]) if row.heads else None

    def places(self, site: str, limit: int) -> list[Place]:
        """The first places of a site's queue."""
        return [
            (key[-9], int.from_bytes(key[-8:], "big"), page) for key, page in self.state.scan(queue_prefix(site), limit)
        ]

    def queue(self, row: SiteRow, page: bytes, found: UrlRow, place: Priority | None = None) -> None:
        """Append a URL to the queue of its priority, or of `place`, and store it."""
        self._unschedule(row, page, found)
        found.place = found.priority if place is None else place
        found.number = row.next_number
        row.next_number += 1
        entry = (int(found.place), found.number, page)
        if len(row.heads) == row.queued or (row.heads and entry < row.heads[-1]):  # else others stand between
            bisect.insort(row.heads, entry)
            del row.heads[_HEADS:]
        self._count_queued(row, found.place, 1)
        self.state.put(queue_key(row.site, found.place, found.number), page)
        self.put_url(row, page, found)

    def unqueue(self, row: SiteRow, found: UrlRow) -> None:
        """Take a URL out of the queue; the caller stores it."""
        assert found.place is not None, "only what is queued leaves the queue"
        self.state.delete(queue_key(row.site, found.place, found.number))
        self._count_queued(row, found.place, -1)
        row.heads = [place for place in row.heads if place[:2] != (found.place, found.number)]
        found.place = None

    def _count_queued(self, row: SiteRow, place: Priority, change: int) -> None:
        row.queued += change
        row.wanted += change * (place < Priority.LINK)
        row.again += change * (place is Priority.AGAIN)

    # Revisits

    def schedule(self, row: SiteRow, page: bytes, found: UrlRow, from_ms: int) -> None:
        """Store a URL that is done, and schedule the revisit of a page, counted from `from_ms`."""
        self._unschedule(row, page, found)
        if found.status is Status.FETCHED and self.settings.refetch_fetched_s > 0:
            found.due = from_ms + int(1000 * self.settings.refetch_fetched_s)
            self.state.put(revisit_key(row.site, found.due, page), b"")
            row.revisit_at = min(row.revisit_at or found.due, found.due)
        self.put_url(row, page, found)

    def revisits(self, row: SiteRow, limit: int) -> list[bytes]:
        """Pages of a site whose revisits are due, the oldest first."""
        rows = self.state.scan(revisit_prefix(row.site), limit)
        found = (revisit_of_key(row.site, key) for key, _ in rows)
        return [page for due, page in found if due <= self.now_ms]

    def forget_revisits(self, row: SiteRow, limit: int) -> None:
        """Drop up to `limit` revisits."""
        found = self.state.scan(revisit_prefix(row.site), limit)
        for key, _ in found:
            self.state.delete(key)
        if len(found) == limit:
            self._look_ahead(row)
        else:
            row.revisit_at = 0

    def _unschedule(self, row: SiteRow, page: bytes, found: UrlRow) -> None:
        if found.due:
            self.state.delete(revisit_key(row.site, found.due, page))
            if found.due == row.revisit_at:
                self._look_ahead(row)
            found.due = 0

    def _look_ahead(self, row: SiteRow) -> None:
        first = self.state.scan(revisit_prefix(row.site), 1)
        row.revisit_at = revisit_of_key(row.site, first[0][0])[0] if first else 0
