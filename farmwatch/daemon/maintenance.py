"""Periodic work: heartbeats, retention, the status line, the gauges of sites, rate and log size, the series.

It runs in a thread of each TALLY process. Two processes at once are harmless: points of a series have one key.
Retention waits while the clock is in doubt.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import structlog

from crawler.frontier.report import frontier_now
from farmwatch.metrics import LOG_BYTES
from farmwatch.share.live_share import BUSY, GAUGES_S, LiveShare
from replay.runs.retention import offsets_to_keep, renew_idle
from replay.runs.run_rules import RunRules
from replay.runs.topology import first_record, is_to_crawl, lag_of, processed_by, reads_of_live
from scoring.rates.settings import RateSettings
from stream.log.contract import Log
from stream.log.errors import StreamError, TooMuchExpired
from stream.processing import heartbeat
from stream.processing.metrics import Metrics
from stream.processing.steady_clock import SteadyClock
from stream.schema.control import Control
from stream.schema.topics import HITS

_log = structlog.get_logger()
HEARTBEAT_S = 60.0
RETENTION_S = 300.0
STATUS_S = 30.0
_SERIES_S = 1.0  # between two looks whether an interval of the series has ended
_RENEW_S = 86_400.0  # a broker keeps the offsets of idle groups for a week
_UNCONFIRMED_SHARE = 0.5  # share of a topic that retention may remove before the clock is confirmed


@dataclass(slots=True)
class PeriodicJob:
    """Work that is due every `every_s` seconds of the monotonic clock, the first time at once or after that time."""

    name: str
    every_s: float
    run: Callable[[], None]
    at_once: bool = False
    rests: bool = True  # after costly work for longer, so that it takes at most `BUSY` of a processor
    due_s: float = field(init=False, default=0.0)


class Maintenance:
    """Runs each job at its interval until stopped. A failed job is logged and tried again at its next interval."""

    def __init__(
        self,
        jobs: Sequence[PeriodicJob],
        monotonic: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        """`cpu` measures a job, in seconds: wall time would slow the gauges on a busy machine."""
        self._jobs, self._monotonic, self._cpu = jobs, monotonic, cpu
        now_s = monotonic()
        for job in jobs:
            job.due_s = now_s + (0.0 if job.at_once else job.every_s)

    def run(self, stop: threading.Event) -> None:
        """Run the jobs until `stop`."""
        while not stop.is_set():
            self.run_due_jobs()
            stop.wait(max(0.05, min(job.due_s for job in self._jobs) - self._monotonic()))

    def run_due_jobs(self) -> None:
        """Run each due job."""
        for job in self._jobs:
            if (started := self._monotonic()) < job.due_s:
                continue
            cpu_s = self._cpu()
            try:
                job.run()
            except Exception as error:  # noqa: BLE001 - a failed job must not stop TALLY; it runs again at its next interval
                _log.warning("maintenance_failed", job=job.name, error=f"{type(error).__name__}: {error}"[:300])
            rest_s = (self._cpu() - cpu_s) / BUSY if job.rests else 0.0
            job.due_s = started + max(job.every_s, rest_s)


def jobs_of_tally(
    log: Log,
    rate: RateSettings,
    metrics: Metrics,
    live: RunRules,
    method: tuple[str, str],
    clock: SteadyClock,
    monotonic: Callable[[], float] = time.monotonic,
    stated: float | None = None,
) -> list[PeriodicJob]:
    """The jobs of a TALLY process. `method`: name and digest of the live run's site method.

    `clock` is that of the process, `monotonic` is in seconds, `stated` as in `LiveShare`.
    """
    share = LiveShare(log, rate, metrics, live, method, lambda: clock() / 1000, monotonic, stated)
    retention = RetentionRounds(log, clock, monotonic)

    def send_heartbeat() -> None:
        heartbeat.beat(log, log.topics()[HITS], clock())
        pass_for_crawl(log)

    def log_status() -> None:
        frontier = frontier_now(log, log.topics()[HITS])
        crawl = {"pages_fetched": frontier.fetched, "sites_open": frontier.active, "sites": frontier.sites}
        reads = reads_of_live(live.names)
        if not frontier.sites:  # then a decision waits for nobody
            reads = {**reads, "crawl": (HITS,)}
        lags = {group: lag_of(log, group, reads) for group in reads}
        waiting = ",".join(f"{group}:{count}" for group, count in lags.items() if count) or "none"
        _log.info("status", **crawl, run=live.run.shown, waiting=waiting, share=share.text_now())

    return [
        PeriodicJob("heartbeat", HEARTBEAT_S, send_heartbeat, at_once=True),
        PeriodicJob("overview", GAUGES_S, share.update_gauges),
        PeriodicJob("results", GAUGES_S, share.update_result_gauges),
        PeriodicJob("farms", GAUGES_S, share.update_farm_gauges),
        PeriodicJob("templates", GAUGES_S, share.update_template_gauges),
        PeriodicJob("status", STATUS_S, log_status),
        PeriodicJob("retention", RETENTION_S, retention.apply),
        PeriodicJob("sizes", RETENTION_S, partial(set_size_gauges, log, metrics), at_once=True),
        PeriodicJob("series", _SERIES_S, share.append_due_points, rests=False),  # no interval is skipped
    ]


@dataclass(slots=True)
class RetentionRounds:
    """Removes and compacts old records, except those that runs still need; once a day renews offsets of idle groups."""

    log: Log
    clock: SteadyClock
    monotonic: Callable[[], float]  # seconds
    renew: Callable[[Log, Control], None] = renew_idle
    _renew_at: float = field(init=False, default=0.0)
    _is_waiting: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._renew_at = self.monotonic()

    def apply(self) -> None:
        """Apply retention once; before the clock is confirmed, only a part of a topic is removed."""
        control = Control(self.log)
        obstacle = self._expire(control)
        if obstacle and not self._is_waiting:
            _log.warning("retention_waits", why=obstacle, until="an hour confirms the clock", check="timedatectl")
        if self._is_waiting and not obstacle:
            _log.info("retention_resumed")
        self._is_waiting = bool(obstacle)
        if self.monotonic() >= self._renew_at:
            self.renew(self.log, control)
            self._renew_at = self.monotonic() + _RENEW_S

    def _expire(self, control: Control) -> str:
        """Apply retention once. Returns the reason if it has to wait, else ""."""
        now_ms = self.clock()
        most = 1.0 if self.clock.is_confirmed else _UNCONFIRMED_SHARE
        try:
            freed = self.log.expire(now_ms, offsets_to_keep(self.log, control, now_ms), most=most)
        except TooMuchExpired as error:
            return str(error)
        if freed:
            _log.info("expired", bytes=freed)
        return ""


def pass_for_crawl(log: Log) -> None:
    """Without a CRAWL process, pass in its place the heartbeats and hits of imported pages that come next."""
    if log.members("crawl"):
        return
    begin = processed_by(log, "crawl", HITS)
    spans = enumerate(zip(begin, log.end(HITS), strict=True))
    found = [(end, first_record(log, HITS, at, start, end, is_to_crawl)) for at, (start, end) in spans]
    reached = [end if hit is None else hit.offset for end, hit in found]
    if reached != begin:
        with suppress(StreamError):  # a CRAWL process has begun
            log.reset("crawl", HITS, reached)


def set_size_gauges(log: Log, metrics: Metrics) -> None:
    """Set the gauges of the log's size; topics of replays count with those of the live run."""
    sizes: Counter[str] = Counter()
    for topic, size in log.sizes(list(log.topics())).items():
        sizes[topic.partition(".")[0]] += size.bytes
    for topic, size_bytes in sizes.items():
        metrics.set(LOG_BYTES, size_bytes, topic=topic)
