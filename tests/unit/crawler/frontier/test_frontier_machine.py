"""The frontier under random hits, decisions, answers, crashes and time: sums, start times, and no loss."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.fetch.jobs import Job, RequestKind
from crawler.frontier.rows import (
    FORMAT,
    MAY_PASS,
    TOTALS_KEY,
    Priority,
    SiteRow,
    Totals,
    UrlRow,
    queue_prefix,
    revisit_prefix,
    site_key,
    unpack,
)
from crawler.frontier.site_store import revisit_of_key, url_key
from crawler.frontier.statuses import Status
from crawler.web.sitemaps import SitemapFile
from crawler.web.urls import page_bytes
from stream.schema.records import Decision
from stream.schema.vocabulary import FetchOutcome
from tests.support.sizes import LONG
from tests.support.web.crawl_driver import hits_of
from tests.support.web.frontier_site import Site, fail, status
from tests.support.web.inspecting import FakeInspector, no_page

SITES = ("a.test", "b.test")
DAY_MS = 86_400_000
DELAY_MS = 5000


class Machine(Site):
    """Two sites, their requests in flight, and the requests that the web has received."""

    def __init__(self) -> None:
        super().__init__(FakeInspector(), page_budget=4, ask_tdmrep=True, refetch_fetched_s=2 * 86_400.0)
        self.under_way: dict[str, Job] = {}
        self.since = 0
        self.earliest: dict[str, int] = {}  # site -> earliest next start, by the committed rows
        self.asked: set[str] = set()

    def start(self) -> None:
        """Begin the due jobs."""
        for job in self.jobs(busy=tuple(self.under_way), since_ms=self.since):
            assert self.now >= self.earliest.get(job.site, 0), "too early"
            self.earliest[job.site] = self.now + DELAY_MS
            self.under_way[job.site] = job

    def end(self, dice: int, *, crash: bool) -> None:
        """Answer a request in flight; a crash loses its batch and all requests in flight."""
        if not self.under_way and (due := self.committed.next_due()) is not None:
            self.now = max(self.now, due)
            self.start()
        if not self.under_way:
            return
        site = sorted(self.under_way)[dice % len(self.under_way)]
        job = self.under_way.pop(site)
        usual = USUAL[job.kind]
        among = usual + FAULTS if dice % 5 == 0 else usual
        fields = among[dice % 7 % len(among)]
        if "sitemap" in fields:
            fields = {"sitemap": SitemapFile(pages=(f"http://{site}/{fields['sitemap']}", f"http://{site}/1"))}
        if job.etag == "" and fields.get("outcome") is FetchOutcome.UNCHANGED:
            fields = {}
        rows, pages = dict(self.committed.rows), len(self.pages)
        before = self.earliest[site]
        if fields.get("outcome") is FetchOutcome.DEFERRED:
            fields = fields | {"not_before_ms": self.now + 3000}
            self.earliest[site] = self.now + 3000
        elif (asked_s := fields.get("retry_after_s")) is not None:
            self.earliest[site] = max(before, self.now + int(1000 * float(str(asked_s))))
        self.answer(job, **fields)
        if crash:
            self.committed.rows = rows
            del self.pages[pages:]
            self.earliest[site] = before if fields.get("outcome") is not FetchOutcome.DEFERRED else self.now
            self.under_way.clear()
            self.now += 1  # a new process takes longer than that to start
            self.since = self.now
        self.start()

    def sites(self) -> list[SiteRow]:
        """The rows of all sites that are known."""
        stored = (self.committed.rows.get(site_key(site)) for site in SITES)
        return [unpack(SiteRow, value[0]) for value in stored if value is not None]

    def check(self) -> None:
        """Every sum and every index agrees with the rows."""
        wanted = Totals(format=FORMAT, urls=[0] * len(Status))
        for site in self.sites():
            due = self.committed.rows[site_key(site.site)][1]
            urls = {
                key[-16:]: unpack(UrlRow, value) for key, value in self.committed.scan(url_key(site.site, b""), 999)
            }
            counts = Counter(url.status for url in urls.values())
            assert [counts[status] for status in Status] == (site.urls or [0] * len(Status))
            places = {(key[-9], int.from_bytes(key[-8:], "big"), page) for key, page in self.queue_of(site)}
            assert site.heads == sorted(places)[: len(site.heads)]
            assert places == {(url.place, url.number, page) for page, url in urls.items() if url.place is not None}
            by_place = Counter(place for place, _, _ in places)
            assert (site.queued, site.again) == (len(places), by_place[Priority.AGAIN])
            assert site.wanted == by_place[Priority.HIT] + by_place[Priority.SITEMAP]
            ahead = [revisit_of_key(site.site, key) for key, _ in self.committed.scan(revisit_prefix(site.site), 999)]
            assert site.revisit_at == min((at for at, _ in ahead), default=0)
            assert {page: at for at, page in ahead}.items() <= {page: url.due for page, url in urls.items()}.items()
            assert site.fetched == sum(url.has_page for url in urls.values())
            assert 0 <= site.spent <= self.settings.page_budget
            reads_on = not site.sitemaps_done and site.spent + site.wanted < 4 and bool(site.origin)
            is_final = site.stopped not in ("", "site_decided", *MAY_PASS)
            active = bool(places) or (bool(ahead) and is_final if site.stopped else reads_on)
            assert due is not None if active or (ahead and not site.stopped) else True
            wanted.active += active
            wanted.parked += active and not site.stopped and site.parked_until > 0
            wanted.resting += not active and not site.stopped
            wanted.sites += 1
            wanted.stopped += bool(site.stopped)
            wanted.queued += site.queued
            wanted.fetched += site.fetched
            wanted.urls = [a + b for a, b in zip(wanted.urls, site.urls or [0] * len(Status), strict=True)]
        if wanted.sites:
            assert self.totals == wanted

    def queue_of(self, site: SiteRow) -> list[tuple[bytes, bytes]]:
        """The stored queue of a site."""
        return self.committed.scan(queue_prefix(site.site), 999)

    def settle(self) -> None:
        """Answer all until no site is active."""
        for _ in range(300):
            if TOTALS_KEY not in self.committed.rows or self.totals.active == 0:
                return
            due = self.committed.next_due()
            assert due is not None, "active, and never due"
            self.now = max(self.now, due if not self.under_way else self.now)
            self.start()
            while self.under_way:
                self.end(1, crash=False)
                self.check()
        raise AssertionError("the crawl does not end")


LINKS: dict[str, object] = {"body": b"<a href=/l1>x</a><a href=/l2>x</a>", "headers": {"etag": '"x"'}}
USUAL: dict[RequestKind, list[dict[str, object]]] = {
    RequestKind.ROBOTS: [{}, {"body": b"User-agent: *\nDisallow: /2"}],
    RequestKind.TDMREP: [{}, {"body": b'[{"location": "/1", "tdm-reservation": 1}]'}],
    RequestKind.SITEMAP: [{"sitemap": "m1"}, {"sitemap": "m2"}, {}],
    RequestKind.PROBE: [status(404), {"outline": b"gone"}],
    RequestKind.PAGE: [
        LINKS,
        {"outcome": FetchOutcome.UNCHANGED, "status": 304},
        {"final_url": "http://a.test/2"},
        {"outline": b"gone"},
        {"outcome": FetchOutcome.REFUSED, "reason": "opt_out"},
    ],
}
FAULTS = [
    fail(),
    status(404),
    no_page("challenge"),
    no_page("parked"),
    status(503, retry_after_s=60.0),
    status(429, retry_after_s=0.0),
    {"outcome": FetchOutcome.REFUSED, "reason": "private_address", "status": 0},
    {"outcome": FetchOutcome.DEFERRED, "status": 0},
]
DICE = st.integers(0, 999)
EVENTS = st.one_of(
    st.tuples(st.just("hit"), st.integers(0, 9)),
    st.tuples(st.just("decide"), st.integers(0, 5)),
    *[st.tuples(st.just("answer"), DICE)] * 6,
    st.tuples(st.just("crash"), DICE),
    st.tuples(st.just("wait"), st.sampled_from([1000, DELAY_MS, 60_000, DAY_MS, 3 * DAY_MS])),
)


@settings(max_examples=150 if LONG else 35)
@given(st.lists(EVENTS, min_size=30, max_size=80))
def test_nothing_is_lost_and_all_sums_hold(events: list[tuple[str, int]]) -> None:
    """Totals equal a recount; each queued URL is claimed; each hit has one record.

    No request starts before a delay after the last one of its site, nor before the time an answer asked for.
    """
    machine = Machine()
    for kind, what in events:
        if kind == "hit":
            url = f"http://{SITES[what % 2]}/{what // 2}"
            machine.asked.add(url)
            machine.hits(*hits_of(url))
        elif kind == "decide":
            state, frontier = machine._batch()
            site = SITES[what % 2]
            term = {row.site: row.term for row in machine.sites()}.get(site, 0) + (what > 3)
            frontier.decide(Decision(id=site, site=site, stop=what in (2, 3), reason="x", term=term))
            machine._commit(state)
        elif kind == "wait":
            machine.now += what
        else:
            machine.end(what, crash=kind == "crash")
        machine.start()
        machine.check()
    machine.settle()
    machine.check()
    assert not any(machine.queue_of(site) for site in machine.sites())
    assert machine.asked <= {page.url for page in machine.pages}
    assert len({page.id for page in machine.pages}) == len(machine.pages)
    visits: dict[str, list[int]] = {}
    for page in machine.pages:
        visits.setdefault(page.url, []).append(page.visit)
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in visits.values())
    for url in visits:
        site = url.split("/")[2]
        stored = machine.committed.rows[url_key(site, page_bytes(url))][0]
        assert unpack(UrlRow, stored).visit == len(visits[url])
