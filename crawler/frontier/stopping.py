"""How a site is stopped, and how what is left of it is wound up."""

from __future__ import annotations

from crawler.fetch.jobs import FetchOutcome
from crawler.frontier.page_log import PageLog
from crawler.frontier.rows import Priority, SiteRow, sitemap_key
from crawler.frontier.site_rules import SiteRules
from crawler.frontier.site_store import STEP, SiteStore


class Stopping:
    """Stops sites. A `row` that is passed in is changed in place."""

    def __init__(self, store: SiteStore, pages: PageLog, rules: SiteRules) -> None:
        """Work on the rows of `store`."""
        self._store = store
        self._pages = pages
        self._rules = rules

    def stop(self, row: SiteRow, reason: str) -> None:
        """Ask nothing more of a site; the first reason stays."""
        if row.stopped:
            return
        row.stopped, row.stopped_at = reason, self._store.now_ms
        self._rules.forget(row)
        self._store.state.delete(sitemap_key(row.site))

    def wind_up(self, row: SiteRow) -> None:
        """A step through what is left of a stopped site.

        What hits asked for is recorded as refused, and what was only discovered is forgotten. A visit that would not
        have been the first leaves no record: the page has one.
        """
        for place, _, page in self._store.places(row.site, STEP):
            found = self._store.queued_url(row.site, page)
            if place == Priority.AGAIN:
                self._store.unqueue(row, found)
                self._store.schedule(row, page, found, self._store.now_ms)
            elif found.hits:
                self._pages.end(row, page, found, FetchOutcome.REFUSED, row.stopped)
            else:
                self._store.unqueue(row, found)
                self._store.forget_url(row, page, found)
                row.known -= 1
        if not row.queued and not self._store.may_reopen(row):
            self._store.forget_revisits(row, STEP)
