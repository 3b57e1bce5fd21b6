"""CRAWL: hits and decisions in, page records out. The frontier is its keyed state; fetches run in another thread.

Requests are made only for committed claims: a claim goes to the fetch thread after its batch has committed. The result
changes the frontier in a later batch, together with the page record. After a crash, a rollback or a rebalance the URL
is still queued, and it is fetched again under the same fetch id.
"""

from __future__ import annotations

import heapq
import itertools
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

import structlog
from aiohttp.abc import AbstractResolver

from crawler.fetch.fetcher import Fetcher
from crawler.fetch.jobs import FetchResult, Job
from crawler.fetch.network_health import NetworkWatch, was_not_answered
from crawler.fetch.thread import FetchThread
from crawler.frontier.answers import asked_until
from crawler.frontier.frontier import Frontier
from crawler.frontier.page_log import page_headers
from crawler.frontier.rows import TOTALS_KEY, Stop, Totals, refuse_other_format, site_key, site_of_key, unpack
from crawler.frontier.site_store import due_sites
from crawler.frontier.stored_times import CLOCK_SLACK_MS, StoredClock
from crawler.metrics import FETCH_INFLIGHT, FRONTIER_WAIT_SECONDS, SEARCH_RESULTS
from crawler.robots.rules import RobotsShelf
from crawler.settings import CrawlSettings
from crawler.stages.crawl_metrics import count_requests, crawl_series, show_frontier
from crawler.stages.orders import CrawlOrders
from crawler.warc.writer import WarcWriter
from crawler.web.inspection import Inspector
from stream.log.errors import RecordTooLarge
from stream.processing.metrics import Metrics
from stream.processing.stage import Context, Series, Stage
from stream.processing.steady_clock import uptime_s
from stream.schema.records import Decision, Hit, Page, Record
from stream.schema.topics import DECISIONS, FRONTIER_STORE, HITS, PAGES
from stream.schema.vocabulary import FetchOutcome

_log = structlog.get_logger()
T = TypeVar("T")

# The longest wait for input, seconds: with requests under way (a hundredth of the delay, within these), and without
_LEAST_POLL_S, _BUSY_POLL_S, _IDLE_POLL_S = 0.02, 0.1, 0.5
_LOOKS = 1000  # due sites checked in one tick: after a start many of them must still wait
_REST_MS = 3_600_000  # rest of a site that could not even be stopped
_SOURCE = re.compile(r"[a-z0-9_.-]{1,32}")  # valid labels of a metric


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
        orders: CrawlOrders | None = None,
        inspector: Inspector | None = None,
        clock: Callable[[], float] = time.time,
        uptime: Callable[[], float] = uptime_s,
    ) -> None:
        """Check the settings (raises NoContact, BadCrawlSettings, ArchiveUnwritable) and start the fetch thread.

        `resolver` replaces DNS. `partitions` is the total number of partitions: processes that share them also share
        the request rates per domain and address. None: there is only this process. `orders`: pauses and exclusions.
        `inspector` says which answers are no page, and has sites probed; None: neither. `clock` returns UTC seconds,
        and `uptime` those of a clock that is never set.
        """
        self.store = FRONTIER_STORE
        self._busy_poll_s = min(max(settings.delay_s / 100, _LEAST_POLL_S), _BUSY_POLL_S)
        self.poll_s = self._busy_poll_s
        self._settings = settings
        self._partitions = partitions
        self._owned = partitions or 0  # how many of them are this process's
        self._metrics = metrics
        self._uptime = uptime
        self._orders = orders
        self._excludes: Callable[[str], bool] = orders.excludes if orders is not None else lambda _: False
        self._inspector = inspector
        self.paused: Mapping[str, str] = {}  # reason -> in words; any thread may read it
        self._robots = RobotsShelf(settings.name)
        self._in_flight: dict[int, int] = {}  # claim number -> partition
        self._claimed: dict[int, Job] = {}  # claim number -> job; their batch is not committed yet
        self._busy: dict[int, dict[str, int]] = {}  # partition -> site -> claim number
        self._since: dict[int, int] = {}  # partition -> when this process got it (ms)
        self._doubtful: set[int] = set()  # partitions whose stored times are to be checked
        self._demands: dict[str, int] = {}  # site -> earliest next start (ms); outlives a rollback
        self._prune_at_ms = 0
        self._difference_ms = 0  # of the clock and the uptime, in the last tick
        self._number = 0
        self.received_bytes = 0  # decoded, of all answers
        self._frontiers: dict[int, Frontier] = {}  # partition -> its frontier during a tick
        self._network = NetworkWatch(settings)
        self._warc = WarcWriter(settings, metrics) if settings.warc_folder else None
        fetcher = Fetcher(
            settings, resolver=resolver, clock=clock, tap=self._warc, excludes=self._excludes, inspector=inspector
        )
        self._thread = FetchThread(fetcher)

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def process(self, record: Any, prepared: Any, ctx: Context) -> None:  # noqa: ARG002  # nothing is prepared
        self._take_over(ctx)
        frontier = self._frontier(ctx)
        if isinstance(record, Hit):
            outcome = frontier.add_hit(record)
            source = record.source if _SOURCE.fullmatch(record.source) else "other"
            ctx.meter.count(SEARCH_RESULTS, source=source, outcome=outcome)
        else:
            frontier.decide(record)

    def tick(self, contexts: Mapping[int, Context]) -> None:
        self._frontiers.clear()
        self.committed()  # or `lost` has dropped the claims
        self.lost([partition for partition in self._since if partition not in contexts])
        for ctx in contexts.values():
            self._take_over(ctx)
        self._follow_orders()
        if self._partitions and contexts and len(contexts) != self._owned:  # tell the gate the share of all sites
            self._owned = len(contexts)
            self._thread.share(self._owned / self._partitions)
        now_ms = max((ctx.now_ms for ctx in contexts.values()), default=0)
        if contexts:
            self._watch_clock(now_ms)
        if now_ms >= self._prune_at_ms:  # once a second
            self._prune_at_ms = now_ms + 1000
            self._demands = {site: at for site, at in self._demands.items() if at > now_ms}
        answers = self._thread.collect()
        self.received_bytes += sum(request.body_bytes for _, answer in answers for request in answer.requests)
        for _, answer in answers:  # first, so that it survives a rollback of the results
            if answer.transient:
                self._demand(answer.job.site, asked_until(answer, self._settings))
        if self._warc is not None:
            self._warc.settle()  # no page reaches the log before the archive
        for number, answer in answers:
            partition = self._in_flight.get(number) if was_not_answered(answer) else None
            known = partition is not None and self._tick_frontier(contexts[partition]).has_answered(answer.job.site)
            self._network.note(answer, now_ms, has_answered=known)
        wait_s = self._network.excused_wait_s(now_ms) if self._network.is_down(now_ms) else None  # down: it is ours
        for owned in list(self._doubtful):
            if not self._tick_frontier(contexts[owned]).check_times(owned):
                self._doubtful.discard(owned)
        for number, answer in answers:
            partition = self._in_flight.pop(number, None)
            if partition is not None:  # else it was lost, or its batch rolled back
                del self._busy[partition][answer.job.site]
                self._apply(answer, contexts[partition], wait_s if was_not_answered(answer) else None)
        if not self.paused:
            self._claim(contexts)
        for ctx in contexts.values():
            StoredClock(ctx.state, ctx.now_ms).note()
        self._set_gauges(contexts)

    def committed(self) -> None:
        self._thread.submit(self._claimed)
        self._claimed = {}

    def lost(self, partitions: Sequence[int]) -> None:
        """Cancel the requests of these partitions; their URLs are still queued in the state."""
        for partition in partitions:
            numbers = self._busy.pop(partition, {}).values()
            self._thread.cancel([number for number in numbers if self._claimed.pop(number, None) is None])
            for number in numbers:
                del self._in_flight[number]
            self._since.pop(partition, None)
            self._doubtful.discard(partition)

    def on_dead_letter(self, partition: int) -> None:
        """Do nothing: `process` caches nothing, and a bad hit does not affect fetches."""

    def ready(self) -> bool:
        return self._thread.alive

    def metric_series(self, run: str) -> Iterator[Series]:
        yield from super().metric_series(run)
        yield from crawl_series()

    def close(self) -> None:
        self._thread.close()
        if self._warc is not None:
            self._warc.close()

    def _take_over(self, ctx: Context) -> None:
        """Take over a partition that is new to this process. Raises OldFrontier."""
        if ctx.partition not in self._since:
            refuse_other_format(ctx.state.get(TOTALS_KEY), f"partition {ctx.partition} of the store {self.store!r}")
            self._since[ctx.partition] = ctx.now_ms
            self._doubtful.add(ctx.partition)

    def _watch_clock(self, now_ms: int) -> None:
        """After the clock was set: each site waits one delay, as after a start, and no longer."""
        before, self._difference_ms = self._difference_ms, now_ms - int(1000 * self._uptime())
        if abs(self._difference_ms - before) <= CLOCK_SLACK_MS:
            return
        self._since = dict.fromkeys(self._since, now_ms)
        if self._difference_ms < before:
            self._doubtful.update(self._since)
            self._demands.clear()
            self._prune_at_ms = 0

    def _follow_orders(self) -> None:
        if self._orders is None:
            return
        self._orders.look()
        before, self.paused = self.paused, self._orders.paused
        if bool(before) != bool(self.paused):
            self._thread.hold(held=bool(self.paused))
        for reason in self.paused.keys() - before.keys():
            _log.warning("crawl_paused", reason=reason, said=self.paused[reason])
        for reason in before.keys() - self.paused.keys():
            _log.info("crawl_pause_ended", reason=reason)

    def _frontier(self, ctx: Context) -> Frontier:
        def emit(page: Page) -> None:
            ctx.emit(PAGES, page, headers=page_headers(page))

        return Frontier(
            *(ctx.state, self._settings, self._robots, ctx.meter, emit, ctx.now_ms, self._excludes, self._inspector),
            emit_other=ctx.emit,
        )

    def _run_step(
        self, ctx: Context, site: str, event: str, step: Callable[[Frontier], T], **more: object
    ) -> T | Exception:
        """Run a step of the frontier. If the program fails, roll all of it back, log the event, return the error.

        Raises the errors of the log, its disk and memory: no site caused them. The loop rolls back, or ends.
        """
        try:
            with ctx.savepoint():
                return step(self._tick_frontier(ctx))
        except BaseException as error:
            self._frontiers.pop(ctx.partition, None)  # it has cached what was rolled back
            of_log = getattr(error, "retriable", False) or isinstance(error, OSError | sqlite3.Error | MemoryError)
            if of_log or not isinstance(error, Exception):
                raise
            _log.exception(event, site=site, **more)
            return error

    def _tick_frontier(self, ctx: Context) -> Frontier:
        frontier = self._frontiers.get(ctx.partition)
        if frontier is None:
            frontier = self._frontiers[ctx.partition] = self._frontier(ctx)
        return frontier

    def _apply(self, answer: FetchResult, ctx: Context, excused_s: float | None) -> None:
        """Apply a result. If the program fails on it, or the log has no room for it, the URL ends as failed."""
        site = answer.job.site
        apply, kind = partial(Frontier.apply, answer=answer, excused_s=excused_s), answer.job.kind.value
        next_ms = self._run_step(ctx, site, "answer_not_applied", apply, kind=kind)
        count_requests(answer, ctx.meter)  # the frontier finds the pages "not found"
        if not isinstance(next_ms, Exception):
            self._demand(site, next_ms)
            return
        reason = "record_too_large" if isinstance(next_ms, RecordTooLarge) else Stop.INTERNAL
        bare = FetchResult(job=answer.job, outcome=FetchOutcome.FAILED, started_ms=answer.started_ms, reason=reason)
        if isinstance(self._run_step(ctx, site, "site_given_up", lambda frontier: frontier.apply(bare)), Exception):
            self._give_up(site_key(site), ctx)

    def _claim(self, contexts: Mapping[int, Context]) -> None:
        """Claim due sites up to the limit of requests in flight, the longest waiting first, across partitions.

        A job that waits between two requests does not count: a slow host must not block the others.
        """
        free = self._settings.max_in_flight - len(self._in_flight) + self._thread.waiting
        if free <= 0:
            return
        part = free // max(1, len(contexts)) + 1
        due = heapq.merge(
            *(due_sites(ctx, part, self._busy.setdefault(partition, {})) for partition, ctx in contexts.items())
        )
        for due_at, partition, key, value in itertools.islice(due, _LOOKS):
            ctx, site, busy = contexts[partition], site_of_key(key), self._busy[partition]
            since_ms, not_before_ms = self._since[partition], self._demands.get(site, 0)
            claim = partial(Frontier.claim, value=value, due_at=due_at, since_ms=since_ms, not_before_ms=not_before_ms)
            job = self._run_step(ctx, site, "site_given_up", claim)
            if isinstance(job, Exception):
                self._give_up(key, ctx)
            elif job is not None:
                ctx.meter.observe(FRONTIER_WAIT_SECONDS, max(0, ctx.now_ms - due_at) / 1000)
                self._number += 1
                self._in_flight[self._number], self._claimed[self._number] = partition, job
                busy[site] = self._number
                free -= 1
                if free == 0:
                    break

    def _give_up(self, key: bytes, ctx: Context) -> None:
        """Stop a site on which the program failed. If that fails too, keep its row and look again later."""
        value = ctx.state.get(key)
        if value is None:
            return
        site, rest_s = site_of_key(key), _REST_MS // 1000
        stopped = self._run_step(ctx, site, "site_rests", lambda frontier: frontier.give_up(value), rest_s=rest_s)
        if stopped is not True:
            ctx.state.put(key, value, ctx.now_ms + _REST_MS)

    def _demand(self, site: str, next_start_ms: int) -> None:
        """Remember when a site may be requested next, should the batch that stores it be rolled back."""
        self._demands[site] = max(next_start_ms, self._demands.get(site, 0))

    def _set_gauges(self, contexts: Mapping[int, Context]) -> None:
        due = [at - ctx.now_ms for ctx in contexts.values() if (at := ctx.state.next_due()) is not None]
        idle_s = min(max(min(due) / 1000, _LEAST_POLL_S), _IDLE_POLL_S) if due and not self.paused else _IDLE_POLL_S
        self.poll_s = self._busy_poll_s if self._in_flight else idle_s
        if self._metrics is not None:
            self._metrics.set(FETCH_INFLIGHT, len(self._in_flight))
            rows = [ctx.state.get(TOTALS_KEY) for ctx in contexts.values()]
            show_frontier(self._metrics, [unpack(Totals, row) for row in rows if row is not None], self.paused)
