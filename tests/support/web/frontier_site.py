"""A frontier under test: sites, a simulated clock, and constructed answers."""

from __future__ import annotations

from typing import Any

from crawler.fetch.jobs import FetchResult, Job, RequestKind
from crawler.frontier.frontier import Frontier
from crawler.frontier.rows import TOTALS_KEY, SiteRow, Totals, site_key, site_of_key, unpack
from crawler.frontier.stored_times import StoredClock
from crawler.robots.rules import RobotsShelf
from crawler.settings import CrawlSettings
from crawler.web.inspection import Inspector
from stream.processing.metrics import Meter
from stream.processing.state import KeyedState
from stream.schema.records import AdsTxt, Decision, Hit, Page, Record, Sitemaps
from stream.schema.vocabulary import FetchOutcome
from tests.support.limits import with_limits
from tests.support.web.crawl_driver import Committed, Store, crawl_settings, hits_of

SETTINGS = with_limits(
    CrawlSettings(), contact="a@example.org", page_budget=5, url_cap=20, ask_tdmrep=False, refetch_fetched_s=0.0
)


class Site:
    """A frontier under test over time; each call is a committed batch."""

    def __init__(self, inspector: Any = None, **changes: Any) -> None:
        self.inspector: Inspector | None = inspector
        self.settings = crawl_settings(SETTINGS, **changes)
        self.store = Store(partitions=1)
        self.now = 1_000_000
        self.pages: list[Page] = []
        self.sitemaps: list[Sitemaps] = []
        self.ads_txt: list[AdsTxt] = []
        self.shelf = RobotsShelf("farmwatch")

    @property
    def committed(self) -> Committed:
        return self.store.states[0]

    def _batch(self) -> tuple[KeyedState, Frontier]:
        state = KeyedState(self.committed)
        meter, emit = Meter(), self.pages.append
        more = {"inspector": self.inspector, "emit_other": self._take}
        return state, Frontier(state, self.settings, self.shelf, meter, emit, self.now, **more)  # type: ignore[arg-type]

    def _take(self, _: str, record: Record) -> None:
        match record:
            case Sitemaps():
                self.sitemaps.append(record)
            case AdsTxt():
                self.ads_txt.append(record)

    def _commit(self, state: KeyedState) -> None:
        StoredClock(state, self.now).note()
        self.committed.apply(state.changes())

    def hits(self, *hits: Hit) -> list[str]:
        state, frontier = self._batch()
        outcomes = [frontier.add_hit(hit) for hit in hits]
        self._commit(state)
        return outcomes

    def decide(self, stop: bool, term: int = 0) -> None:
        state, frontier = self._batch()
        frontier.decide(Decision(id="a.test", site="a.test", stop=stop, reason="x", term=term))
        self._commit(state)

    def jobs(self, limit: int = 10, busy: tuple[str, ...] = (), since_ms: int = 0, not_before_ms: int = 0) -> list[Job]:
        state, frontier = self._batch()
        due = [row for row in state.due(self.now, limit) if site_of_key(row[0]) not in busy]
        jobs = [frontier.claim(value, due_at, since_ms, not_before_ms) for _, value, due_at in due]
        self._commit(state)
        return [job for job in jobs if job is not None]

    def check_times(self) -> None:
        state, frontier = self._batch()
        frontier.check_times(0)
        self._commit(state)

    def give_up(self) -> bool:
        state, frontier = self._batch()
        done = frontier.give_up(self.committed.rows[site_key("a.test")][0])
        self._commit(state)
        return done

    def answer(self, job: Job, **fields: object) -> None:
        state, frontier = self._batch()
        excused_s = 30.0 if fields.pop("excused", False) else None
        known = {"outcome": FetchOutcome.FETCHED, "status": 200, "final_url": job.url, "encoding": "utf-8"}
        frontier.apply(FetchResult(job=job, started_ms=self.now, **(known | fields)), excused_s=excused_s)  # type: ignore[arg-type]
        self._commit(state)

    def reach(self, kind: RequestKind) -> Job:
        """Answer jobs until the next one is of this kind; returns it."""
        while True:
            self.now = max(self.now, self.committed.next_due() or 0)
            (job,) = self.jobs()
            if job.kind is kind:
                return job
            self.answer(job)

    def step(self, **fields: object) -> Job:
        """Wait until the site is due, take its job, and answer it."""
        due = self.committed.next_due()
        assert due is not None, "at rest"
        self.now = max(self.now, due)
        jobs = self.jobs()
        assert len(jobs) == 1
        self.answer(jobs[0], **fields)
        return jobs[0]

    def robots(self, text: bytes = b"") -> None:
        assert self.step(body=text).kind is RequestKind.ROBOTS

    def walk(self, **fields: object) -> list[str]:
        """Paths of the jobs until the site rests, each with the same answer."""
        paths = []
        while (due := self.committed.next_due()) is not None:
            self.now = max(self.now, due)
            for job in self.jobs():
                paths.append(job.url.removeprefix("http://a.test"))
                self.answer(job, **fields)
        return paths

    @property
    def row(self) -> SiteRow:
        return unpack(SiteRow, self.committed.rows[site_key("a.test")][0])

    @property
    def totals(self) -> Totals:
        return unpack(Totals, self.committed.rows[TOTALS_KEY][0])


def with_hits(*paths: str, **changes: Any) -> Site:
    """A site with a hit for each path or whole URL."""
    site = Site(**changes)
    site.hits(*hits_at(*paths))
    return site


def begun(*paths: str, robots: bytes = b"", **changes: Any) -> Site:
    """The same, with robots.txt read."""
    site = with_hits(*paths, **changes)
    site.robots(robots)
    return site


def hits_at(*paths: str) -> list[Hit]:
    return hits_of(*(path if "://" in path else f"http://a.test/{path}" for path in paths))


def status(code: int, **fields: object) -> dict[str, object]:
    """An answer with an HTTP error; 429 and 5xx may pass."""
    return fail(f"http_{code}", status=code, unreachable=False, transient=code == 429 or code >= 500, **fields)


def fail(reason: str = "connection", **fields: object) -> dict[str, object]:
    known = {"outcome": FetchOutcome.FAILED, "reason": reason, "status": 0, "transient": True, "unreachable": True}
    return known | fields
