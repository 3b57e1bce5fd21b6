"""URLs that no hit asked for: those of sitemaps and links, and those that redirects lead to."""

from __future__ import annotations

from crawler.jobs import Answer
from crawler.links import internal_links
from crawler.robots import RobotsRules
from crawler.rows import Priority, SiteRow, UrlRow
from crawler.site_store import SiteStore
from crawler.statuses import Status
from crawler.urls import host_of, other_scheme, page_bytes


class Discovery:
    """Finds URLs. A `row` that is passed in is changed in place."""

    def __init__(self, store: SiteStore) -> None:
        """Work on the rows of `store`."""
        self._store = store

    def add(self, row: SiteRow, url: str, priority: Priority, depth: int, rules: RobotsRules) -> None:
        """Queue a URL, if it is new and allowed."""
        page = page_bytes(url)
        if row.known >= self._store.settings.url_cap or self._store.url(row.site, page):
            return
        if self._store.url(row.site, page_bytes(other_scheme(url))) or not rules.allows(url):
            return
        row.known += 1
        self._store.queue(row, page, UrlRow(url, priority=priority, depth=depth))

    def add_links(self, row: SiteRow, found: UrlRow, answer: Answer) -> None:
        """Queue links of a page, as many as the budget has room for."""
        settings, rules = self._store.settings, answer.job.rules
        if not settings.use_links or found.depth >= settings.link_depth or rules is None:
            return
        if not self._store.has_room(row) or host_of(answer.final_url) != row.site:
            return
        if any(signal.endswith((":nofollow", ":none")) for signal in answer.opt_out):
            return
        for url in internal_links(answer.body, answer.encoding, answer.final_url):
            if not self._store.has_room(row):
                return
            self.add(row, url, Priority.LINK, found.depth + 1, rules)

    def note_redirect(self, row: SiteRow, answer: Answer) -> None:
        """Keep the URL that this one led to from being discovered as another page."""
        if answer.final_url == answer.job.url or host_of(answer.final_url) != row.site:
            return
        page = page_bytes(answer.final_url)
        if self._store.url(row.site, page) is None:
            found = UrlRow(answer.final_url, status=Status.REDIRECTION)
            self._store.schedule(row, page, found, answer.started_ms)
