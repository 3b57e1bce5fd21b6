"""The frontier of one partition: a pure function of keyed state and results, one request of a site at a time.

| state of the site | next step |
|---|---|
| stopped, until its next term | no request; the rest of its hits is recorded as refused with the reason |
| no valid robots.txt | robots.txt |
| no valid tdmrep.json, nor its absence | tdmrep.json, unless robots.txt forbids it |
| a page of this term loads ads | ads.txt, once, unless robots.txt forbids it |
| a hit URL is queued | that page, in the order of the hits |
| sitemaps not read, and room in the budget | the next sitemap file |
| a URL of the sitemap sample or a link is queued | that page |
| a revisit is due | that page, with a conditional request, unless its last page is of an earlier term |
| none of these | rest until the next hit or revisit |

Before the first page of a term, or after a stop, the site is probed once: one request for a URL that cannot exist. Some
sites answer it with 200 and a page that says "not found", or recommends others. The row of the site keeps the outline
of that answer, and its pages with the same outline are `soft_404`. After many empty pages and no other,
the home page comes first, and decides whether the site has pages.

So the pages of a site come in the same order after a crash. `crawler.frontier.statuses` shows the life of a URL.
"""

from __future__ import annotations

from collections.abc import Callable

import xxhash

from crawler.errors import UnusableUrl
from crawler.fetch.jobs import FetchResult, Job, RequestKind
from crawler.fetch.page_checks import is_obeyed_no
from crawler.frontier.answers import Answers
from crawler.frontier.discovery import Discovery
from crawler.frontier.page_log import PageLog
from crawler.frontier.rows import MAY_PASS, Priority, SiteRow, Stop, UrlRow, pack
from crawler.frontier.site_rules import SiteRules
from crawler.frontier.site_store import MAY_REOPEN, STEP, SiteStore
from crawler.frontier.statuses import Status
from crawler.frontier.terms import begin_term
from crawler.frontier.time_check import check_times
from crawler.metrics import ROBOTS_LOOKUPS
from crawler.reasons import CONNECTION_FAILURES, EMPTY, TURNED_AWAY
from crawler.robots.rules import RobotsRules, RobotsShelf
from crawler.robots.tdmrep import TDM_PATH
from crawler.settings import CrawlSettings
from crawler.web.ads_txt import ADS_TXT_PATH
from crawler.web.inspection import Inspector
from crawler.web.urls import hit_url, host_of, origin_of, port_of
from stream.processing.metrics import Meter
from stream.processing.state import KeyedState
from stream.schema.records import Decision, Hit, Page, Record
from stream.schema.vocabulary import FetchOutcome
from stream.text.times import DAY_MS

_HITS_CAP = 100  # hit ids kept per URL
_REOPEN_MS = DAY_MS  # after that, a new hit tries an unreachable site again


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
        excludes: Callable[[str], bool] = lambda _: False,
        inspector: Inspector | None = None,
        emit_other: Callable[[str, Record], None] = lambda _topic, _record: None,
    ) -> None:
        """Work on `state` at `now_ms`; page records go to `emit`, others to `emit_other`, with their topic.

        `excludes` names the hosts that are not visited. Without an `inspector` no site is probed.
        """
        self._settings = settings
        self._meter = meter
        self._now = now_ms
        self._excludes = excludes
        self._store = SiteStore(state, settings, now_ms, emit_other)
        self._rules = SiteRules(self._store, robots)
        self._pages = PageLog(self._store, emit)
        self._discovery = Discovery(self._store, self._pages)
        self._inspector = inspector
        self._answers = Answers(self._store, self._rules, self._pages, self._discovery, inspector)

    def add_hit(self, hit: Hit) -> str:
        """Queue the URL of a hit; returns queued, known, refused, or imported. Raises UnusableUrl."""
        if hit.imported:  # its page is in the log already: no request
            return "imported"
        url = hit_url(hit.url)
        if host_of(url) != hit.site:
            raise UnusableUrl(f"hit {hit.id} names the site {hit.site!r}, its URL is of {host_of(url)!r}")
        row = self._store.site(hit.site) or self._store.new_site(hit.site)
        row.origin = row.origin or origin_of(url)
        if self._excludes(hit.site):
            self._exclude(row)
        elif row.stopped == Stop.EXCLUDED or (
            row.stopped in MAY_PASS and self._store.now_ms - row.stopped_at >= _REOPEN_MS
        ):
            row.reopen()
        outcome = self._take_hit(row, url, hit.id)
        self._store.save(row)
        return outcome

    def decide(self, decision: Decision) -> None:
        """Stop a decided site, lift that stop, or begin a new term of the site."""
        row = self._store.site(decision.site)
        if not decision.stop and row is not None and row.origin and decision.term != row.term:
            begin_term(self._store, row, decision)
            self._store.save(row)
            return
        if not self._settings.stop_when_decided:
            return
        row = row or self._store.new_site(decision.site)
        if decision.stop and not row.stopped and decision.term >= row.term:
            self._store.stop(row, Stop.DECIDED)
        elif not decision.stop and row.stopped == Stop.DECIDED:
            row.reopen()
        else:
            return
        self._store.save(row)

    def check_times(self, partition: int) -> bool:
        """Limit the times that a wrong clock stored, some sites in each call; False once all are checked."""
        return check_times(self._store, partition)

    def has_answered(self, site: str) -> bool:
        """Whether this site has ever answered a request."""
        row = self._store.site(site)
        return row is not None and (row.robots_until > 0 or row.fetched > 0)

    def apply(self, answer: FetchResult, *, excused_s: float | None = None) -> int:
        """Apply the result of a job; returns the earliest start (ms) of the site's next request.

        An excused failure is our own and counts as no attempt: the site waits `excused_s`, and the job comes again.
        """
        site = answer.job.site
        row = self._store.site(site) if self._excludes(site) else None
        if row is not None:  # excluded while the request was in flight
            self._exclude(row)
            self._store.save(row)
            answer = FetchResult(
                job=answer.job, outcome=FetchOutcome.REFUSED, reason=Stop.EXCLUDED, started_ms=answer.started_ms
            )
        return self._answers.apply(answer, excused_s)

    def give_up(self, value: bytes) -> bool:
        """Stop a site on which the program failed, so that its hits get records; False if it was stopped already."""
        row = self._store.read(value)
        if row.stopped:
            return False
        self._store.stop(row, Stop.INTERNAL)
        self._store.save(row)
        return True

    def claim(self, value: bytes, due_at: int, since_ms: int, not_before_ms: int = 0) -> Job | None:
        """The job that a due site may start now, by its row `value`; None if there is none.

        A site that was due before `since_ms`, when this process got the partition, waits one delay from then: a killed
        process may have started its request. No request starts before `not_before_ms`: a result may have asked for that
        in a batch that was rolled back.
        """
        row = self._store.read(value)
        if self._excludes(row.site):
            self._exclude(row)
        if not row.stopped:
            if due_at < since_ms:
                not_before_ms = max(not_before_ms, since_ms + int(row.delay_s * 1000))
            if not_before_ms > self._now:
                row.next_start = not_before_ms
                self._store.save(row)
                return None
        job = self._next(row)
        if job is None or pack(row) != value:
            self._store.save(row)
        return job

    def _exclude(self, row: SiteRow) -> None:
        if row.stopped != Stop.EXCLUDED:
            row.stopped = ""
            self._store.stop(row, Stop.EXCLUDED)

    def _take_hit(self, row: SiteRow, url: str, hit: str) -> str:
        url_row = self._store.url(row.site, url)
        if url_row is not None and url_row.is_queued:
            self._attach(row, url_row, hit)
            return "known"
        if url_row is None:
            url_row = UrlRow(url)
        elif url_row.status is not Status.REDIRECTION and (row.stopped or not _may_pass(url_row)):
            return "known"
        led_to = url_row.status is Status.REDIRECTION  # the URL that redirects here has the page
        url_row.status = Status.DISCOVERED
        url_row.priority, url_row.depth, url_row.attempts = Priority.HIT, 0, 0
        url_row.hits = list(dict.fromkeys([*url_row.hits, hit]))[-_HITS_CAP:]
        reason = row.stopped or ("other_port" if port_of(url) != port_of(row.origin) else "")
        reason = reason or ("same_page" if led_to else "")
        if reason:
            self._pages.refuse(row, url_row, reason)
            return "refused"
        self._store.queue(row, url_row)
        return "queued"

    def _attach(self, row: SiteRow, url_row: UrlRow, hit: str) -> None:
        if hit not in url_row.hits and len(url_row.hits) < _HITS_CAP:
            url_row.hits.append(hit)
        if url_row.place is Priority.HIT or (url_row.place is Priority.AGAIN and url_row.visit > 0):
            self._store.put_url(row, url_row)
            return
        url_row.priority, url_row.depth = Priority.HIT, 0
        self._store.queue(row, url_row)

    def _next(self, row: SiteRow) -> Job | None:
        """The next request of a site; steps without a request happen on the way."""
        if row.stopped:
            self._pages.drain(row)
            return None
        if row.parked_until <= self._now:
            row.parked_until, row.parked_why = 0, ""
        self._discovery.wake_sitemaps(row)
        for page in self._store.revisits(row, STEP) if 0 < row.revisit_at <= self._now else ():
            self._store.queue(row, self._store.stored_url(row.site, page), Priority.AGAIN)
        if row.robots_until <= self._now:
            return Job(RequestKind.ROBOTS, row.site, f"{row.origin}/robots.txt", row.delay_s)
        rules = self._rules.rules(row)
        if self._rules.wants_tdm(row, rules):
            return Job(RequestKind.TDMREP, row.site, row.origin + TDM_PATH, row.delay_s, rules)
        if self._rules.wants_ads_txt(row, rules):
            return Job(RequestKind.ADS_TXT, row.site, row.origin + ADS_TXT_PATH, row.delay_s, rules)
        for _ in range(STEP):
            head = self._store.head(row)
            home = self._discovery.home_page(row, rules) if row.seems_empty else None
            if home is not None:
                job = self._page_job(row, home, rules)
            elif self._store.wants_sitemap(row) and (head is None or head[0] is not Priority.HIT):
                job = self._discovery.next_sitemap(row, rules)
            elif head is not None:
                job = self._page_job(row, self._store.stored_url(row.site, head[1]), rules)
                if job is not None and self._inspector is not None:
                    job = _next_probe(row, rules) or job
            else:
                return None
            if job is not None:
                return job
        return None

    def _page_job(self, row: SiteRow, url_row: UrlRow, rules: RobotsRules) -> Job | None:
        """The request for a queued page; None if it is refused, which is recorded."""
        allowed = rules.allows(url_row.url)
        self._meter.count(ROBOTS_LOOKUPS, result="allowed" if allowed else "disallowed")
        obeys = self._settings.obey_opt_out or self._settings.obey_preferences
        signals = self._rules.signals(row, url_row.url) if allowed and obeys else []
        if allowed and not is_obeyed_no(self._settings, signals):
            conditions = (url_row.etag, url_row.last_modified) if url_row.term == row.term else ("", "")
            return Job(RequestKind.PAGE, row.site, url_row.url, row.delay_s, rules, *conditions, bool(row.outline))
        reason = "opt_out" if allowed else "robots"
        if url_row.place is Priority.AGAIN and url_row.status is Status.REFUSED and url_row.reason == reason:
            self._store.schedule(row, url_row, self._now)  # it has a record already
        else:
            self._pages.refuse(row, url_row, reason, signals)
        return None


def _next_probe(row: SiteRow, rules: RobotsRules) -> Job | None:
    """The probe of a site, the same after a crash; None if it was made, or robots.txt forbids it."""
    name = xxhash.xxh3_128_hexdigest(f"probe {row.site} {row.term}".encode())
    url = f"{row.origin}/{name}"
    if row.probed or not rules.allows(url):
        return None
    return Job(RequestKind.PROBE, row.site, url, row.delay_s, rules, has_outline=True)


def _may_pass(url_row: UrlRow) -> bool:
    """Whether a later hit retries an ended URL: another cause than its own failure ended it, and its site is open."""
    if url_row.site_failed:
        return True
    by_itself = url_row.status is Status.ERROR and url_row.reason in CONNECTION_FAILURES | TURNED_AWAY | EMPTY
    return not by_itself and url_row.reason in MAY_REOPEN
