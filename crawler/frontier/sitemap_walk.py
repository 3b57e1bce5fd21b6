"""Reads the sitemaps of a site file by file, and keeps a sample of the URLs in them.

They are read again with the revisits, so that a site with room in its budget gets new URLs.
"""

from __future__ import annotations

from crawler.fetch.jobs import FetchResult, Job, RequestKind
from crawler.frontier.discovery import REFUSED_CAP, Discovery
from crawler.frontier.parking import park
from crawler.frontier.rows import Priority, SitemapRow, SiteRow, pack, sitemap_key, unpack
from crawler.frontier.site_store import SiteStore
from crawler.frontier.statuses import Status, refetch_s
from crawler.robots.rules import RobotsRules
from crawler.web.sitemaps import first_sitemaps, sample
from crawler.web.urls import is_at, is_skipped

_INDEX_LEVELS = 2  # of sitemap indexes


class SitemapReader:
    """Reads sitemaps. Methods change `row` in place."""

    def __init__(self, store: SiteStore, discovery: Discovery) -> None:
        self._store = store
        self._discovery = discovery

    def wake(self, row: SiteRow) -> None:
        """Start again when it is time."""
        if row.sitemaps_done and 0 < row.sitemaps_at <= self._store.now_ms and self._store.has_room(row):
            row.sitemaps_done, row.sitemaps_at = False, 0

    def next_job(self, row: SiteRow, rules: RobotsRules) -> Job | None:
        """The next file to read; None when all are read and their sample is queued."""
        value = self._store.state.get(sitemap_key(row.site))
        if value is not None:
            reading = unpack(SitemapRow, value)
        else:
            first = first_sitemaps(rules.sitemaps, row.origin, self._store.settings.sitemap_files)
            reading = SitemapRow(pending=[(url, 0) for url in first])
        allowed = [entry for entry in reading.pending if rules.allows(entry[0])]
        if allowed:
            if value is None or len(allowed) < len(reading.pending):
                reading.pending = allowed
                self._store.state.put(sitemap_key(row.site), pack(reading))
            return Job(RequestKind.SITEMAP, row.site, allowed[0][0], row.delay_s, rules)
        self._finish(row, reading, rules)
        return None

    def apply(self, row: SiteRow, answer: FetchResult) -> None:
        """Add the entries of a file. After a transient failure the file is requested once more.

        Only URLs on the site's own host and port count, after any redirects.
        """
        if answer.transient:
            park(row, answer, self._store.settings)
        value = self._store.state.get(sitemap_key(row.site))
        if value is None:
            return
        settings = self._store.settings
        reading = unpack(SitemapRow, value)
        if answer.transient and reading.retried != answer.job.url:
            reading.retried = answer.job.url
            self._store.state.put(sitemap_key(row.site), pack(reading))
            return
        pending = [entry for entry in reading.pending if entry[0] != answer.job.url]
        depth = next((depth for url, depth in reading.pending if url == answer.job.url), 0)
        reading.read += 1
        left = max(0, settings.sitemap_files - reading.read)
        if answer.sitemap.files and depth < _INDEX_LEVELS:
            files = (url for url in answer.sitemap.files if is_at(url, row.origin))
            pending += [(url, depth + 1) for url in sample(row.site, files, left)]
        reading.pending = pending[:left]
        pages = (url for url in answer.sitemap.pages if is_at(url, row.origin) and not is_skipped(url))
        size = settings.page_budget + row.known  # enough even if it contains all known URLs
        reading.sample = sample(row.site, [*reading.sample, *pages], size)
        self._store.state.put(sitemap_key(row.site), pack(reading))

    def _finish(self, row: SiteRow, reading: SitemapRow, rules: RobotsRules) -> None:
        settings = self._store.settings
        self._store.state.delete(sitemap_key(row.site))
        row.sitemaps_done = True
        again_s = refetch_s(settings, Status.FETCHED, "")
        row.sitemaps_at = self._store.now_ms + int(1000 * again_s) if again_s > 0 else 0
        refused = 0
        for url in reading.sample:
            if row.fetched + row.wanted >= settings.page_budget or refused >= REFUSED_CAP:
                break
            refused += not self._discovery.add(row, url, Priority.SITEMAP, 0, rules)
