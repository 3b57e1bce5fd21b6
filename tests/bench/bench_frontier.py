"""The cost of a claim in frontiers of 10,000 to 10 million URLs on disk, which should not depend on their size.

    python -m tests.bench.bench_frontier [largest number of URLs, default 10000000] [FOLDER]

It runs on the state of both logs. `claim` is the wall-clock time to find a due site and claim it, which the goal is
about. `CPU` is for a page's whole way through CRAWL's state: found due, claimed, its answer applied with its links,
both committed; `rest` is the wall-clock time of that without the claim, and `commit` that of its commits. `warm`: the
system has written the files and keeps them in memory as far as it can; `cold`: it was asked to drop them, and the
database is opened again. FOLDER takes 8 GB for ten million URLs, removed at the end.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Protocol

from crawler.fetch.jobs import FetchResult, Job
from crawler.frontier.frontier import Frontier
from crawler.frontier.rows import TOTALS_KEY, Priority, UrlRow, site_of_key
from crawler.frontier.site_store import SiteStore
from crawler.frontier.statuses import Status
from crawler.robots.rules import RobotsShelf
from crawler.settings import CrawlSettings
from stream.embedded.log import EmbeddedLog
from stream.kafka.state import LocalState
from stream.log.contract import Commit, StateChange, StateReader, partition_of
from stream.log.sql_state import MemoryState
from stream.processing.metrics import Meter
from stream.processing.state import KeyedState
from stream.schema.topics import DECISIONS, FRONTIER_STORE, HITS, all_topics
from stream.schema.vocabulary import FetchOutcome
from tests.bench.timing import argument, wall_and_cpu_s

PARTITIONS = 4
SIZES = (1, 1, 1, 10, 10, 10, 40, 40, 40, 100, 400)  # URLs per site, in turn; 59 on average
_SITES_A_COMMIT = 400
_HOUR_MS = 3_600_000
_READ_BYTES = 1 << 20
SMALLEST = 10_000
_CLAIMS = 128  # the smallest frontier has 170 sites, and none is claimed twice
_ROUNDS = 5
_AT_ONCE = 64
_GOAL = 1.5
_BODY = "".join(f'<a href="/articles/{n:09}/found.html">An article</a>\n' for n in range(20)).encode()


@dataclass(slots=True)
class Cost:
    claim: float  # wall
    cpu: float  # of all
    rest: float  # wall, without the claim
    commit: float  # wall


def main() -> None:
    largest = argument(1, 10_000_000)
    parent = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    sizes = [size for size in (SMALLEST, 100_000, 1_000_000, 10_000_000) if size <= largest]
    for kind in (EmbeddedShelf, LocalShelf):
        print(f"{kind.name}: a claim of a page, medians of {_ROUNDS} times {_CLAIMS} claims, microseconds")
        print(f"{'URLs':>10} {'rows':>10} {'bytes/URL':>10} {'built, s':>9} {'opened, s':>10}", end="")
        print("".join(f" {kind + ' claim':>11} {'CPU':>6} {'rest':>6} {'commit':>7}" for kind in ("warm", "cold")))
        first: tuple[Cost, Cost] | None = None
        for size in sizes:
            folder = Path(tempfile.mkdtemp(prefix="farmwatch-frontier-", dir=parent))
            try:
                warm, cold = _measure(kind, folder, size)
            finally:
                shutil.rmtree(folder)
            first = first or (warm, cold)
            if size > SMALLEST:
                ratios = [_of(found, least) for found, least in zip((warm, cold), first, strict=True)]
                print(f"{'of those at 10,000':>53} {_row(ratios, '.2f')} (goal of a claim: {_GOAL})", flush=True)


def _measure(kind: Callable[[Path], Shelf], folder: Path, size: int) -> tuple[Cost, Cost]:
    """Build a frontier and claim from it, warm and cold; a small one is built again once its sites are used up."""
    settings = CrawlSettings(contact="https://crawler.example/about")
    now_ms = int(time.time() * 1000)
    small = size == SMALLEST
    costs: dict[bool, list[Cost]] = {False: [], True: []}
    shelf: Shelf | None = None
    rows = built_s = opened_s = bytes_a_url = 0.0
    for is_cold in (False, True):
        for _ in range(_ROUNDS):
            if shelf is None or small:
                if shelf is not None:
                    shelf.close()
                shutil.rmtree(folder)
                started = time.monotonic()
                shelf = kind(folder)
                rows = build(shelf, size, settings, now_ms)
                shelf.close()
                built_s = time.monotonic() - started
                bytes_a_url = size_bytes(folder) / size
                shelf = kind(folder)
            if is_cold:
                shelf.close()
                settle_cache(folder, hold=False)
                started = time.monotonic()
                shelf = kind(folder)
                opened_s = time.monotonic() - started
            else:
                settle_cache(folder, hold=True)
            now_ms += 60_000
            costs[is_cold].append(_claims(shelf, settings, now_ms))
    assert shelf is not None
    shelf.close()
    warm, cold = (_median(costs[is_cold]) for is_cold in (False, True))
    print(f"{size:10} {rows:10} {bytes_a_url:10.0f} {built_s:9.0f} {opened_s:10.2f} {_row((warm, cold), '.0f')}")
    return warm, cold


def _claims(shelf: Shelf, settings: CrawlSettings, now_ms: int) -> Cost:
    """Claim and apply, with _AT_ONCE sites in flight, each of them once."""
    robots = RobotsShelf(settings.name)
    cpu, wall = time.process_time(), time.perf_counter()
    done = 0
    claim = commit = 0.0
    while done < _CLAIMS:
        jobs: list[tuple[int, Job]] = []
        changes = {}
        for partition in range(PARTITIONS):
            began = time.perf_counter()
            state = KeyedState(shelf.reader(partition))
            frontier = _frontier(state, settings, robots, now_ms)
            for key, value, due_at in state.due(now_ms, _AT_ONCE // PARTITIONS):
                claimed = frontier.claim(value, due_at, 0)
                assert claimed is not None, site_of_key(key)
                jobs.append((partition, claimed))
            claim += time.perf_counter() - began
            changes[partition] = state.changes()
        commit += wall_and_cpu_s(lambda: shelf.write(changes, now_ms))[0]  # noqa: B023  # called at once
        states = [KeyedState(shelf.reader(partition)) for partition in range(PARTITIONS)]
        frontiers = [_frontier(state, settings, robots, now_ms) for state in states]
        for partition, job in jobs:
            frontiers[partition].apply(_answer(job, now_ms))
        applied = {partition: state.changes() for partition, state in enumerate(states)}
        commit += wall_and_cpu_s(lambda: shelf.write(applied, now_ms))[0]  # noqa: B023
        done += len(jobs)
    cpu, rest = time.process_time() - cpu, time.perf_counter() - wall - claim
    return Cost(*(1e6 * spent / done for spent in (claim, cpu, rest, commit)))


def _frontier(state: KeyedState, settings: CrawlSettings, robots: RobotsShelf, now_ms: int) -> Frontier:
    return Frontier(state, settings, robots, Meter(), lambda page: None, now_ms)


def _answer(job: Job, now_ms: int) -> FetchResult:
    return FetchResult(
        job=job,
        outcome=FetchOutcome.FETCHED,
        started_ms=now_ms,
        status=200,
        final_url=job.url,
        headers={"content-type": "text/html"},
        content_type="text/html",
        encoding="utf-8",
        body=_BODY,
        packed=b"packed",
        duration_ms=100,
    )


def _median(costs: list[Cost]) -> Cost:
    columns = zip(*(astuple(cost) for cost in costs), strict=True)
    return Cost(*(statistics.median(column) for column in columns))


def _of(found: Cost, least: Cost) -> Cost:
    return Cost(*(mine / theirs for mine, theirs in zip(astuple(found), astuple(least), strict=True)))


def _row(costs: Sequence[Cost], form: str) -> str:
    return " ".join(
        f"{cost.claim:11{form}} {cost.cpu:6{form}} {cost.rest:6{form}} {cost.commit:7{form}}" for cost in costs
    )


class EmbeddedShelf:
    """On the embedded log: one database for all partitions."""

    name = "embedded log"

    def __init__(self, folder: Path) -> None:
        self._log = EmbeddedLog(folder)
        self._log.create(all_topics(PARTITIONS, "bench"))
        self._member = self._log.join("crawl", [HITS, DECISIONS], member="bench", store=FRONTIER_STORE)
        self._member.poll(0, 1, 1)

    def reader(self, partition: int) -> StateReader:
        return self._member.state(partition)

    def write(self, changes: Mapping[int, Sequence[StateChange]], now_ms: int) -> None:
        self._member.poll(0, 1, 1)
        self._member.commit(Commit(state=dict(changes)))

    def close(self) -> None:
        self._member.close()
        self._log.close()


class LocalShelf:
    """The local copies of the Kafka log: a database per partition. Kafka's own part of a commit is left out."""

    name = "Kafka's local state"

    def __init__(self, folder: Path) -> None:
        now_ms = int(time.time() * 1000)
        self._states = [
            LocalState(folder / f"{partition}.sqlite", "bench", now_ms=now_ms, max_age_ms=24 * _HOUR_MS)
            for partition in range(PARTITIONS)
        ]

    def reader(self, partition: int) -> StateReader:
        return self._states[partition]

    def write(self, changes: Mapping[int, Sequence[StateChange]], now_ms: int) -> None:
        for partition, made in changes.items():
            state = self._states[partition]
            state.apply(made, state.next_offset + len(made), now_ms)

    def close(self) -> None:
        for state in self._states:
            state.close()


class Shelf(Protocol):
    """The store of a frontier."""

    def reader(self, partition: int) -> StateReader: ...

    def write(self, changes: Mapping[int, Sequence[StateChange]], now_ms: int) -> None: ...

    def close(self) -> None: ...


def build(shelf: Shelf, urls: int, settings: CrawlSettings, now_ms: int, sizes: Sequence[int] = SIZES) -> int:
    """Fill `shelf` with sites that have this many URLs in total, in turn `sizes` each; returns the number of rows.

    Every site is due, in an order that does not depend on that of the keys. The first of its URLs is a hit, and a third
    is fetched and waits for a re-visit.
    """
    totals: list[bytes | None] = [None] * PARTITIONS
    chance = random.Random(7)
    made = rows = 0
    sites = _sites(urls, sizes)
    while chunk := [site for site, _ in zip(sites, range(_SITES_A_COMMIT), strict=False)]:
        states = [KeyedState(_state_of(value)) for value in totals]
        for site, size in chunk:
            _add_site(states[partition_of(site, PARTITIONS)], site, size, settings, now_ms, chance)
            made += size
        for partition, state in enumerate(states):
            totals[partition] = state.get(TOTALS_KEY)
        changes = {partition: state.changes() for partition, state in enumerate(states)}
        shelf.write(changes, now_ms)
        rows += sum(change.key != TOTALS_KEY for found in changes.values() for change in found)
        if urls >= 1_000_000 and sys.stderr.isatty():
            print(f"\r{made:10} of {urls} URLs built", end="\r", file=sys.stderr, flush=True)
    return rows


def _state_of(totals: bytes | None) -> MemoryState:
    """Committed state of a frontier with the totals, and without the sites to come."""
    state = MemoryState()
    state.apply([] if totals is None else [StateChange(TOTALS_KEY, totals)])
    return state


def settle_cache(folder: Path, *, hold: bool) -> None:
    """Have the system write the files and keep them in memory as far as it can, or drop them.

    Otherwise new data is written while claims are timed, and machines with shared memory keep little of it.
    """
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb", buffering=0) as file:
                os.fsync(file.fileno())
                if not hold:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                while hold and file.read(_READ_BYTES):
                    pass


def size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _sites(urls: int, sizes: Sequence[int]) -> Iterator[tuple[str, int]]:
    number = 0
    while urls > 0:
        size = min(sizes[number % len(sizes)], urls)
        yield f"site-{number:08}.example", size
        urls -= size
        number += 1


def _add_site(
    state: KeyedState, site: str, size: int, settings: CrawlSettings, now_ms: int, chance: random.Random
) -> None:
    store = SiteStore(state, settings, now_ms)
    row = store.new_site(site)
    row.origin = f"https://{site}"
    row.robots_until = row.tdm_until = now_ms + 24 * _HOUR_MS
    row.sitemaps_done = True
    row.next_start = now_ms - 1 - chance.randrange(_HOUR_MS)
    for number in range(size):
        url = f"https://{site}/articles/{chance.randrange(10**9):09}/a-title-of-some-words-{number}.html"
        if number % 3 == 1:
            found = UrlRow(url, status=Status.FETCHED, visit=1, priority=Priority.LINK, depth=1, has_page=True)
            found.etag = f'"{chance.getrandbits(64):016x}"'
            row.fetched += 1
            row.known += 1
            store.schedule(row, found, now_ms - chance.randrange(_HOUR_MS))
        elif number == 0:
            store.queue(row, UrlRow(url, hits=[f"{chance.getrandbits(128):032x}"]))
        else:
            row.known += 1
            store.queue(row, UrlRow(url, priority=Priority.LINK, depth=1))
    store.save(row)


if __name__ == "__main__":
    main()
