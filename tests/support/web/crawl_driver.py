"""Runs CRAWL without a log: committed state in dicts, batches that are committed, rolled back or lost at will."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec.structs import asdict, replace

from crawler.frontier.report import frontier_left
from crawler.settings import CrawlSettings
from crawler.stages.crawl import CrawlStage
from crawler.web.hits_file import make_hit
from stream.log.contract import StateChange, partition_of
from stream.processing.metrics import Meter, Metrics
from stream.processing.stage import Context
from stream.processing.state import KeyedState
from stream.schema.records import Hit, Page, Record, decode
from stream.schema.topics import PAGES
from tests.support.limits import with_limits

_BASE = CrawlSettings(contact="https://crawler.example/about")


def crawl_settings(base: CrawlSettings = _BASE, /, **changes: Any) -> CrawlSettings:
    """Settings with changes, also of the limits that are constants of the class."""
    return with_limits(base, **changes)


def whole(settings: CrawlSettings) -> dict[str, Any]:
    """Settings with the limits, as `crawl_settings` takes them."""
    limits = [name for name, kind in CrawlSettings.__annotations__.items() if str(kind).startswith("ClassVar")]
    fields: dict[str, Any] = asdict(settings)
    return fields | {name: getattr(settings, name) for name in limits}


def patient_settings(target: str, **changes: Any) -> CrawlSettings:
    """Settings for a web on loopback: only the site's delay applies, and each page is visited once."""
    values: dict[str, object] = {
        "domain_delay_s": 0.0,
        "address_delay_s": 0.0,
        "ask_tdmrep": False,
        "refetch_fetched_s": 0.0,
        "allow_private": True,
        "resolve_to": {"*": target},
        **changes,
    }
    return crawl_settings(**values)


def settings_for(target: str, **changes: Any) -> CrawlSettings:
    """The same for a server that answers at once: polite, but fast."""
    quick = {"delay_s": 0.03, "retry_s": 0.03, "robots_retry_s": 0.05}
    timeouts = {"connect_timeout_s": 2.0, "idle_timeout_s": 1.0, "total_timeout_s": 3.0}
    return patient_settings(target, **(quick | timeouts | changes))


def hits_of(*urls: str) -> list[Hit]:
    """Hits with ranks 1, 2, …"""
    return [make_hit({"url": url, "rank": rank, "query_id": "q"}) for rank, url in enumerate(urls, 1)]


class Committed:
    """Committed state of a partition: a StateReader over a dict."""

    def __init__(self) -> None:
        self.rows: dict[bytes, tuple[bytes, int | None]] = {}

    def get(self, key: bytes) -> bytes | None:
        row = self.rows.get(key)
        return row[0] if row else None

    def scan(self, prefix: bytes, limit: int, after: bytes | None = None) -> list[tuple[bytes, bytes]]:
        keys = sorted(k for k in self.rows if k.startswith(prefix) and (after is None or k > after))
        return [(key, self.rows[key][0]) for key in keys[:limit]]

    def due(self, now_ms: int, limit: int) -> list[tuple[bytes, bytes, int]]:
        found = sorted((due, key) for key, (_, due) in self.rows.items() if due is not None and due <= now_ms)
        return [(key, self.rows[key][0], due) for due, key in found[:limit]]

    def next_due(self) -> int | None:
        return min((due for _, due in self.rows.values() if due is not None), default=None)

    def apply(self, changes: Iterable[StateChange]) -> None:
        for change in changes:
            if change.value is None:
                self.rows.pop(change.key, None)
            else:
                self.rows[change.key] = (change.value, change.due_at)


class Store:
    """Data that outlives a process: committed state and the pages."""

    def __init__(self, partitions: int = 4) -> None:
        self.states = [Committed() for _ in range(partitions)]
        self.pages: list[Page] = []

    def scan_state(self, store: str, partition: int) -> list[tuple[bytes, bytes]]:
        return self.states[partition].scan(b"", 10**9)

    def of(self, site: str) -> list[Page]:
        return [page for page in self.pages if page.site == site]


def same_on_every_run(pages: Sequence[Page], site: str) -> list[Page]:
    """A site's pages, in order, without fields that differ between runs."""
    return [replace(page, fetched_at=0, first_at=0, duration_ms=0, headers={}) for page in pages if page.site == site]


class Driver:
    """One process with the stage, over a store."""

    def __init__(self, settings: CrawlSettings, store: Store, **options: object) -> None:
        self.metrics = Metrics()
        self._passed_s = 0.0  # beyond the time of the test
        self.stage = CrawlStage(
            settings,
            self.metrics,
            clock=lambda: time.time() + self._passed_s,
            uptime=lambda: time.monotonic() + self._passed_s,
            **options,  # type: ignore[arg-type]
        )
        self.store = store

    def round(self, records: Sequence[Record] = (), *, commit: bool = True, later_ms: int = 0) -> None:
        """Let `later_ms` pass, and run a batch: process, tick, and commit or roll back."""
        self._passed_s += later_ms / 1000
        now = int(1000 * (time.time() + self._passed_s))
        meter = Meter()
        states = [KeyedState(state) for state in self.store.states]
        contexts = {p: Context(p, state, meter, now) for p, state in enumerate(states)}
        for record in records:
            partition = partition_of(record.site, len(states))
            context = Context(partition, states[partition], meter, now)
            self.stage.process(record, None, context)
            contexts[partition].outputs.extend(context.outputs)
        self.stage.tick(contexts)
        if not commit:
            self.stage.lost(list(contexts))
            return
        for partition, context in contexts.items():
            self.store.states[partition].apply(states[partition].changes())
            pages = [output for output in context.outputs if output.topic == PAGES]
            self.store.pages += [decode(Page, output.value or b"") for output in pages]
        self.stage.committed()
        meter.apply(self.metrics)

    @property
    def at_rest(self) -> bool:
        """Whether the committed frontier has only later visits left."""
        return frontier_left(self.store, len(self.store.states)).active == 0  # type: ignore[arg-type]

    def run(self, records: Sequence[Record] = (), *, limit_s: float = 20.0) -> list[Page]:
        """Run batches until the frontier is at rest; returns all pages of the store."""
        self.round(records)
        self.run_until(lambda: self.at_rest, limit_s=limit_s)
        return self.store.pages

    def run_until(self, condition: Callable[[], object], *, limit_s: float = 20.0) -> None:
        """Run batches until the condition holds; fails after `limit_s`."""
        until = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < until, "the crawl did not get there in time"
            self.round()
            time.sleep(min(self.stage.poll_s, 0.005))  # the last answer is not yet collected

    def wait_for_result(self) -> None:
        """Wait until the fetch thread has a result that the stage has not collected."""
        until = time.monotonic() + 10
        while self.stage._thread._done.empty():
            assert time.monotonic() < until, "no result came"
            time.sleep(0.005)

    def close(self) -> None:
        self.stage.close()


@contextmanager
def driving(settings: CrawlSettings, store: Store | None = None, /, **options: object) -> Iterator[Driver]:
    """One process with the stage, closed at the end of the block."""
    driver = Driver(settings, store or Store(), **options)
    try:
        yield driver
    finally:
        driver.close()


def crawl(settings: CrawlSettings, records: Sequence[Record], **options: object) -> list[Page]:
    """Crawl the hits to the end in one process."""
    with driving(settings, **options) as driver:
        return driver.run(records)
