"""URLs that no hit names: from sitemaps, links and redirects.

Sitemaps are read file by file; a sample of their URLs is kept. They are read again with the revisits, so that a site
with room in its budget gets new URLs.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass

from crawler.fetch.jobs import FetchResult, Job, RequestKind
from crawler.frontier.page_log import PageLog
from crawler.frontier.rows import Priority, SitemapRow, SiteRow, UrlRow, pack, sitemap_key, unpack
from crawler.frontier.site_store import SiteStore, scheme_bit
from crawler.frontier.statuses import Status
from crawler.robots.rules import RobotsRules
from crawler.web.links import internal_links
from crawler.web.sitemaps import first_sitemaps, sample
from crawler.web.urls import host_of, is_at, is_skipped

_REFUSED_CAP = 100  # forbidden URLs of one page or sample: a site's patterns may be slow
_LINKS_CAP = 1000  # per page
_INDEX_LEVELS = 2  # of sitemap indexes
_DOUBLINGS = 20  # of the wait for a sitemap that could not be had


@dataclass(slots=True)
class Discovery:
    """Reads sitemaps and adds discovered URLs. Methods change `row` in place."""

    store: SiteStore
    pages: PageLog

    def add(self, row: SiteRow, url: str, priority: Priority, depth: int, rules: RobotsRules) -> bool:
        """Queue a URL if it is new and allowed; False if robots.txt forbids it."""
        if row.known >= self.store.settings.url_cap or self.store.url(row.site, url):
            return True
        # with https for http, or the reverse, it is on nearly all sites the same page
        twin = "http" + url[5:] if url.startswith("https:") else "https" + url[4:]
        if row.schemes & scheme_bit(twin) and self.store.url(row.site, twin):
            return True
        if not rules.allows(url):
            return False
        row.known += 1
        self.store.queue(row, UrlRow(url, priority=priority, depth=depth))
        return True

    def home_page(self, row: SiteRow, rules: RobotsRules) -> UrlRow | None:
        """The home page, queued; None if robots.txt forbids it, or it has been asked for."""
        url = f"{row.origin}/"
        home = self.store.url(row.site, url)
        if not rules.allows(url) or (home is not None and not home.is_queued and not home.site_failed):
            return None
        if home is None:
            row.known += 1
            home = UrlRow(url, priority=Priority.SITEMAP)
        if not home.is_queued:
            self.store.queue(row, home)
        return home

    def add_links(self, row: SiteRow, url_row: UrlRow, answer: FetchResult) -> None:
        settings, rules = self.store.settings, answer.job.rules
        if not settings.use_links or url_row.depth >= settings.link_depth or rules is None:
            return
        if not self.store.has_room(row) or host_of(answer.final_url) != row.site:
            return
        if any(signal.endswith((":nofollow", ":none")) for signal in answer.opt_out):
            return
        refused = 0
        for url in itertools.islice(internal_links(answer.body, answer.encoding, answer.final_url), _LINKS_CAP):
            if not self.store.has_room(row) or refused >= _REFUSED_CAP:
                return
            refused += not self.add(row, url, Priority.LINK, url_row.depth + 1, rules)

    def is_known_page(self, row: SiteRow, answer: FetchResult) -> bool:
        """Whether a redirect led to a page of the site that is known under another URL."""
        if answer.final_url == answer.job.url or host_of(answer.final_url) != row.site:
            return False
        end = self.store.url(row.site, answer.final_url)
        return end is not None and (end.has_page or end.status is Status.REDIRECTION or end.reason == "same_page")

    def note_redirect(self, row: SiteRow, answer: FetchResult) -> None:
        """Record a redirect's target, so that it is not fetched as another page."""
        if answer.final_url == answer.job.url or host_of(answer.final_url) != row.site:
            return
        end = self.store.url(row.site, answer.final_url) or UrlRow(answer.final_url)
        if end.has_page:
            return
        if end.is_queued and end.hits:
            self.pages.refuse(row, end, "same_page")
            return
        end.status, end.reason = Status.REDIRECTION, ""
        self.store.schedule(row, end, answer.started_ms)

    def wake_sitemaps(self, row: SiteRow) -> None:
        if row.sitemaps_done and 0 < row.sitemaps_at <= self.store.now_ms and self.store.has_room(row):
            row.sitemaps_done, row.sitemaps_at = False, 0
            row.failures = 0  # those of the sitemaps hours ago

    def next_sitemap(self, row: SiteRow, rules: RobotsRules) -> Job | None:
        """The next file to read; None when all are read and their sample is queued."""
        value = self.store.state.get(sitemap_key(row.site))
        if value is not None:
            reading = unpack(SitemapRow, value)
        else:
            first = first_sitemaps(rules.sitemaps, row.origin, self.store.settings.sitemap_files)
            reading = SitemapRow(pending=[(url, 0) for url in first], files=len(first))
        allowed = [entry for entry in reading.pending if rules.allows(entry[0])]
        if allowed:
            if value is None or len(allowed) < len(reading.pending):
                reading.pending = allowed
                self.store.state.put(sitemap_key(row.site), pack(reading))
            return Job(RequestKind.SITEMAP, row.site, allowed[0][0], row.delay_s, rules)
        # All are read: queue the sample. They are read again with the revisits, sooner if some could not be had, but
        # each time after twice as long.
        settings = self.store.settings
        self.store.state.delete(sitemap_key(row.site))
        row.sitemaps_done = True
        self.store.count_sitemaps(row, reading)
        row.sitemap_misses = row.sitemap_misses + 1 if reading.missed else 0
        again_s = settings.refetch_fetched_s  # 0 = never
        if reading.missed:
            wait_s = max(settings.robots_retry_s, settings.retry_s) * 2.0 ** min(row.sitemap_misses - 1, _DOUBLINGS)
            again_s = min(wait_s, again_s) if again_s > 0 else wait_s if wait_s <= settings.robots_ttl_s else 0.0
        row.sitemaps_at = self.store.now_ms + int(1000 * again_s) if again_s > 0 else 0
        refused = 0
        for url in reading.sample:
            if row.spent + row.wanted >= settings.page_budget or refused >= _REFUSED_CAP:
                break
            refused += not self.add(row, url, Priority.SITEMAP, 0, rules)
        return None

    def apply_sitemap(self, row: SiteRow, answer: FetchResult) -> None:
        """Add the entries of a file. After a transient failure the file is requested once more, and then missed.

        Only URLs on the site's own host and port count, after any redirects.
        """
        value = self.store.state.get(sitemap_key(row.site))
        if value is None:
            return
        settings = self.store.settings
        reading = unpack(SitemapRow, value)
        if answer.transient and reading.retried != answer.job.url:
            reading.retried = answer.job.url
            self.store.state.put(sitemap_key(row.site), pack(reading))
            return
        reading.missed |= answer.transient
        pending = [entry for entry in reading.pending if entry[0] != answer.job.url]
        depth = next((depth for url, depth in reading.pending if url == answer.job.url), 0)
        listed = [url for url in answer.sitemap.pages if is_at(url, row.origin)]
        pages = (url for url in listed if not is_skipped(url))
        reading.read += 1
        reading.good += bool(answer.sitemap.pages or answer.sitemap.files)
        reading.urls += len(listed)
        reading.months = dict(Counter(reading.months) + Counter(answer.sitemap.months))
        left = max(0, settings.sitemap_files - reading.read)
        if answer.sitemap.files and depth < _INDEX_LEVELS:
            files = [url for url in answer.sitemap.files if is_at(url, row.origin)]
            reading.files += len(files)
            pending += [(url, depth + 1) for url in sample(row.site, files, left)]
        reading.pending = pending[:left]
        size = settings.page_budget + row.known  # enough even if it contains all known URLs
        reading.sample = sample(row.site, [*reading.sample, *pages], size)
        self.store.state.put(sitemap_key(row.site), pack(reading))
