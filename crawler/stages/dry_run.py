"""A dry run: the next request of each site, its time, and the reasons against it.

No request is made. It runs the frontier on a copy of the committed rows, one site at a time: stages its new hits and
decisions, then calls `Frontier.claim` at the time when the site is due. Then the delay per registrable domain is
applied to all sites. Unknown to a dry run: addresses (no DNS), and requests in flight in a running crawl.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

import msgspec

from crawler.errors import UnusableUrl
from crawler.fetch.address_guard import endpoint, is_public
from crawler.frontier.frontier import Frontier
from crawler.frontier.report import QUEUES, Shortlist, require_readable, rows_of, sites_of
from crawler.frontier.rows import Priority, SiteRow, Stop, queue_prefix, site_key, site_of_key
from crawler.frontier.site_store import SiteStore
from crawler.robots.rules import RobotsShelf
from crawler.settings import CrawlSettings
from crawler.web.inspection import Inspector
from stream.log.contract import StateReader
from stream.processing.metrics import Meter
from stream.processing.state import KeyedState
from stream.schema.records import Decision, Hit, Page
from stream.text.registrable_domain import registrable_domain

_STEPS = 10_000  # steps for one site; each makes a request, ends URLs, or waits
_EVER_MS = _ALL = 2**62


class SitePlan(msgspec.Struct, kw_only=True):
    """The plan for a site. Times are milliseconds UTC, 0 = none."""

    site: str
    partition: int = 0
    request: str = ""  # the kind of the next request: robots | tdmrep | ads_txt | sitemap | probe | page; "" = none
    url: str = ""
    start_at: int = 0
    conditional: bool = False  # it sends validators
    waits_for: str = ""  # why it waits: delay | parked | revisit | domain | begin
    first_page: str = ""  # the URL at the head of the queue
    queued_in: dict[str, int] = {}  # hits | sitemaps | links | again -> URLs
    imported: int = 0  # new hits with an imported page
    unusable: str = ""  # why a new hit is not one of the site
    refused: dict[str, int] = {}  # reason -> URLs refused without a request
    stopped_why: str = ""
    parked_until: int = 0
    parked_why: str = ""


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
        """The sites in the order of their requests, spaced by registrable domain; sites without requests last."""
        ordered = self._shortlist.lines()
        delay_ms = int(1000 * self._settings.domain_delay_s)
        free: dict[str, int] = {}  # domain -> its next free start; unseen ones count as started now
        for plan in (plan for plan in ordered if plan.request and delay_ms):
            domain = registrable_domain(plan.site)
            at = max(plan.start_at, free.get(domain, self._now + delay_ms))
            if at > plan.start_at and plan.waits_for in ("", "begin"):
                plan.waits_for = "domain" if domain in free else "begin"
            plan.start_at, free[domain] = at, at + delay_ms
        return sorted(ordered, key=_order)

    def plan(self, state: StateReader, site: str, records: Sequence[Hit | Decision] = ()) -> SitePlan:
        """The plan for one site. Raises OldFrontier."""
        require_readable(state)
        staged = KeyedState(state)
        refused: list[Page] = []
        plan = SitePlan(site=site)
        frontier = self._frontier(staged, refused, self._now)
        for record in records:
            if isinstance(record, Decision):
                frontier.decide(record)
                continue
            try:
                plan.imported += frontier.add_hit(record) == "imported"
            except UnusableUrl as error:
                plan.unusable = plan.unusable or str(error)
        self._describe(plan, staged)
        address = endpoint(site, 80)
        if address is not None and not (self._settings.allow_private or is_public(address[0])):  # the guard refuses it
            plan.stopped_why = plan.stopped_why or Stop.PRIVATE
        else:
            self._find_request(plan, staged, refused)
        plan.refused = dict(Counter(page.reason for page in refused))
        return plan

    def _describe(self, plan: SitePlan, staged: KeyedState) -> None:
        value = staged.get(site_key(plan.site))
        if value is None:
            return
        store = SiteStore(staged, self._settings, self._now)
        row = store.look(value)
        plan.stopped_why = row.stopped
        if row.parked_until > self._now and not row.stopped:
            plan.parked_until, plan.parked_why = row.parked_until, row.parked_why
        prefix = queue_prefix(plan.site)
        pages = list(rows_of(staged, prefix))
        queued = Counter(QUEUES[Priority(key[len(prefix)])] for key, _ in pages)
        plan.queued_in = {name: queued[name] for name in QUEUES.values()}
        if pages:
            plan.first_page = store.stored_url(plan.site, pages[0][1]).url
        plan.waits_for = self._waits_for(row, store)

    def _waits_for(self, row: SiteRow, store: SiteStore) -> str:
        due = store.due(row)
        if row.stopped or due is None or due == self._now:
            return ""
        if row.parked_until > self._now:
            return "parked"
        if due < self._now:
            return "begin"
        return "delay" if store.has_work(row) else "revisit"

    def _find_request(self, plan: SitePlan, staged: KeyedState, refused: list[Page]) -> None:
        at = self._now
        for _ in range(_STEPS):
            value = staged.get(site_key(plan.site))
            store = SiteStore(staged, self._settings, at)
            due = None if value is None else store.due(store.look(value))
            if value is None or due is None:
                return
            at = max(at, due)
            job = self._frontier(staged, refused, at).claim(value, due, self._now)
            if job is not None:
                plan.request, plan.url, plan.start_at = job.kind.value, job.url, at
                plan.conditional = bool(job.etag or job.last_modified)
                return

    def _frontier(self, staged: KeyedState, pages: list[Page], at: int) -> Frontier:
        return Frontier(staged, self._settings, self._shelf, Meter(), pages.append, at, self._excludes, self._inspector)

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
    return (plan.start_at if plan.request else _EVER_MS, plan.partition, plan.site)
