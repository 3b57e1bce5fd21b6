"""Input of the frontier: hits, decisions, and the stop of a site."""

from __future__ import annotations

from crawler.errors import UnusableUrl
from crawler.fetch.jobs import FetchOutcome
from crawler.frontier.page_log import PageLog
from crawler.frontier.rows import CUT_OFF, MAY_PASS, Priority, SiteRow, Stop, UrlRow, sitemap_key
from crawler.frontier.site_rules import SiteRules
from crawler.frontier.site_store import STEP, SiteStore
from crawler.frontier.statuses import Status
from crawler.web.urls import hit_url, host_of, origin_of, page_bytes, port_of
from stream.schema.records import Decision, Hit

_HITS_CAP = 100  # hit ids kept per URL
_REOPEN_MS = 86_400_000  # after that, a new hit tries an unreachable site again


class Arrivals:
    """Adds hits and decisions."""

    def __init__(self, store: SiteStore, pages: PageLog, stops: SiteStops) -> None:
        self._store = store
        self._pages = pages
        self._stops = stops

    def add_hit(self, hit: Hit) -> str:
        """Queue the URL of a hit; returns queued, known, refused, or imported. Raises UnusableUrl."""
        url = hit_url(hit.url)
        if host_of(url) != hit.site:
            raise UnusableUrl(f"hit {hit.id} names the site {hit.site!r}, its URL is of {host_of(url)!r}")
        if hit.imported:  # its page is in the log already: no request
            return "imported"
        row = self._store.site(hit.site) or self._store.new_site(hit.site)
        row.origin = row.origin or origin_of(url)
        if row.stopped in MAY_PASS and self._store.now_ms - row.stopped_at >= _REOPEN_MS:
            row.reopen()
        outcome = self._take(row, url, hit.id)
        self._store.save(row)
        return outcome

    def decide(self, decision: Decision) -> None:
        """Stop a decided site, or lift that stop."""
        if not self._store.settings.stop_when_decided:
            return
        row = self._store.site(decision.site) or self._store.new_site(decision.site)
        if decision.stop and not row.stopped:
            self._stops.stop(row, Stop.DECIDED)
        elif not decision.stop and row.stopped == Stop.DECIDED:
            row.reopen()
        else:
            return
        self._store.save(row)

    def _take(self, row: SiteRow, url: str, hit: str) -> str:
        page = page_bytes(url)
        found = self._store.url(row.site, page)
        if found is not None and found.is_queued:
            self._attach(row, page, found, hit)
            return "known"
        if found is None:
            found = UrlRow(url)
        elif found.status is not Status.REDIRECTION and (row.stopped or not _may_pass(found)):
            return "known"
        led_to = found.status is Status.REDIRECTION  # the URL that redirects here has the page
        found.status = Status.DISCOVERED
        found.priority, found.depth, found.attempts = Priority.HIT, 0, 0
        found.hits = list(dict.fromkeys([*found.hits, hit]))[-_HITS_CAP:]
        reason = row.stopped or ("other_port" if port_of(url) != port_of(row.origin) else "")
        reason = reason or ("same_page" if led_to else "")
        if reason:
            self._pages.end(row, page, found, FetchOutcome.REFUSED, reason)
            return "refused"
        self._store.queue(row, page, found)
        return "queued"

    def _attach(self, row: SiteRow, page: bytes, found: UrlRow, hit: str) -> None:
        """Add a hit to a queued URL; a discovered URL gets the priority of hits."""
        if hit not in found.hits and len(found.hits) < _HITS_CAP:
            found.hits.append(hit)
        if found.place is Priority.HIT or (found.place is Priority.AGAIN and found.visit > 0):
            self._store.put_url(row, page, found)
            return
        self._store.unqueue(row, found)
        found.priority, found.depth = Priority.HIT, 0
        self._store.queue(row, page, found)


def _may_pass(found: UrlRow) -> bool:
    """Whether a later hit retries an ended URL: another cause ended it, and its site is open again.

    A URL that failed by itself is not retried: such reasons also stop sites.
    """
    if found.site_failed:
        return True
    by_itself = found.status is Status.ERROR and found.reason in CUT_OFF
    return not by_itself and (found.reason in MAY_PASS or found.reason == Stop.DECIDED)


class SiteStops:
    """Stops sites. Methods change `row` in place."""

    def __init__(self, store: SiteStore, pages: PageLog, rules: SiteRules) -> None:
        self._store = store
        self._pages = pages
        self._rules = rules

    def stop(self, row: SiteRow, reason: str) -> None:
        """Make no more requests to a site; the first reason stays."""
        if row.stopped:
            return
        row.stopped, row.stopped_at = reason, self._store.now_ms
        self._rules.forget(row)
        self._store.state.delete(sitemap_key(row.site))

    def drain(self, row: SiteRow) -> None:
        """Process a part of the queue of a stopped site.

        URLs of hits are recorded as refused; discovered URLs are forgotten. Revisits leave no record: the page has one.
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
