"""A dry run: the requests that a crawl would make now, their times, and the reasons against others.

No request is made. It runs the frontier on a copy of the committed rows, one site at a time: stages its new hits and
decisions, then calls `Frontier.claim` at the time when the site is due. Results that later requests depend on are
simulated: robots.txt is the stored one (404 if none), tdmrep.json and the probed URL are absent, sitemaps and pages
list nothing, and responses take no time. Then the delay per registrable domain is applied to all sites. Unknown to a
dry run: addresses (no DNS), requests in flight in a running crawl, and response times.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

import msgspec

from crawler.errors import UnusableUrl
from crawler.fetch.address_guard import endpoint, is_public
from crawler.fetch.jobs import FetchResult, Job, RequestKind
from crawler.frontier.frontier import Frontier
from crawler.frontier.report import QUEUES, Shortlist, require_readable, rows_of, sites_of
from crawler.frontier.rows import Priority, SiteRow, Stop, queue_prefix, robots_key, site_key, site_of_key
from crawler.frontier.site_store import SiteStore
from crawler.robots.rules import DecisionReason, RobotsShelf, explain
from crawler.settings import CrawlSettings
from crawler.web.inspection import Inspector
from stream.log.contract import StateReader
from stream.processing.metrics import Meter
from stream.processing.state import KeyedState
from stream.schema.records import Decision, Hit, Page
from stream.schema.vocabulary import FetchOutcome
from stream.text.registrable_domain import registrable_domain

REFUSALS_KEPT = 100  # of a site
_UNUSABLE_KEPT = 10
_STEPS = 10_000  # steps for one site; each makes a request, ends URLs, or waits
_EVER_MS = _ALL = 2**62


class PlannedRequest(msgspec.Struct, kw_only=True):
    """A planned request. Times are milliseconds UTC."""

    kind: str  # robots | tdmrep | sitemap | probe | page
    url: str
    start_at: int
    conditional: bool = False  # sends validators


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A URL that would be refused without a request. `rule` is the line of robots.txt that forbids it."""

    url: str
    reason: str
    rule: str = ""


class SitePlan(msgspec.Struct, kw_only=True):
    """The plan for a site. Times are milliseconds UTC, 0 = none."""

    site: str
    domain: str  # registrable
    partition: int = 0
    has_row: bool = False  # in the frontier, or after its hits
    requests: list[PlannedRequest] = []  # in order
    waits_for: str = ""  # why the first request waits: delay | parked | revisit | domain | begin
    rests_until: int = 0  # the next revisit after these requests
    first_page: str = ""  # the URL at the head of the queue
    queued: int = 0  # URLs
    queued_in: dict[str, int] = {}  # hits | sitemaps | links | again -> URLs
    new_hits: int = 0  # not read by CRAWL yet
    imported: int = 0  # of them, with an imported page
    unusable: list[str] = []  # why some of them are not hits of the site, the first of them
    refused: int = 0  # URLs refused without a request
    refusals: list[Refusal] = []  # the first of them
    fetched: int = 0  # pages so far
    stopped_why: str = ""
    parked_until: int = 0
    parked_why: str = ""

    @property
    def is_known(self) -> bool:
        return self.has_row or self.new_hits > 0

    @property
    def at(self) -> int:
        """When the first request would start; a very late time if none would."""
        return self.requests[0].start_at if self.requests else _EVER_MS


class DryRun:
    """Plans sites as if CRAWL started at `now_ms`."""

    def __init__(
        self,
        settings: CrawlSettings,
        now_ms: int,
        limit: int | None,
        excludes: Callable[[str], bool] = lambda _: False,
        inspector: Inspector | None = None,
    ) -> None:
        """Keep the first `limit` sites (None: all, in memory). `excludes` and `inspector` as in `Frontier`."""
        self._inspector = inspector
        self._excludes = excludes
        self._settings = settings
        self._now = now_ms
        self._limit = limit
        self._shelf = RobotsShelf(settings.name)
        self._shortlist = Shortlist(limit, _order)

    def add(self, state: StateReader, records: Iterable[Hit | Decision] = (), *, partition: int = 0) -> None:
        """Plan the sites of a partition, with the records that CRAWL has not read yet. Raises OldFrontier."""
        new: defaultdict[str, list[Hit | Decision]] = defaultdict(list)
        for record in records:
            new[record.site].append(record)
        sites = [*new, *(site for site in self._known(state) if site not in new)]
        for site in sites:
            plan = self.plan(state, site, new.get(site, ()))
            plan.partition = partition
            self._shortlist.add(plan)

    def plans(self) -> list[SitePlan]:
        """The sites in the order of their first requests, spaced by registrable domain; sites without requests last."""
        return self.spaced(self._shortlist.lines())

    def spaced(self, plans: Iterable[SitePlan]) -> list[SitePlan]:
        """The same plans in order, with their requests spaced by registrable domain."""
        ordered = sorted(plans, key=_order)
        delay_ms = int(1000 * self._settings.domain_delay_s)
        free: dict[str, int] = {}  # domain -> its next free start; unseen ones count as started now
        for plan in (plan for plan in ordered if plan.requests and delay_ms):
            at = max(plan.at, free.get(plan.domain, self._now + delay_ms))
            if at > plan.at and plan.waits_for in ("", "begin"):
                plan.waits_for = "domain" if plan.domain in free else "begin"
            for each in plan.requests:
                each.start_at = max(at, each.start_at)
                at = each.start_at + delay_ms
            free[plan.domain] = at
        return sorted(ordered, key=_order)

    def plan(
        self, state: StateReader, site: str, records: Sequence[Hit | Decision] = (), requests: int = 1
    ) -> SitePlan:
        """The plan for one site with its first `requests` requests. Raises OldFrontier."""
        require_readable(state)
        staged = KeyedState(state)
        pages: list[Page] = []
        plan = SitePlan(site=site, domain=registrable_domain(site))
        frontier = self._frontier(staged, pages, self._now)
        for record in records:
            if isinstance(record, Decision):
                frontier.decide(record)
                continue
            plan.new_hits += 1
            try:
                plan.imported += frontier.add_hit(record) == "imported"
            except UnusableUrl as error:
                plan.unusable = [*plan.unusable, str(error)][:_UNUSABLE_KEPT]
        self._describe(plan, staged)
        address = endpoint(site, 80)
        if address is not None and not (self._settings.allow_private or is_public(address[0])):  # the guard refuses it
            plan.stopped_why = plan.stopped_why or Stop.PRIVATE
        else:
            self._walk(plan, staged, pages, requests)
        text = state.get(robots_key(site)) or b""
        plan.refused = len(pages)
        plan.refusals = [self._refusal(page, text) for page in pages[:REFUSALS_KEPT]]
        return plan

    def _describe(self, plan: SitePlan, staged: KeyedState) -> None:
        value = staged.get(site_key(plan.site))
        if value is None:
            return
        row = SiteStore(staged, self._settings, self._now).look(value)
        plan.has_row, plan.stopped_why, plan.fetched = True, row.stopped, row.fetched
        if row.parked_until > self._now and not row.stopped:
            plan.parked_until, plan.parked_why = row.parked_until, row.parked_why
        queued: Counter[str] = Counter()
        prefix = queue_prefix(plan.site)
        head = b""
        for key, page in rows_of(staged, prefix):
            head = head or page
            queued[QUEUES[Priority(key[len(prefix)])]] += 1
        plan.queued = queued.total()
        plan.queued_in = {name: queued[name] for name in QUEUES.values()}
        if head:
            plan.first_page = SiteStore(staged, self._settings, self._now).stored_url(plan.site, head).url
        plan.waits_for = self._waits_for(row, staged)

    def _waits_for(self, row: SiteRow, staged: KeyedState) -> str:
        store = SiteStore(staged, self._settings, self._now)
        due = store.due(row)
        if row.stopped or due is None or due == self._now:
            return ""
        if row.parked_until > self._now:
            return "parked"
        if due < self._now:
            return "begin"
        return "delay" if store.has_work(row) else "revisit"

    def _walk(self, plan: SitePlan, staged: KeyedState, pages: list[Page], requests: int) -> None:
        key = site_key(plan.site)
        at = self._now
        for _ in range(_STEPS):
            value = staged.get(key)
            if value is None:
                return
            store = SiteStore(staged, self._settings, at)
            row = store.look(value)
            due = store.due(row)
            if due is None:
                return
            if plan.requests and not store.has_work(row):
                plan.rests_until = due
                return
            at = max(at, due)
            frontier = self._frontier(staged, pages, at)
            job = frontier.claim(value, due, self._now)
            if job is None:
                continue
            asks_anew = bool(job.etag or job.last_modified)
            plan.requests.append(PlannedRequest(kind=job.kind.value, url=job.url, start_at=at, conditional=asks_anew))
            if len(plan.requests) == requests:
                return
            taken: list[Page] = []
            self._frontier(staged, taken, at).apply(self._made_up(job, staged, at))
            pages += [page for page in taken if page.outcome == FetchOutcome.REFUSED]

    def _made_up(self, job: Job, staged: KeyedState, at: int) -> FetchResult:
        text = staged.get(robots_key(job.site)) if job.kind is RequestKind.ROBOTS else b""
        is_there = job.kind in (RequestKind.PAGE, RequestKind.SITEMAP) or bool(text)
        return FetchResult(
            job=job,
            outcome=FetchOutcome.FETCHED if is_there else FetchOutcome.FAILED,
            reason="" if is_there else "http_404",
            status=200 if is_there else 404,
            started_ms=at,
            final_url=job.url,
            encoding="utf-8",
            body=text or b"",
        )

    def _frontier(self, staged: KeyedState, pages: list[Page], at: int) -> Frontier:
        return Frontier(staged, self._settings, self._shelf, Meter(), pages.append, at, self._excludes, self._inspector)

    def _refusal(self, page: Page, robots: bytes) -> Refusal:
        rule = ""
        if page.reason == "robots":
            explained = explain(robots, self._settings.name, page.url)
            if explained.why is DecisionReason.RULE and explained.rule is not None:
                rule = f"line {explained.rule.number}: Disallow: {explained.rule.pattern}"
        return Refusal(url=page.url, reason=page.reason, rule=rule)

    def _known(self, state: StateReader) -> Iterable[str]:
        """The sites in the rows: by due time, up to the limit; then others while there is room."""
        most = self._limit if self._limit is not None else _ALL
        due = [site_of_key(key) for key, _, _ in state.due(_EVER_MS, most)]
        yield from due
        room = most - len(due)
        seen = set(due)
        for key, _ in sites_of(state) if room > 0 else ():
            site = site_of_key(key)
            if site not in seen:
                yield site
                room -= 1
                if room == 0:
                    return


def _order(plan: SitePlan) -> tuple[int, int, str]:
    return (plan.at, plan.partition, plan.site)
