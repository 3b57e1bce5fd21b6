"""CRAWL and TALLY on every log while the wall clock is set: simulated clocks, and answers without a network."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack

import msgspec
import pytest

from crawler.fetch.jobs import FetchResult, Job
from crawler.fetch.thread import ClaimResult, FetchThread
from crawler.settings import CrawlSettings
from crawler.stages.crawl import CrawlStage
from scoring.sites.settings import TallySettings
from scoring.stages.tally import TallyStage
from stream.log.contract import CleanupPolicy, Output
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.processing.steady_clock import SteadyClock
from stream.schema.records import Decision, Page, decode, encode
from stream.schema.runs import names_of
from stream.schema.topics import DEAD_LETTERS, DECISIONS, FRONTIER_STORE, HITS, PAGES, RETRIES, SCORES
from stream.schema.vocabulary import FetchOutcome
from tests.support.logs.loops import FAST, Around, count
from tests.support.logs.tally_desk import DETECTOR, SPRT, page
from tests.support.set_clock import NOON_MS, SetClock
from tests.support.waiting import wait_until
from tests.support.web.crawl_driver import hits_of
from tests.support.worlds import World

HOUR_S, YEAR_S = 3600.0, 365 * 86_400.0
SITES = [f"site{number}.test" for number in range(3)]


class Answered:
    """In place of the fetch thread: each request is answered at once, with a page."""

    def __init__(self, clock: SteadyClock, machine: SetClock, patch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[float, str]] = []  # uptime, URL
        self._clock = clock
        self._machine = machine
        self._done: list[ClaimResult] = []
        patch.setattr(FetchThread, "submit", lambda _, jobs: self._answer(jobs))
        patch.setattr(FetchThread, "collect", lambda _: [self._done.pop(0) for _ in list(self._done)])

    def _answer(self, jobs: Mapping[int, Job]) -> None:
        for claim, job in jobs.items():
            self.asked.append((self._machine.uptime_s, job.url))
            found = FetchResult(
                job=job, outcome=FetchOutcome.FETCHED, status=200, started_ms=self._clock(), final_url=job.url
            )
            self._done.append(ClaimResult(claim, found))


class Process:
    """CRAWL and TALLY of one process, in this thread, by the clocks of a machine."""

    def __init__(self, world: World, machine: SetClock, patch: pytest.MonkeyPatch, stack: ExitStack) -> None:
        self.world, self.machine = world, machine
        self.metrics = Metrics()
        self.clock = SteadyClock(self.metrics, machine, machine.monotonic)
        self.web = Answered(self.clock, machine, patch)
        settings = CrawlSettings(
            contact="a@example.org", use_sitemaps=False, use_links=False, ask_tdmrep=False, page_budget=100
        )
        stages = (
            CrawlStage(settings, clock=lambda: self.clock() / 1000, uptime=machine.monotonic),
            TallyStage(DETECTOR, TallySettings(sprt=SPRT)),
        )
        log = world.again()
        self.loops = []
        for stage in stages:
            stack.callback(stage.close)
            joined = log.join(stage.name, [*stage.inputs, RETRIES], member="one", store=stage.store)
            stack.callback(joined.close)
            member = Around(joined, poll=lambda _, records, size, joined=joined: joined.poll(0.002, records, size))
            self.loops.append(StageLoop(stage, member, metrics=self.metrics, settings=FAST, clock=self.clock))
        self.cycle_until(lambda: all(len(loop._owned) == 1 for loop in self.loops), "the partitions")

    def cycle(self) -> None:
        for loop in self.loops:
            loop.cycle(threading.Event())

    def cycle_until(self, condition: Callable[[], bool], what: str) -> None:
        def holds() -> bool:
            self.cycle()
            return condition()

        wait_until(holds, what, every_s=0.0)

    def run(self, seconds: int) -> None:
        """Let time pass, second by second."""
        for _ in range(seconds):
            self.machine.run(1.0)
            if self.world.embedded:
                self.world.clock.now_ms = self.machine()
            for _ in range(2):
                self.cycle()

    def pages(self) -> list[Page]:
        return [decode(Page, message.value or b"") for message in self.world.log.read(PAGES, 0)]

    def decisions(self) -> list[Decision]:
        return [decode(Decision, message.value or b"") for message in self.world.log.read(DECISIONS, 0)]


@pytest.fixture
def world(world: World) -> World:
    """A log with the topics of both stages, of one partition each."""
    names = names_of("live")
    world.topics(HITS, DECISIONS, PAGES, SCORES, RETRIES, DEAD_LETTERS, names.verdicts, partitions=1)
    world.topics(names.sites, names.terms, partitions=1, cleanup=CleanupPolicy.COMPACT, store=FRONTIER_STORE)
    world.topics(partitions=1, store=names.tally_store)
    return world


def put_hits(world: World, *paths: str) -> None:
    hits = hits_of(*(f"http://{site}/{path}" for path in paths for site in SITES))
    world.log.append([Output(HITS, 0, hit.site.encode(), encode(hit)) for hit in hits])


def put_verdict(world: World, at_ms: int) -> None:
    """The verdict on a first page, from which the terms of its site are counted."""
    verdict = msgspec.structs.replace(page(1), fetched_at=at_ms, first_at=at_ms)
    world.log.append([Output(names_of("live").verdicts, 0, verdict.site.encode(), encode(verdict))])


def gaps(process: Process) -> list[float]:
    """Seconds between two requests in a row to a site, of all sites."""
    found = []
    for site in SITES:
        times = [at for at, url in process.web.asked if url.startswith(f"http://{site}/")]
        found += [after - before for before, after in itertools.pairwise(times)]
    return found


@pytest.mark.parametrize(("off_s", "for_s"), [(HOUR_S, 5), (YEAR_S, 10), (-HOUR_S, 5)])
def test_a_step_of_the_clock_changes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, off_s: float, for_s: int
) -> None:
    """Each page is fetched once, at its time, one delay after the last; no term begins; the step is counted."""
    machine = SetClock()
    with ExitStack() as stack:
        process = Process(world, machine, monkeypatch, stack)
        put_hits(world, *map(str, range(6)))
        put_verdict(world, machine.true_ms)
        process.run(12)
        machine.set(off_s)
        process.run(for_s)
        machine.set(0.0)
        process.run(40)
        pages = process.pages()
        assert len(pages) == len({page.url for page in pages}) == 6 * len(SITES)
        assert all(NOON_MS < page.fetched_at <= machine.true_ms for page in pages)
        assert min(gaps(process)) >= 5.0 and max(gaps(process)) <= 7.0
        assert process.decisions() == []
        direction = "forward" if off_s > 0 else "back"
        assert count(process.metrics, "clock_steps_total", direction=direction) == 1


@pytest.mark.parametrize(("off_s", "for_s"), [(HOUR_S, 5), (YEAR_S, 10), (-HOUR_S, 5)])
def test_a_process_that_began_by_a_wrong_clock_delays_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, off_s: float, for_s: int
) -> None:
    """The next process, by the right clock, keeps the delays and asks each site within a minute; no term begins."""
    machine = SetClock()
    put_verdict(world, machine.true_ms)
    asked: list[tuple[float, str]] = []
    for number, (off, lasts_s) in enumerate([(0.0, 12), (off_s, for_s), (0.0, 100)]):
        machine.set(off)
        with ExitStack() as stack:
            process = Process(world, machine, monkeypatch, stack)
            put_hits(world, *(f"{number}-{path}" for path in range(3 if number < 2 else 0)))
            process.run(lasts_s)
            asked += process.web.asked
            pages = process.pages()
            assert process.decisions() == []
    process.web.asked = asked
    assert len({page.url for page in pages}) == 6 * len(SITES)
    assert min(gaps(process)) >= 5.0 and max(gaps(process)) <= 75.0


@pytest.mark.parametrize("off_s", [HOUR_S, YEAR_S, -HOUR_S])
def test_a_clock_that_is_corrected_delays_little(world: World, monkeypatch: pytest.MonkeyPatch, off_s: float) -> None:
    """A process that began by a wrong clock: no site is asked too soon, nor waits for more than about a minute."""
    machine = SetClock()
    machine.set(off_s)
    with ExitStack() as stack:
        process = Process(world, machine, monkeypatch, stack)
        put_hits(world, *map(str, range(15)))
        process.run(12)
        machine.set(0.0)
        process.run(150)
        pages = process.pages()
    assert len(pages) == len({page.url for page in pages}) == 15 * len(SITES)
    assert min(gaps(process)) >= 5.0 and max(gaps(process)) <= 70.0
    assert pages[-1].fetched_at <= machine.true_ms
