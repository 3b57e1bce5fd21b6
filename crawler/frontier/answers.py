"""The effect of a fetch result on the rows of its site."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from crawler.fetch.jobs import FetchResult, RequestKind
from crawler.frontier.discovery import Discovery
from crawler.frontier.page_log import PageLog
from crawler.frontier.parking import hold, park
from crawler.frontier.probe import is_soft_404, keep_probe
from crawler.frontier.rows import Priority, SiteRow, Stop, UrlRow
from crawler.frontier.site_rules import SiteRules
from crawler.frontier.site_store import SiteStore
from crawler.frontier.statuses import Status
from crawler.reasons import CONNECTION_FAILURES, EMPTY
from crawler.robots.rules import RobotsAnswer, meaning_of
from crawler.web.inspection import Inspector
from crawler.web.urls import page_bytes
from stream.schema.vocabulary import FetchOutcome

# Requests to a site that turns us away: robots.txt, tdmrep.json, probe and redirects included
_FRUITLESS = 6
_FRUITLESS_LATER = 18  # the same in a row, of a site that has answered with a page in this term


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
        if answer.outcome is FetchOutcome.DEFERRED:  # no request was made, so nothing counts
            row.next_start = max(row.next_start, answer.not_before_ms)
        else:
            self._space(row, answer)
            if excused_s is None:
                self._take(row, answer)
            else:
                hold(row, answer, excused_s)
        self.store.save(row)
        return row.next_start

    def _space(self, row: SiteRow, answer: FetchResult) -> None:
        """The next request starts one delay after this one, later if the site is slow or parked."""
        settings = self.store.settings
        slow_s = min(settings.delay_per_second * answer.duration_ms / 1000, settings.delay_slow_cap_s)
        row.next_start = max(answer.started_ms + int(1000 * max(row.delay_s, slow_s)), row.parked_until)

    def _take(self, row: SiteRow, answer: FetchResult) -> None:
        kind = answer.job.kind
        row.fruitless += _cost(answer)
        if answer.transient and (row.stopped or kind is not RequestKind.ROBOTS):
            park(row, answer, self.store.settings)
        if row.stopped and kind is not RequestKind.PAGE:  # it was in flight at the stop
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
            case RequestKind.SITEMAP:
                self.discovery.apply_sitemap(row, answer)
            case RequestKind.PROBE:
                keep_probe(row, answer)
            case RequestKind.PAGE:
                answer = self._take_page(row, answer)
        if kind is RequestKind.PAGE and answer.status and not answer.transient:
            row.fruitless = 0
        if _is_no_sign_of_life(answer):
            if self._is_closed(row, answer):
                self.store.stop(row, answer.reason)
            if not row.spent:
                self._blame_site(row, answer.job.url)
        if row.failures >= self.store.settings.tries:
            self.store.stop(row, _word(answer))
            if kind is RequestKind.PAGE:
                self._blame_site(row, answer.job.url)

    def _is_closed(self, row: SiteRow, answer: FetchResult) -> bool:
        """Whether a site without a page has had its requests, or turns us away and has nothing else to ask for.

        One whose pages are empty is closed by its home page, or by the next page where that is not to be had.
        """
        if not answer.transient:
            had_its_chance = row.seems_empty
            row.empty += answer.job.kind is RequestKind.PAGE
            return had_its_chance
        if row.spent:
            return row.fruitless >= _FRUITLESS_LATER
        return row.fruitless + _cost(answer) > _FRUITLESS or not self.store.has_work(row)

    def _blame_site(self, row: SiteRow, url: str) -> None:
        """Mark a failed URL whose failure is its site's: a later hit retries it with the rest of the site."""
        page = page_bytes(url)
        found = self.store.url(row.site, page)
        if found is not None and found.status is Status.ERROR:
            found.site_failed = True
            self.store.put_url(row, page, found)

    def _take_robots(self, row: SiteRow, answer: FetchResult) -> None:
        if answer.reason == "private_address":
            self.store.stop(row, Stop.PRIVATE)
            return
        meaning = meaning_of(answer.status, complete=answer.outcome is FetchOutcome.FETCHED)
        if meaning is RobotsAnswer.UNREACHABLE:
            row.robots_tries += 1
            # an unreachable host needs no longer rest than the retries
            park(row, answer, self.store.settings, 0.0 if answer.unreachable else self.store.settings.robots_retry_s)
            lasts = answer.unreachable and not answer.transient  # a certificate does not change in a minute
            if lasts or row.robots_tries >= self.store.settings.robots_tries:
                self.store.stop(row, _word(answer) if answer.unreachable else Stop.ROBOTS_UNAVAILABLE)
            return
        row.robots_tries = 0
        self.rules.keep_robots(row, answer, has_rules=meaning is RobotsAnswer.RULES)
        asked_s = self.rules.rules(row).crawl_delay_s
        row.delay_s = max(self.store.settings.delay_s, asked_s)
        if asked_s > self.store.settings.crawl_delay_cap_s:
            self.store.stop(row, Stop.CRAWL_DELAY)
        else:
            row.next_start = max(row.next_start, answer.started_ms + int(1000 * row.delay_s))

    def _take_page(self, row: SiteRow, answer: FetchResult) -> FetchResult:
        """Returns the answer, with the reason that the site gives it."""
        page = page_bytes(answer.job.url)
        found = self.store.url(row.site, page)
        if found is None or not found.is_queued:
            return answer
        is_first = found.place is not Priority.AGAIN
        row.page_requests += is_first or found.term != row.term
        found.attempts += 1
        if answer.transient and found.attempts < self.store.settings.tries:
            if is_first:
                found.status = Status.FETCH_ERROR
            self.store.put_url(row, page, found)
        else:
            answer = self._end(row, page, found, answer)
        if row.spent >= self.store.settings.page_budget:
            self.store.stop(row, Stop.BUDGET)
        elif row.page_requests >= self.store.settings.page_budget * self.store.settings.requests_per_page:
            self.store.stop(row, Stop.REQUESTS)
        return answer

    def _end(self, row: SiteRow, page: bytes, found: UrlRow, answer: FetchResult) -> FetchResult:
        had_page = found.has_page
        signals = self.rules.signals(row, answer.job.url, answer.final_url)
        if answer.outcome is FetchOutcome.FETCHED and not had_page and self.discovery.is_known_page(row, answer):
            same = msgspec.structs.replace(
                answer, outcome=FetchOutcome.REFUSED, reason="same_page", body=b"", packed=b"", encoding=""
            )
            self.pages.end(row, page, found, same, signals)
            return same
        if answer.outcome is FetchOutcome.FETCHED and self.inspector and is_soft_404(row, answer, self.inspector):
            answer = msgspec.structs.replace(answer, outcome=FetchOutcome.NO_PAGE, reason="soft_404")
            for request in answer.requests[-1:]:  # for the metrics
                request.outcome, request.reason = FetchOutcome.NO_PAGE.value, "soft_404"
        if answer.outcome is FetchOutcome.FETCHED:
            row.first_at = row.first_at or answer.started_ms
            row.fetched += not had_page
            row.offset += had_page and found.term != row.term
            found.term = row.term
        self.pages.end(row, page, found, answer, signals)
        if answer.outcome is FetchOutcome.FETCHED:
            self.discovery.note_redirect(row, answer)
            self.discovery.add_links(row, found, answer)
        return answer


def _is_no_sign_of_life(answer: FetchResult) -> bool:
    """Whether a challenge, or the like, came instead of a page for now, or an answer as of a site without pages."""
    return answer.outcome is FetchOutcome.NO_PAGE and (answer.transient or answer.reason in EMPTY)


def _cost(answer: FetchResult) -> int:
    """The requests that an answer took, redirects included."""
    return max(1, len(answer.requests))


def _word(answer: FetchResult) -> str:
    """The reason of the last connection failure."""
    return answer.reason if answer.reason in CONNECTION_FAILURES else Stop.UNREACHABLE
