"""The rows of one partition's frontier: sites, URLs and queues read and written together, so that their sums agree."""

from __future__ import annotations

from collections.abc import Callable

from crawler.jobs import Answer, Outcome
from crawler.rows import (
    FOUND_BY,
    TOTALS_KEY,
    Priority,
    SiteRow,
    Totals,
    UrlRow,
    pack,
    queue_key,
    queue_prefix,
    site_key,
    unpack,
)
from crawler.settings import CrawlSettings
from crawler.urls import fetch_id, page_id_of_normal
from stream.records import Page
from stream.state import KeyedState

_NOTHING = (0,) * len(Totals.__struct_fields__)


class SiteStore:
    """The rows during one batch. A `row` that is passed in is changed in place and stored by `save`."""

    def __init__(self, state: KeyedState, settings: CrawlSettings, emit: Callable[[Page], None], now_ms: int) -> None:
        """Read and write `state` at `now_ms`; page records go to `emit`."""
        self._state = state
        self._settings = settings
        self._emit = emit
        self._now = now_ms
        self._stored: dict[str, tuple[int, ...]] = {}  # what the stored rows add to the totals

    def wants_sitemap(self, row: SiteRow) -> bool:
        """Whether sitemaps are still to be read: not done, and the budget has room."""
        room = row.fetched + row.wanted < self._settings.page_budget
        return self._settings.use_sitemaps and not row.sitemaps_done and room and bool(row.origin)

    def head(self, site: str, limit: int = 1) -> list[tuple[Priority, str]]:
        """The next URLs of a site's queue, with their priority."""
        prefix = queue_prefix(site)
        rows = self._state.scan(prefix, limit)
        return [(Priority(key[len(prefix)]), url.decode()) for key, url in rows]

    def queue(self, row: SiteRow, key: bytes, found: UrlRow) -> None:
        """Put a URL at the end of its priority's queue, and store it."""
        found.number = row.next_number
        row.next_number += 1
        row.queued += 1
        row.wanted += found.priority < Priority.LINK
        self._state.put(queue_key(row.site, found.priority, found.number), found.url.encode())
        self._state.put(key, pack(found))

    def unqueue(self, row: SiteRow, found: UrlRow) -> None:
        """Take a URL out of the queue."""
        self._state.delete(queue_key(row.site, found.priority, found.number))
        row.queued -= 1
        row.wanted -= found.priority < Priority.LINK

    def end(
        self, row: SiteRow, key: bytes, found: UrlRow, outcome: Outcome, reason: str, answer: Answer | None = None
    ) -> None:
        """A queued URL is done with: record it, and take it out of the queue."""
        self.unqueue(row, found)
        self.record(row.site, found, outcome, reason, answer)
        self._state.put(key, pack(found))

    def record(self, site: str, found: UrlRow, outcome: Outcome, reason: str, answer: Answer | None = None) -> None:
        """Emit the page record of a URL and set its status."""
        found.status = {Outcome.FETCHED: "fetched", Outcome.REFUSED: "refused", Outcome.FAILED: "error"}[outcome]
        found.reason = reason
        page = Page(
            id=fetch_id(found.url, found.visit),
            site=site,
            page_id=page_id_of_normal(found.url),
            url=found.url,
            visit=found.visit,
            outcome=outcome.value,
            reason=reason,
            final_url=answer.final_url if answer else "",
            status=answer.status if answer else 0,
            headers=answer.headers if answer else {},
            content_type=answer.content_type if answer else "",
            encoding=answer.encoding if answer else "",
            body=answer.packed if answer else b"",
            body_bytes=len(answer.body) if answer else 0,
            truncated=answer.truncated if answer else False,
            fetched_at=answer.started_ms if answer else self._now,
            duration_ms=answer.duration_ms if answer else 0,
            found_by=FOUND_BY[Priority(found.priority)],
            opt_out=answer.opt_out if answer else [],
            hits=found.hits,
        )
        self._emit(page)

    def site(self, site: str) -> SiteRow | None:
        """A site, if it is known."""
        value = self._state.get(site_key(site))
        return self.read(value) if value is not None else None

    def read(self, value: bytes) -> SiteRow:
        """A site from its stored row."""
        row = unpack(SiteRow, value)
        self._stored[row.site] = self._sums(row)
        return row

    def url(self, key: bytes) -> UrlRow:
        """A URL that is known."""
        value = self._state.get(key)
        assert value is not None, "a queued URL has a row"
        return unpack(UrlRow, value)

    def due(self, row: SiteRow) -> int | None:
        """When a site is to be looked at next; None while there is nothing to do."""
        if row.stopped:
            return self._now if row.queued else None
        return row.next_start if row.queued or self.wants_sitemap(row) else None

    def save(self, row: SiteRow) -> None:
        """Store a site, which was read here if it was stored before, with its due time; and keep the totals right."""
        value = self._state.get(TOTALS_KEY)
        totals = unpack(Totals, value) if value is not None else Totals()
        sums = self._sums(row)
        for name, old, new in zip(Totals.__struct_fields__, self._stored.get(row.site, _NOTHING), sums, strict=True):
            setattr(totals, name, getattr(totals, name) + new - old)
        self._stored[row.site] = sums
        self._state.put(TOTALS_KEY, pack(totals))
        self._state.put(site_key(row.site), pack(row), self.due(row))

    def _sums(self, row: SiteRow) -> tuple[int, ...]:
        """What a site adds to each field of Totals."""
        return (1, self.due(row) is not None, bool(row.stopped), row.queued, row.fetched)
