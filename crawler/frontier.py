"""Which request is next, and what an answer changes: the frontier of one partition, pure over its keyed state.

The life of a site, one request at a time:

| is there | then |
|---|---|
| a reason to stop | no request; what is left of its hits is recorded as refused with that reason |
| no robots.txt that is still believed | robots.txt |
| a hit URL | that page, in the order of the hits |
| no sitemap read, and room in the budget | the next sitemap file |
| a URL of the sitemaps' sample, or else a link | that page |
| nothing | rest until the next hit |

Every step is a function of the state and the answer, so the pages of a site come in the same order after a crash.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from crawler.errors import UnusableUrl
from crawler.jobs import Answer, Job, Kind, Outcome
from crawler.links import internal_links
from crawler.robots import RobotsAnswer, RobotsRules, RobotsShelf, meaning_of
from crawler.rows import (
    MAY_PASS,
    Priority,
    SitemapRow,
    SiteRow,
    Stop,
    UrlRow,
    pack,
    robots_key,
    sitemap_key,
    unpack,
    url_key,
)
from crawler.settings import CrawlSettings
from crawler.site_store import SiteStore
from crawler.sitemaps import first_sitemaps, sample
from crawler.urls import hit_url, host_of, is_skipped, origin_of, other_scheme, page_id_of_normal, port_of
from stream.metrics import Meter
from stream.records import Decision, Hit, Page
from stream.state import KeyedState

_HITS_CAP = 100  # hit ids kept per URL
_STEP = 200  # URLs of a site recorded without a request in one step; the rest follows at once


class Claim(NamedTuple):
    """A job that may start now, and since when it was due (ms)."""

    job: Job
    due_at: int


class Frontier:
    """The sites of one partition during one batch."""

    def __init__(
        self,
        state: KeyedState,
        settings: CrawlSettings,
        robots: RobotsShelf,
        meter: Meter,
        emit: Callable[[Page], None],
        now_ms: int,
    ) -> None:
        """Work on `state` at `now_ms`; page records go to `emit`."""
        self._state = state
        self._settings = settings
        self._robots = robots
        self._meter = meter
        self._store = SiteStore(state, settings, emit, now_ms)
        self._now = now_ms

    # What comes in

    def add_hit(self, hit: Hit) -> str:
        """Queue a hit's URL; says what became of it: queued, known, or refused. Raises UnusableUrl."""
        url = hit_url(hit.url)
        if host_of(url) != hit.site:
            raise UnusableUrl(f"hit {hit.id} names the site {hit.site!r}, its URL is of {host_of(url)!r}")
        row = self._store.site(hit.site) or SiteRow(hit.site, next_start=self._now, delay_s=self._settings.delay_s)
        row.origin = row.origin or origin_of(url)
        if row.stopped in MAY_PASS and self._now - row.stopped_at >= self._settings.reopen_s * 1000:
            row.reopen()
        key = url_key(hit.site, page_id_of_normal(url))
        value = self._state.get(key)
        known = unpack(UrlRow, value) if value is not None else None
        again = known is not None and known.reason in MAY_PASS and not row.stopped
        if known is not None and known.status != "redirection" and not again:
            if not known.is_queued:
                return "known"
            self._attach(row, key, known, hit.id)
            self._store.save(row)
            return "known"
        fresh = UrlRow(url, priority=Priority.HIT, hits=[hit.id])
        if again and known is not None:  # another visit, with a page record of its own
            fresh.visit = known.visit + 1
            fresh.hits = list(dict.fromkeys([*known.hits, hit.id]))[-_HITS_CAP:]
        reason = row.stopped or ("other_port" if port_of(url) != port_of(row.origin) else "")
        if reason:
            self._store.record(row.site, fresh, Outcome.REFUSED, reason)
            self._state.put(key, pack(fresh))
        else:
            self._store.queue(row, key, fresh)
        self._store.save(row)
        return "refused" if reason else "queued"

    def decide(self, decision: Decision) -> None:
        """Stop a site that is decided, or take the stop back."""
        if not self._settings.stop_when_decided:
            return
        row = self._store.site(decision.site) or SiteRow(decision.site, delay_s=self._settings.delay_s)
        if decision.stop and not row.stopped:
            self._stop(row, Stop.DECIDED)
        elif not decision.stop and row.stopped == Stop.DECIDED:
            row.reopen()
        else:
            return
        self._store.save(row)

    # What goes out

    def claim(self, value: bytes, due_at: int, since_ms: int, not_before_ms: int = 0) -> Claim | None:
        """The job that a site, due by its row `value`, may start now; None if there is none.

        What was due before `since_ms`, when this partition came to this process, may have been started by another one
        that was killed: such a site waits one delay from then. It waits until `not_before_ms` in any case: an answer
        may have asked for that, and its batch have been rolled back.
        """
        row = self._store.read(value)
        if not row.stopped:
            if due_at < since_ms:
                not_before_ms = max(not_before_ms, since_ms + int(row.delay_s * 1000))
            if not_before_ms > self._now:
                row.next_start = not_before_ms
                self._store.save(row)
                return None
        before = pack(row)
        job = self._next(row)
        if pack(row) != before or job is None:
            self._store.save(row)
        return None if job is None else Claim(job, due_at)

    def give_up(self, value: bytes) -> bool:
        """Stop a site at which this program failed, so that its hits are accounted for; False if that was done."""
        row = self._store.read(value)
        if row.stopped:
            return False
        self._stop(row, Stop.INTERNAL)
        self._store.save(row)
        return True

    def _next(self, row: SiteRow) -> Job | None:
        """The next request of a site; what needs none is dealt with on the way."""
        if row.stopped:
            self._refuse_rest(row)
            return None
        if row.robots_until <= self._now:
            return Job(Kind.ROBOTS, row.site, f"{row.origin}/robots.txt", row.delay_s)
        rules = self._rules(row)
        for _ in range(_STEP):
            head = self._store.head(row.site)
            if self._store.wants_sitemap(row) and (not head or head[0][0] is not Priority.HIT):
                job = self._next_sitemap(row, rules)
                if job is not None:
                    return job
                continue
            if not head:
                return None
            url = head[0][1]
            allowed = rules.allows(url)
            self._meter.count("robots_lookups", result="allowed" if allowed else "disallowed")
            if allowed:
                return Job(Kind.PAGE, row.site, url, row.delay_s, rules)
            key = url_key(row.site, page_id_of_normal(url))
            self._store.end(row, key, self._store.url(key), Outcome.REFUSED, "robots")
        return None

    # What an answer changes

    def has_answered(self, site: str) -> bool:
        """Whether this site has ever answered a request."""
        row = self._store.site(site)
        return row is not None and (row.robots_until > 0 or row.fetched > 0)

    def apply(self, answer: Answer, *, excused_s: float | None = None) -> int:
        """Take over the answer to a job of this partition; says when the site's next request may start (ms).

        A failure that is excused, because it is ours, is no attempt: the site waits so long, and the job comes again.
        """
        job = answer.job
        row = self._store.site(job.site)
        if row is None:
            return 0
        slow_s = min(self._settings.delay_per_second * answer.duration_ms / 1000, self._settings.delay_slow_cap_s)
        row.next_start = answer.started_ms + int(1000 * max(row.delay_s, slow_s))
        if excused_s is not None:
            row.next_start = max(row.next_start, answer.started_ms + int(1000 * excused_s))
            self._store.save(row)
            return row.next_start
        if answer.unreachable:
            row.failures += 1
        elif answer.status:
            row.failures = 0
        {Kind.ROBOTS: self._apply_robots, Kind.SITEMAP: self._apply_sitemap, Kind.PAGE: self._apply_page}[job.kind](
            row, answer
        )
        if row.failures >= self._settings.tries:
            self._stop(row, Stop.UNREACHABLE)
            if job.kind is Kind.PAGE:
                self._blame_site(row, job.url)
        self._store.save(row)
        return row.next_start

    def _blame_site(self, row: SiteRow, url: str) -> None:
        """The failure that stops a site ends its URL, too: a later hit tries that again like the rest of the site."""
        key = url_key(row.site, page_id_of_normal(url))
        found = self._store.url(key)
        if found.status == "error":
            found.reason = Stop.UNREACHABLE
            self._state.put(key, pack(found))

    def _apply_robots(self, row: SiteRow, answer: Answer) -> None:
        if answer.reason == "private_address":
            self._stop(row, Stop.PRIVATE)
            return
        meaning = meaning_of(answer.status, complete=answer.outcome is Outcome.FETCHED)
        if meaning is RobotsAnswer.UNREACHABLE:
            row.robots_tries += 1
            if answer.unreachable:  # nobody is there to be bothered: the spacing of failed connections is enough
                self._park(row, answer, row.robots_tries)
            else:
                asked_s = min(answer.retry_after_s or 0.0, self._settings.park_cap_s)
                row.next_start = answer.started_ms + int(1000 * max(self._settings.robots_retry_s, asked_s))
            if row.robots_tries >= self._settings.robots_tries:
                self._stop(row, Stop.UNREACHABLE if answer.unreachable else Stop.ROBOTS_UNAVAILABLE)
            return
        row.robots_tries = 0
        row.robots_until = answer.started_ms + int(self._settings.robots_ttl_s * 1000)
        if meaning is RobotsAnswer.RULES:
            self._state.put(robots_key(row.site), answer.body)
        else:
            self._state.delete(robots_key(row.site))
        asked_s = self._rules(row).crawl_delay_s
        row.delay_s = max(self._settings.delay_s, asked_s)
        if asked_s > self._settings.crawl_delay_cap_s:
            self._stop(row, Stop.CRAWL_DELAY)
        else:
            row.next_start = max(row.next_start, answer.started_ms + int(1000 * row.delay_s))

    def _apply_sitemap(self, row: SiteRow, answer: Answer) -> None:
        value = self._state.get(sitemap_key(row.site))
        if value is None:
            return
        reading = unpack(SitemapRow, value)
        pending = [entry for entry in reading.pending if entry[0] != answer.job.url]
        depth = next((depth for url, depth in reading.pending if url == answer.job.url), 0)
        reading.read += 1
        left = max(0, self._settings.sitemap_files - reading.read)
        if answer.sitemap.files and depth < self._settings.sitemap_depth:
            pending += [(url, depth + 1) for url in sample(row.site, answer.sitemap.files, left)]
        reading.pending = pending[:left]
        pages = (url for url in answer.sitemap.pages if not is_skipped(url))
        reading.sample = sample(row.site, [*reading.sample, *pages], self._settings.page_budget)
        self._state.put(sitemap_key(row.site), pack(reading))
        if answer.transient:
            self._park(row, answer, 1)

    def _apply_page(self, row: SiteRow, answer: Answer) -> None:
        key = url_key(row.site, page_id_of_normal(answer.job.url))
        found = self._store.url(key)
        if not found.is_queued:
            return
        row.page_requests += 1
        found.attempts += 1
        if answer.transient:
            self._park(row, answer, found.attempts)
        if answer.transient and found.attempts < self._settings.tries:
            found.status = "fetch_error"
            self._state.put(key, pack(found))
        else:
            self._store.end(row, key, found, answer.outcome, answer.reason, answer)
        if answer.outcome is Outcome.FETCHED:
            row.fetched += 1
            self._note_redirect(row, answer)
            self._add_links(row, found, answer)
        if row.fetched >= self._settings.page_budget:
            self._stop(row, Stop.BUDGET)
        elif row.page_requests >= self._settings.page_budget * self._settings.requests_per_page:
            self._stop(row, Stop.REQUESTS)

    def _note_redirect(self, row: SiteRow, answer: Answer) -> None:
        """Keep the URL that this one led to from being discovered as another page."""
        if answer.final_url == answer.job.url or host_of(answer.final_url) != row.site:
            return
        key = url_key(row.site, page_id_of_normal(answer.final_url))
        if self._state.get(key) is None:
            self._state.put(key, pack(UrlRow(answer.final_url, status="redirection")))

    def _add_links(self, row: SiteRow, found: UrlRow, answer: Answer) -> None:
        """Queue links of a page, as many as the budget has room for."""
        rules = answer.job.rules
        if not self._settings.use_links or found.depth >= self._settings.link_depth or rules is None:
            return
        if not self._has_room(row) or host_of(answer.final_url) != row.site:
            return
        if any(signal.endswith((":nofollow", ":none")) for signal in answer.opt_out):
            return
        for url in internal_links(answer.body, answer.encoding, answer.final_url):
            if not self._has_room(row):
                return
            self._discover(row, url, Priority.LINK, found.depth + 1, rules)

    # Sitemaps

    def _next_sitemap(self, row: SiteRow, rules: RobotsRules) -> Job | None:
        """The next sitemap file to read; None when all are read and their sample is queued."""
        value = self._state.get(sitemap_key(row.site))
        if value is not None:
            reading = unpack(SitemapRow, value)
        else:
            first = first_sitemaps(rules.sitemaps, row.origin, self._settings.sitemap_files)
            reading = SitemapRow(pending=[(url, 0) for url in first])
        allowed = [entry for entry in reading.pending if rules.allows(entry[0])]
        if allowed:
            if value is None or len(allowed) < len(reading.pending):
                reading.pending = allowed
                self._state.put(sitemap_key(row.site), pack(reading))
            return Job(Kind.SITEMAP, row.site, allowed[0][0], row.delay_s, rules)
        self._state.delete(sitemap_key(row.site))
        row.sitemaps_done = True
        for url in reading.sample:
            if row.fetched + row.wanted >= self._settings.page_budget:
                break
            self._discover(row, url, Priority.SITEMAP, 0, rules)
        return None

    # The queue

    def _has_room(self, row: SiteRow) -> bool:
        return row.fetched + row.queued < self._settings.page_budget and row.known < self._settings.url_cap

    def _discover(self, row: SiteRow, url: str, priority: Priority, depth: int, rules: RobotsRules) -> None:
        """Queue a URL that no hit asked for, if it is new and allowed."""
        key = url_key(row.site, page_id_of_normal(url))
        twin = url_key(row.site, page_id_of_normal(other_scheme(url)))
        if row.known >= self._settings.url_cap or self._state.get(key) or self._state.get(twin):
            return
        if not rules.allows(url):
            return
        row.known += 1
        self._store.queue(row, key, UrlRow(url, priority=priority, depth=depth))

    def _attach(self, row: SiteRow, key: bytes, found: UrlRow, hit: str) -> None:
        """A hit for a URL that waits already: it is remembered, and a discovered URL becomes a hit's."""
        if hit not in found.hits and len(found.hits) < _HITS_CAP:
            found.hits.append(hit)
        if found.priority == Priority.HIT:
            self._state.put(key, pack(found))
            return
        self._store.unqueue(row, found)
        found.priority, found.depth = Priority.HIT, 0
        self._store.queue(row, key, found)

    def _stop(self, row: SiteRow, reason: str) -> None:
        if not row.stopped:
            row.stopped, row.stopped_at = reason, self._now
            row.robots_until = 0  # its text goes; should the site be opened again, it is asked anew
            self._state.delete(robots_key(row.site))
            self._state.delete(sitemap_key(row.site))

    def _refuse_rest(self, row: SiteRow) -> None:
        """Of a stopped site's queue, record what hits asked for as refused, and forget what was only discovered."""
        for _, url in self._store.head(row.site, _STEP):
            key = url_key(row.site, page_id_of_normal(url))
            found = self._store.url(key)
            if found.hits:
                self._store.end(row, key, found, Outcome.REFUSED, row.stopped)
            else:
                self._store.unqueue(row, found)
                self._state.delete(key)
                row.known -= 1

    def _park(self, row: SiteRow, answer: Answer, attempt: int) -> None:
        """Leave a site alone after a failure: doubling waits, and Retry-After where it asks for more, up to the cap."""
        wait_s = max(self._settings.retry_s * 2 ** min(attempt - 1, 20), answer.retry_after_s or 0.0)
        wait_s = min(wait_s, self._settings.park_cap_s)
        row.next_start = max(row.next_start, answer.started_ms + int(1000 * wait_s))

    def _rules(self, row: SiteRow) -> RobotsRules:
        def text() -> bytes:
            return self._state.get(robots_key(row.site)) or b""

        return self._robots.rules(row.site, row.robots_until, text)
