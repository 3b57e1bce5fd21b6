"""The effect of a fetch result on the rows of its site.

A failure parks the site, which is then left alone:

- `Retry-After` (RFC 9110 section 10.2.3) is obeyed up to `park_cap_s`.
- Failures in a row wait `retry_s`, doubling up to the same cap; a `Retry-After` of 0 does not shorten that.
- Requests sent before the last failure was known belong to that failure: a burst of N 429s counts once.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from crawler.fetch.jobs import FetchResult, RequestKind
from crawler.frontier.discovery import Discovery
from crawler.frontier.page_log import PageLog
from crawler.frontier.rows import Priority, SiteRow, Stop, UrlRow
from crawler.frontier.site_rules import SiteRules
from crawler.frontier.site_store import SiteStore
from crawler.frontier.statuses import Status
from crawler.reasons import CONNECTION_FAILURES, EMPTY
from crawler.robots.rules import RobotsAnswer, meaning_of
from crawler.settings import CrawlSettings
from crawler.web.inspection import Inspector
from stream.schema.vocabulary import FetchOutcome

# Requests to a site that turns us away: robots.txt, tdmrep.json, ads.txt, probe and redirects included
_FRUITLESS = 6
_FRUITLESS_LATER = 18  # the same in a row, of a site that has answered with a page in this term
_DOUBLINGS = 20
_FILES = {
    RequestKind.ROBOTS: "robots.txt",
    RequestKind.TDMREP: "tdmrep.json",
    RequestKind.ADS_TXT: "ads.txt",
    RequestKind.SITEMAP: "sitemap",
}


def asked_until(answer: FetchResult, settings: CrawlSettings) -> int:
    """Until when (ms) a failed answer asks us to wait; 0 if it does not."""
    if answer.retry_after_s is None:
        return 0
    return _ended(answer) + int(1000 * min(answer.retry_after_s, settings.park_cap_s))


def _ended(answer: FetchResult) -> int:
    return max(answer.ended_ms, answer.started_ms + answer.duration_ms)


@dataclass(slots=True)
class Answers:
    """Applies fetch results. Methods change `row` in place."""

    store: SiteStore
    rules: SiteRules
    pages: PageLog
    discovery: Discovery
    inspector: Inspector | None = None

    def apply(self, answer: FetchResult, excused_s: float | None) -> int:
        """Apply a result; returns the earliest start (ms) of the site's next request."""
        row = self.store.site(answer.job.site)
        if row is None:
            return 0
        settings = self.store.settings
        if answer.outcome is FetchOutcome.DEFERRED:  # no request was made, so nothing counts
            row.next_start = max(row.next_start, answer.not_before_ms)
        else:  # the next request starts one delay after this one, later if the site is slow or parked
            slow_s = min(settings.delay_per_second * answer.duration_ms / 1000, settings.delay_slow_cap_s)
            row.next_start = max(answer.started_ms + int(1000 * max(row.delay_s, slow_s)), row.parked_until)
            if excused_s is None:
                self._take(row, answer)
            else:
                self._hold(row, answer, excused_s)
        self.store.save(row)
        return row.next_start

    def _take(self, row: SiteRow, answer: FetchResult) -> None:
        kind = answer.job.kind
        cost = max(1, len(answer.requests))  # requests, redirects included
        row.fruitless += cost
        if answer.transient and (row.stopped or kind is not RequestKind.ROBOTS):
            self._park(row, answer)
        if row.stopped and kind not in (RequestKind.PAGE, RequestKind.ADS_TXT):  # it was in flight at the stop
            return
        if answer.unreachable:
            row.failures += 1
        elif answer.status:
            row.failures = 0
            if not answer.transient:
                row.park_level = 0
        match kind:
            case RequestKind.ROBOTS:
                self._take_robots(row, answer)
            case RequestKind.TDMREP:
                self.rules.keep_tdm(row, answer)
            case RequestKind.ADS_TXT:
                self.rules.keep_ads_txt(row, answer)
            case RequestKind.SITEMAP:
                self.discovery.apply_sitemap(row, answer)
            case RequestKind.PROBE:
                row.probed = True
                is_page = answer.outcome in (FetchOutcome.FETCHED, FetchOutcome.NO_PAGE) and not answer.transient
                row.outline = answer.outline if is_page and answer.status == 200 else b""
            case RequestKind.PAGE:
                answer = self._take_page(row, answer)
                if answer.status and not answer.transient:
                    row.fruitless = 0
        # a challenge, or the like, came instead of a page for now, or an answer as of a site without pages
        no_sign_of_life = answer.outcome is FetchOutcome.NO_PAGE and (answer.transient or answer.reason in EMPTY)
        gives_up = row.failures >= self.store.settings.tries
        if (no_sign_of_life and not row.spent) or (gives_up and kind is RequestKind.PAGE):
            self._blame_site(row, answer.job.url)
        if no_sign_of_life and self._is_closed(row, answer, cost):
            self.store.stop(row, answer.reason)
        if gives_up:
            self.store.stop(row, answer.reason if answer.reason in CONNECTION_FAILURES else Stop.UNREACHABLE)

    def _park(self, row: SiteRow, answer: FetchResult, least_s: float = 0.0) -> None:
        settings = self.store.settings
        if answer.started_ms >= row.parked_at:
            row.park_level += 1
            row.parked_at = _ended(answer)
        wait_s = min(settings.retry_s * 2 ** min(row.park_level - 1, _DOUBLINGS), settings.park_cap_s)
        row.parked_until = max(row.parked_until, asked_until(answer, settings))
        self._hold(row, answer, max(wait_s, least_s))

    def _hold(self, row: SiteRow, answer: FetchResult, wait_s: float) -> None:
        """Leave a site alone for `wait_s` seconds from the end of a job, without counting a failure.

        A failed lookup, or a missing robots.txt of a twin, is remembered for less: the next job asks again.
        """
        row.parked_until = max(row.parked_until, _ended(answer) + int(1000 * wait_s))
        # with the file if a server answered for a file that is not a page: robots.txt:http_503
        where = "" if answer.unreachable else _FILES.get(answer.job.kind, "")
        row.parked_why = f"{where}:{answer.reason}" if where else answer.reason
        row.next_start = max(row.next_start, row.parked_until)

    def _is_closed(self, row: SiteRow, answer: FetchResult, cost: int) -> bool:
        """Whether a site without a page has had its requests, or turns us away and has nothing else to ask for.

        One whose pages are empty is closed by its home page, or by the next page where that is not to be had.
        """
        if not answer.transient:
            had_its_chance = row.seems_empty
            row.empty += answer.job.kind is RequestKind.PAGE
            return had_its_chance
        if row.spent:
            return row.fruitless >= _FRUITLESS_LATER
        return row.fruitless + cost > _FRUITLESS or not self.store.has_work(row)

    def _blame_site(self, row: SiteRow, url: str) -> None:
        """Mark a failed URL whose failure is its site's: a later hit retries it with the rest of the site."""
        url_row = self.store.url(row.site, url)
        if url_row is not None and url_row.status is Status.ERROR:
            url_row.site_failed = True
            self.store.put_url(row, url_row)

    def _take_robots(self, row: SiteRow, answer: FetchResult) -> None:
        settings = self.store.settings
        if answer.reason == "private_address":
            self.store.stop(row, Stop.PRIVATE)
            return
        meaning = meaning_of(answer.status, complete=answer.outcome is FetchOutcome.FETCHED)
        if meaning is RobotsAnswer.UNREACHABLE:
            row.robots_tries += 1
            # an unreachable host needs no longer rest than the retries
            self._park(row, answer, 0.0 if answer.unreachable else settings.robots_retry_s)
            lasts = answer.unreachable and not answer.transient  # a certificate does not change in a minute
            if lasts or row.robots_tries >= settings.robots_tries:
                no_robots = Stop.UNREACHABLE if answer.unreachable else Stop.ROBOTS_UNAVAILABLE
                is_named = answer.unreachable and answer.reason in CONNECTION_FAILURES
                self.store.stop(row, answer.reason if is_named else no_robots)
            return
        row.robots_tries = 0
        self.rules.keep_robots(row, answer, has_rules=meaning is RobotsAnswer.RULES)
        if settings.is_too_slow(row.delay_s):
            self.store.stop(row, Stop.CRAWL_DELAY)
        else:
            row.next_start = max(row.next_start, answer.started_ms + int(1000 * row.delay_s))

    def _take_page(self, row: SiteRow, answer: FetchResult) -> FetchResult:
        url_row = self.store.url(row.site, answer.job.url)
        if url_row is None or not url_row.is_queued:
            return answer
        settings = self.store.settings
        is_first = url_row.place is not Priority.AGAIN
        row.page_requests += is_first or url_row.term != row.term
        url_row.attempts += 1
        if answer.transient and url_row.attempts < settings.tries:
            if is_first:
                url_row.status = Status.FETCH_ERROR
            self.store.put_url(row, url_row)
        else:
            answer = self._end(row, url_row, answer)
        if row.spent >= settings.page_budget:
            self.store.stop(row, Stop.BUDGET)
        elif row.page_requests >= settings.page_budget * settings.requests_per_page:
            self.store.stop(row, Stop.REQUESTS)
        return answer

    def _end(self, row: SiteRow, url_row: UrlRow, answer: FetchResult) -> FetchResult:
        if answer.outcome is not FetchOutcome.FETCHED:
            self.pages.end(row, url_row, answer, self.rules.signals(row, answer.job.url, answer.final_url))
            return answer
        is_soft_404 = self._is_soft_404(row, answer)
        had_page = url_row.has_page
        signals = self.rules.signals(row, answer.job.url, answer.final_url)
        if not had_page and self.discovery.is_known_page(row, answer):
            answer = msgspec.structs.replace(
                answer, outcome=FetchOutcome.REFUSED, reason="same_page", body=b"", packed=b"", encoding=""
            )
        elif is_soft_404:
            answer = msgspec.structs.replace(answer, outcome=FetchOutcome.NO_PAGE, reason="soft_404")
            for request in answer.requests[-1:]:  # for the metrics
                request.outcome, request.reason = FetchOutcome.NO_PAGE.value, "soft_404"
        else:
            row.first_at = row.first_at or answer.started_ms
            row.fetched += not had_page
            row.offset += had_page and url_row.term != row.term
            url_row.term = row.term
        self.pages.end(row, url_row, answer, signals)
        if answer.outcome is FetchOutcome.FETCHED:
            self.rules.note_ads(row, answer.body)
            self.discovery.note_redirect(row, answer)
            self.discovery.add_links(row, url_row, answer)
        return answer

    def _is_soft_404(self, row: SiteRow, answer: FetchResult) -> bool:
        """Whether a page is the site's page "not found". Some sites send the home page for any URL: it is none."""
        if self.inspector is None or not row.outline or not answer.outline:
            return False
        is_home = answer.final_url.split("/", 3)[3] == ""
        return (not is_home or row.seems_empty) and self.inspector.same(row.outline, answer.outline)
