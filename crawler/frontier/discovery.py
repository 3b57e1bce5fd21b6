"""URLs that no hit names: from sitemaps, links and redirects."""

from __future__ import annotations

import itertools

from crawler.fetch.jobs import FetchOutcome, FetchResult
from crawler.frontier.page_log import PageLog
from crawler.frontier.rows import Priority, SiteRow, UrlRow, scheme_bit
from crawler.frontier.site_store import SiteStore
from crawler.frontier.statuses import Status
from crawler.robots.rules import RobotsRules
from crawler.web.links import internal_links
from crawler.web.urls import host_of, other_scheme, page_bytes

REFUSED_CAP = 100  # forbidden URLs of one page or sample: a site's patterns may be slow
_LINKS_CAP = 1000  # per page


class Discovery:
    """Adds discovered URLs. Methods change `row` in place."""

    def __init__(self, store: SiteStore) -> None:
        self._store = store

    def add(self, row: SiteRow, url: str, priority: Priority, depth: int, rules: RobotsRules) -> bool:
        """Queue a URL if it is new and allowed; False if robots.txt forbids it."""
        page = page_bytes(url)
        if row.known >= self._store.settings.url_cap or self._store.url(row.site, page):
            return True
        twin = other_scheme(url)
        if row.schemes & scheme_bit(twin) and self._store.url(row.site, page_bytes(twin)):
            return True
        if not rules.allows(url):
            return False
        row.known += 1
        self._store.queue(row, page, UrlRow(url, priority=priority, depth=depth))
        return True

    def add_links(self, row: SiteRow, found: UrlRow, answer: FetchResult) -> None:
        """Queue links of a page, up to the budget."""
        settings, rules = self._store.settings, answer.job.rules
        if not settings.use_links or found.depth >= settings.link_depth or rules is None:
            return
        if not self._store.has_room(row) or host_of(answer.final_url) != row.site:
            return
        if any(signal.endswith((":nofollow", ":none")) for signal in answer.opt_out):
            return
        refused = 0
        for url in itertools.islice(internal_links(answer.body, answer.encoding, answer.final_url), _LINKS_CAP):
            if not self._store.has_room(row) or refused >= REFUSED_CAP:
                return
            refused += not self.add(row, url, Priority.LINK, found.depth + 1, rules)

    def is_known_page(self, row: SiteRow, answer: FetchResult) -> bool:
        """Whether a redirect led to a page of the site that is known under another URL."""
        if answer.final_url == answer.job.url or host_of(answer.final_url) != row.site:
            return False
        end = self._store.url(row.site, page_bytes(answer.final_url))
        if end is None:
            return False
        return end.has_page or end.status is Status.REDIRECTION or end.reason == "same_page"

    def note_redirect(self, row: SiteRow, answer: FetchResult, pages: PageLog) -> None:
        """Record a redirect's target, so that it is not fetched as another page."""
        if answer.final_url == answer.job.url or host_of(answer.final_url) != row.site:
            return
        page = page_bytes(answer.final_url)
        end = self._store.url(row.site, page)
        if end is None:
            end = UrlRow(answer.final_url)
        elif end.has_page:
            return
        elif end.is_queued:
            if end.hits:
                pages.end(row, page, end, FetchOutcome.REFUSED, "same_page")
                return
            self._store.unqueue(row, end)
        end.status, end.reason = Status.REDIRECTION, ""
        self._store.schedule(row, page, end, answer.started_ms)
