"""Periodic work: heartbeats, retention, the status line, the gauges of sites, rate and log size, the series.

It runs in a thread of each TALLY process. Two processes at once are harmless: points of a series have one key.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import structlog

from crawler.frontier.report import frontier_left
from farmwatch.share.live_share import BUSY, GAUGES_S, LiveShare
from farmwatch.upkeep.retention import RetentionRounds, set_size_gauges
from replay.runs.run_rules import RunRules
from replay.runs.topology import lag_of, reads_of_live
from scoring.rates.settings import RateSettings
from stream.log.contract import Log
from stream.processing import heartbeat
from stream.processing.clock_watch import ClockWatch
from stream.processing.metrics import Metrics
from stream.schema.topics import HITS

_log = structlog.get_logger()
HEARTBEAT_S = 60.0
RETENTION_S = 300.0
STATUS_S = 30.0
_SERIES_S = 1.0  # between two looks whether an interval of the series has ended


@dataclass(slots=True)
class PeriodicJob:
    """Work that is due every `every_s` seconds of the monotonic clock, the first time at once or after that time."""

    name: str
    every_s: float
    run: Callable[[], None]
    at_once: bool = False
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
            job.due_s = started + max(job.every_s, (self._cpu() - cpu_s) / BUSY)


def jobs_of_tally(
    log: Log,
    rate: RateSettings,
    metrics: Metrics,
    live: RunRules,
    method: tuple[str, str],
    clock: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
) -> list[PeriodicJob]:
    """The jobs of a TALLY process. `method`: name and digest of the live run's site method; clocks in seconds."""
    clocks = ClockWatch(clock, monotonic)
    share = LiveShare(log, rate, metrics, live, method, clock, monotonic)
    retention = RetentionRounds(log, clocks, monotonic)

    def send_heartbeat() -> None:
        heartbeat.beat(log, log.topics()[HITS], int(clock() * 1000))

    def log_status() -> None:
        crawl: dict[str, int] = {}
        if not log.forgets_offsets:  # on a broker it needs the whole changelog
            frontier = frontier_left(log, log.topics()[HITS])
            crawl = {"pages_fetched": frontier.fetched, "sites_open": frontier.active, "sites": frontier.sites}
        reads = reads_of_live(live.names)
        lags = {group: lag_of(log, group, reads) for group in reads}
        waiting = ",".join(f"{group}:{count}" for group, count in lags.items() if count) or "none"
        _log.info("status", **crawl, run=live.run.shown, waiting=waiting, share=share.text)

    return [
        PeriodicJob("heartbeat", HEARTBEAT_S, send_heartbeat, at_once=True),
        PeriodicJob("overview", GAUGES_S, share.update_gauges),
        PeriodicJob("templates", GAUGES_S, share.update_template_gauges),
        PeriodicJob("status", STATUS_S, log_status),
        PeriodicJob("retention", RETENTION_S, retention.apply),
        PeriodicJob("sizes", RETENTION_S, partial(set_size_gauges, log, metrics), at_once=True),
        PeriodicJob("series", _SERIES_S, partial(share.append_due_points, clocks)),
    ]
