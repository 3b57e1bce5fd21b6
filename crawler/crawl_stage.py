"""CRAWL: hits and decisions in, page records out. The frontier is its keyed state; fetches run in a thread beside it.

Requests are made only for committed claims: a claim goes to the fetch thread after its batch has committed. The result
changes the frontier in a later batch, together with the page record. After a crash, a rollback or a rebalance the URL
is still queued, and it is fetched again under the same fetch id.
"""

from __future__ import annotations

import heapq
import itertools
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

import structlog
from aiohttp.abc import AbstractResolver

from crawler.fetch.fetcher import Fetcher
from crawler.fetch.jobs import ABSENT, FetchOutcome, FetchResult, Job, RequestKind
from crawler.fetch.network_health import NetworkWatch, is_absent, was_not_answered
from crawler.fetch.request_labels import expected, reason_label, status_label
from crawler.fetch.thread import ClaimResult, FetchThread
from crawler.frontier.frontier import Frontier
from crawler.frontier.page_log import page_headers
from crawler.frontier.parking import asked_until
from crawler.frontier.rows import TOTALS_KEY, Stop, Totals, refuse_other_format, site_key, site_of_key, unpack
from crawler.frontier.statuses import Status
from crawler.robots.rules import RobotsShelf
from crawler.settings import CrawlSettings
from crawler.warc.exchange import RECORD_TYPES
from crawler.warc.writer import open_warc
from stream.log.contract import Log
from stream.processing.metrics import Meter, Metrics
from stream.processing.stage import Context, Series, Stage
from stream.schema.records import Decision, Hit, Record
from stream.schema.topics import DECISIONS, FRONTIER_STORE, HITS, PAGES

log = structlog.get_logger(__name__)
T = TypeVar("T")

# The longest wait for input, seconds: with requests under way (a hundredth of the delay, within these), and without
_LEAST_POLL_S, _BUSY_POLL_S, _IDLE_POLL_S = 0.02, 0.1, 0.5
_LOOKS = 1000  # due sites checked in one tick: after a start many of them must still wait
_REST_MS = 3_600_000  # rest of a site that could not even be stopped
_SOURCE = re.compile(r"[a-z0-9_.-]{1,32}")  # valid labels of a metric


@dataclass(frozen=True, slots=True)
class FrontierCounts:
    """The progress of a crawl. The crawl is complete when no site is `active`."""

    sites: int = 0
    active: int = 0
    stopped: int = 0
    queued: int = 0  # URLs
    fetched: int = 0  # pages


@dataclass(slots=True)
class _InFlight:
    """A claim whose result is not applied yet."""

    partition: int
    job: Job
    submitted: bool = False


class CrawlStage(Stage):
    """The stage: create it, pass it to the loop, and `close` it at the end."""

    name: ClassVar[str] = "crawl"
    inputs: Mapping[str, type[Record]] = {HITS: Hit, DECISIONS: Decision}
    forward: str | None = PAGES
    heartbeat_input: str | None = HITS

    def __init__(
        self,
        settings: CrawlSettings,
        metrics: Metrics | None = None,
        *,
        resolver: AbstractResolver | None = None,
        partitions: int | None = None,
    ) -> None:
        """Check the settings (raises NoContact, BadCrawlSettings, ArchiveUnwritable) and start the fetch thread.

        `resolver` replaces DNS. `partitions` is the total number of partitions: processes that share them also share
        the request rates per domain and address. None: there is only this process.
        """
        self.store = FRONTIER_STORE
        self._busy_poll_s = min(max(settings.delay_s / 100, _LEAST_POLL_S), _BUSY_POLL_S)
        self.poll_s = self._busy_poll_s
        self._settings = settings
        self._partitions = partitions
        self._owned = partitions or 0  # how many of them are this process's
        self._metrics = metrics
        self._robots = RobotsShelf(settings.name)
        self._in_flight: dict[int, _InFlight] = {}  # by claim number, oldest first
        self._busy: dict[int, dict[str, int]] = {}  # partition -> site -> claim number
        self._since: dict[int, int] = {}  # partition -> when this process got it (ms)
        self._totals: dict[int, Totals] = {}
        self._demands: dict[str, int] = {}  # site -> earliest next start (ms), not committed yet
        self._settled: set[str] = set()  # of them, those that the current batch writes
        self._number = 0
        self.received_bytes = 0  # decoded, of all answers
        self._frontiers: dict[int, Frontier] = {}  # partition -> its frontier during a tick
        self._network = NetworkWatch(settings)
        self._warc = open_warc(settings, metrics)
        self._thread = FetchThread(Fetcher(settings, resolver=resolver, tap=self._warc))

    @property
    def in_flight(self) -> int:
        """How many requests are under way. Thread-safe."""
        return len(self._in_flight)

    def process(self, record: Any, prepared: Any, ctx: Context) -> None:  # noqa: ARG002  # nothing is prepared
        """Add a hit or a decision to the frontier. Raises UnusableUrl."""
        self._take_over(ctx)
        frontier = self._frontier(ctx)
        if isinstance(record, Hit):
            outcome = frontier.add_hit(record)
            source = record.source if _SOURCE.fullmatch(record.source) else "other"
            ctx.meter.count("search_results", source=source, outcome=outcome)
        else:
            frontier.decide(record)

    def tick(self, contexts: Mapping[int, Context]) -> None:
        """Apply the results that arrived, and claim the sites that are due."""
        self._frontiers.clear()
        self._submit()  # the batch that made these claims is committed, or `lost` has dropped them
        self._drop_committed_demands()
        self._drop_partitions([partition for partition in self._since if partition not in contexts])
        for ctx in contexts.values():
            self._take_over(ctx)
        self._share(len(contexts))
        now_ms = max((ctx.now_ms for ctx in contexts.values()), default=0)
        self._demands = {site: at for site, at in self._demands.items() if at > now_ms}
        answers = self._thread.collect()
        self.received_bytes += sum(request.body_bytes for _, answer in answers for request in answer.requests)
        for _, answer in answers:  # first, so that it survives a rollback of the results
            if answer.outcome is FetchOutcome.FAILED and (until_ms := asked_until(answer, self._settings)):
                self._demand(answer.job.site, until_ms)
        if self._warc is not None:
            self._warc.settle()  # no page reaches the log before the archive
        is_down = self._watch_network(answers, contexts, now_ms)
        wait_s = self._network.excused_wait_s(now_ms) if is_down else None
        for number, answer in answers:
            flight = self._in_flight.pop(number, None)
            if flight is not None:  # else its partition was lost, or its batch rolled back
                del self._busy[flight.partition][answer.job.site]
                excused_s = wait_s if was_not_answered(answer) else None
                self._apply(answer, contexts[flight.partition], excused_s)
        self._claim(contexts)
        self._set_gauges(contexts)

    def committed(self) -> None:
        """Submit the claims of the batch to the fetch thread."""
        self._drop_committed_demands()
        self._submit()

    def lost(self, partitions: Sequence[int]) -> None:
        """Cancel the requests of these partitions; their URLs are still queued in the state."""
        self._settled.clear()
        self._drop_partitions(partitions)

    def on_dead_letter(self, partition: int) -> None:
        """Do nothing: `process` caches nothing, and a bad hit does not affect fetches."""

    def ready(self) -> bool:
        """Whether the fetch thread is running."""
        return self._thread.alive

    def metric_series(self, run: str) -> Iterator[Series]:
        """See `Stage.metric_series`."""
        yield from super().metric_series(run)
        for kind in RequestKind:
            for metric in ("fetch_response_bytes", "fetch_duration_seconds", "fetch_deferred"):
                yield metric, {"kind": kind.value}
            for outcome, status, reason in expected(kind):
                labels = {"kind": kind.value, "outcome": outcome, "status": status, "reason": reason}
                yield "fetch_requests", labels
        for result in ("allowed", "disallowed"):
            yield "robots_lookups", {"result": result}
        for record_type in RECORD_TYPES:
            yield "warc_records", {"type": record_type}

    def close(self) -> None:
        """Cancel all requests and end the thread."""
        self._thread.close()
        if self._warc is not None:
            self._warc.close()
        self._network.summarise(0, last=True)

    def _take_over(self, ctx: Context) -> None:
        """Take over a partition that is new to this process. Raises OldFrontier."""
        if ctx.partition not in self._since:
            refuse_other_format(ctx.state.get(TOTALS_KEY), f"partition {ctx.partition} of the store {self.store!r}")
            self._since[ctx.partition] = ctx.now_ms

    def _share(self, owned: int) -> None:
        """Tell the gate which share of all sites this process crawls."""
        if self._partitions and owned and owned != self._owned:
            self._owned = owned
            self._thread.share(owned / self._partitions)

    def _frontier(self, ctx: Context) -> Frontier:
        return Frontier(
            ctx.state,
            self._settings,
            self._robots,
            ctx.meter,
            lambda page: ctx.emit(PAGES, page, headers=page_headers(page)),
            ctx.now_ms,
        )

    def _run_step(self, ctx: Context, step: Callable[[Frontier], T]) -> T:
        """Run a step of the frontier; roll all of it back if it fails."""
        try:
            with ctx.savepoint():
                return step(self._tick_frontier(ctx))
        except BaseException:
            self._frontiers.pop(ctx.partition, None)  # it has cached what was rolled back
            raise

    def _tick_frontier(self, ctx: Context) -> Frontier:
        frontier = self._frontiers.get(ctx.partition)
        if frontier is None:
            frontier = self._frontiers[ctx.partition] = self._frontier(ctx)
        return frontier

    def _watch_network(self, answers: Iterable[ClaimResult], contexts: Mapping[int, Context], now_ms: int) -> bool:
        """Whether the failures among these results are caused by our own network."""
        for number, answer in answers:
            flight = self._in_flight.get(number) if was_not_answered(answer) else None
            known = flight is not None and self._tick_frontier(contexts[flight.partition]).has_answered(answer.job.site)
            self._network.note(answer, now_ms, has_answered=known)
        self._network.summarise(now_ms)
        return self._network.is_down(now_ms)

    def _apply(self, answer: FetchResult, ctx: Context, excused_s: float | None) -> None:
        """Apply a result. If the program fails on it, the URL ends as failed and the crawl continues."""
        site = answer.job.site
        _count_requests(answer, ctx.meter)
        try:
            self._demand(site, self._run_step(ctx, lambda frontier: frontier.apply(answer, excused_s=excused_s)))
            self._settled.add(site)
            return
        except Exception as error:
            _reraise_log_error(error)
            log.exception("answer_not_applied", site=site, kind=answer.job.kind.value)
        bare = FetchResult(
            job=answer.job, outcome=FetchOutcome.FAILED, started_ms=answer.started_ms, reason=Stop.INTERNAL
        )
        try:
            self._run_step(ctx, lambda frontier: frontier.apply(bare))
        except Exception as error:
            _reraise_log_error(error)
            log.exception("site_given_up", site=site)
            self._give_up(site_key(site), ctx)

    def _claim(self, contexts: Mapping[int, Context]) -> None:
        """Claim due sites up to the limit of requests in flight, the longest waiting first, across partitions.

        A job that waits between two requests does not count: a slow host must not block the others.
        """
        free = self._settings.max_in_flight - len(self._in_flight) + self._thread.waiting
        if free <= 0:
            return
        part = free // max(1, len(contexts)) + 1
        due = heapq.merge(*(self._due(ctx, part) for ctx in contexts.values()))
        for due_at, partition, key, value in itertools.islice(due, _LOOKS):
            ctx, site, busy = contexts[partition], site_of_key(key), self._busy[partition]
            try:
                job = self._run_step(ctx, partial(self._claim_one, ctx, site, value, due_at))
            except Exception as error:
                _reraise_log_error(error)
                log.exception("site_given_up", site=site)
                self._give_up(key, ctx)
                continue
            if job is not None:
                self._number += 1
                self._in_flight[self._number] = _InFlight(partition, job)
                busy[site] = self._number
                free -= 1
                if free == 0:
                    break

    def _due(self, ctx: Context, limit: int) -> Iterator[tuple[int, int, bytes, bytes]]:
        """The due sites of a partition without a job, each once: (due time, partition, key, row).

        Reads `limit` of them at first, and more while the caller asks.
        """
        busy = self._busy.setdefault(ctx.partition, {})
        seen: set[bytes] = set()
        while True:
            wanted = limit + len(seen) + len(busy)
            rows = ctx.state.due(ctx.now_ms, wanted)
            for key, value, due_at in rows:
                if key not in seen and site_of_key(key) not in busy:
                    seen.add(key)
                    yield due_at, ctx.partition, key, value
            if len(rows) < wanted:
                return
            limit *= 2

    def _claim_one(self, ctx: Context, site: str, value: bytes, due_at: int, frontier: Frontier) -> Job | None:
        since_ms, not_before_ms = self._since[ctx.partition], self._demands.get(site, 0)
        claim = frontier.claim(value, due_at, since_ms, not_before_ms)
        if not_before_ms:
            self._settled.add(site)
        if claim is None:
            return None
        ctx.meter.observe("frontier_wait_seconds", max(0, ctx.now_ms - claim.due_at) / 1000)
        return claim.job

    def _give_up(self, key: bytes, ctx: Context) -> None:
        """Stop a site on which the program failed. If that fails too, keep its row and look again later."""
        value = ctx.state.get(key)
        if value is None:
            return
        try:
            stopped = self._run_step(ctx, lambda frontier: frontier.give_up(value))
        except Exception as error:
            _reraise_log_error(error)
            log.exception("site_rests", site=site_of_key(key), rest_s=_REST_MS // 1000)
            stopped = False
        if not stopped:
            ctx.state.put(key, value, ctx.now_ms + _REST_MS)

    def _demand(self, site: str, next_start_ms: int) -> None:
        """Remember, until it is committed, when a site may be requested next."""
        self._demands[site] = max(next_start_ms, self._demands.get(site, 0))

    def _drop_committed_demands(self) -> None:
        """Drop the demands that the last batch committed."""
        for site in self._settled:
            self._demands.pop(site, None)
        self._settled.clear()

    def _submit(self) -> None:
        waiting = {number: flight for number, flight in self._in_flight.items() if not flight.submitted}
        self._thread.submit({number: flight.job for number, flight in waiting.items()})
        for flight in waiting.values():
            flight.submitted = True

    def _drop_partitions(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            numbers = self._busy.pop(partition, {}).values()
            self._thread.cancel([number for number in numbers if self._in_flight.pop(number).submitted])
            self._since.pop(partition, None)
            self._totals.pop(partition, None)

    def _set_gauges(self, contexts: Mapping[int, Context]) -> None:
        """Set the gauges and how long the loop may wait for input."""
        self.poll_s = self._busy_poll_s if self._in_flight else _idle_poll_s(contexts.values())
        if self._metrics is None:
            return
        for partition, ctx in contexts.items():
            value = ctx.state.get(TOTALS_KEY)
            self._totals[partition] = unpack(Totals, value) if value is not None else Totals()
        totals = self._totals.values()
        self._metrics.set("fetch_inflight", len(self._in_flight))
        self._metrics.set("frontier_urls", sum(t.queued for t in totals), state="queued")
        for status in Status:
            self._metrics.set("frontier_urls", sum(t.urls[status] for t in totals if t.urls), state=status.label)
        states = {name: sum(getattr(t, name) for t in totals) for name in ("resting", "parked", "stopped")}
        states["active"] = sum(t.sites for t in totals) - sum(states.values())
        for state, sites in states.items():
            self._metrics.set("frontier_sites", sites, state=state)


def _idle_poll_s(contexts: Collection[Context]) -> float:
    """How long to wait for input while nothing is in flight: until the next site is due, within bounds."""
    due = [at - ctx.now_ms for ctx in contexts if (at := ctx.state.next_due()) is not None]
    return min(max(min(due) / 1000, _LEAST_POLL_S), _IDLE_POLL_S) if due else _IDLE_POLL_S


def _reraise_log_error(error: Exception) -> None:
    """Re-raise errors of the log, its disk and memory: no site caused them. The loop rolls back, or ends."""
    if getattr(error, "retriable", False) or isinstance(error, OSError | sqlite3.Error | MemoryError):
        raise error


def _count_requests(answer: FetchResult, meter: Meter) -> None:
    if answer.outcome is FetchOutcome.DEFERRED:
        meter.count("fetch_deferred", kind=answer.job.kind.value)
    for request in answer.requests:
        kind, outcome, reason = request.kind.value, request.outcome, reason_label(request.reason)
        if outcome == FetchOutcome.FAILED.value and is_absent(request.kind, request.status):
            outcome, reason = ABSENT, ""
        status = status_label(request.status)
        meter.count("fetch_requests", kind=kind, outcome=outcome, status=status, reason=reason)
        meter.count("fetch_response_bytes", request.body_bytes, kind=kind)
        meter.observe("fetch_duration_seconds", request.duration_s, kind=kind)


def frontier_left(log: Log, partitions: int, store: str = FRONTIER_STORE) -> FrontierCounts:
    """The progress of the crawl from the committed state of all partitions; reads one row of each."""
    found = []
    for partition in range(partitions):
        row = next(iter(log.scan_state(store, partition)), None)
        if row is not None and row[0] == TOTALS_KEY:
            found.append(unpack(Totals, row[1]))
    return FrontierCounts(
        sites=sum(t.sites for t in found),
        active=sum(t.active for t in found),
        stopped=sum(t.stopped for t in found),
        queued=sum(t.queued for t in found),
        fetched=sum(t.fetched for t in found),
    )
