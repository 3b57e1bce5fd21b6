"""Builds frontiers of any size on disk for the benchmark: rows as the frontier writes them, on either log's state."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from crawler.frontier.rows import TOTALS_KEY, Priority, UrlRow
from crawler.frontier.site_store import SiteStore
from crawler.frontier.statuses import Status
from crawler.settings import CrawlSettings
from stream.embedded.log import EmbeddedLog
from stream.kafka.state import LocalState
from stream.log.contract import Commit, StateChange, StateReader, partition_of
from stream.log.sql_state import MemoryState
from stream.processing.state import KeyedState
from stream.schema.topics import DECISIONS, FRONTIER_STORE, HITS, all_topics

PARTITIONS = 4
SIZES = (1, 1, 1, 10, 10, 10, 40, 40, 40, 100, 400)  # URLs per site, in turn; 59 on average
_SITES_A_COMMIT = 400
_HOUR_MS = 3_600_000
_READ_BYTES = 1 << 20


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


Shelf = EmbeddedShelf | LocalShelf  # the store of a frontier


def build(shelf: Shelf, urls: int, settings: CrawlSettings, now_ms: int, tell: Callable[[int], None]) -> int:
    """Fill `shelf` with sites that have this many URLs in total; returns the number of rows.

    Every site is due, in an order that does not depend on that of the keys. The first of its URLs is a hit, and a third
    is fetched and waits for a re-visit. `tell` is called with the number of URLs so far.
    """
    totals: list[bytes | None] = [None] * PARTITIONS
    chance = random.Random(7)
    made = rows = 0
    sites = _sites(urls)
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
        tell(made)
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


def _sites(urls: int) -> Iterator[tuple[str, int]]:
    number = 0
    while urls > 0:
        size = min(SIZES[number % len(SIZES)], urls)
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
