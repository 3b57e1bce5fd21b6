"""Periodic work: heartbeats, retention, the status line, the gauges of sites, rate and log size, the series.

It runs in a thread of each TALLY process. Two processes at once are harmless: points of a series have one key.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import NamedTuple

import structlog

from crawler.frontier.report import frontier_left
from farmwatch.config.settings import UpSettings
from farmwatch.share.rate_cache import LARGE, CachedRate, store_rate
from farmwatch.share.rate_series import SeriesWriter
from farmwatch.share.review_labels import read_review
from farmwatch.share.template_groups import read_template_groups
from replay.rows.site_table import SiteTable, counts_of
from replay.runs.retention import offsets_to_keep, renew_idle
from replay.runs.run_rules import RunRules
from replay.runs.topology import lag_of, reads_of_live
from scoring.estimate.definitions import DEFINITIONS, SITES
from scoring.estimate.reviewed_share import Review
from scoring.rates.canary_counts import recent_canaries
from scoring.rates.series import GROUPS_CAP, interval_start
from scoring.rates.settings import RateSettings
from scoring.rates.site_rates import has_verdict
from scoring.rates.split_rates import RateLine, rate_lines
from stream.log.contract import Log
from stream.log.errors import TooMuchExpired
from stream.processing import heartbeat
from stream.processing.metrics import Metrics
from stream.schema.control import Control
from stream.schema.records import SiteState
from stream.schema.topics import HITS
from stream.schema.vocabulary import SiteClass
from stream.text.user_errors import FarmwatchError

_log = structlog.get_logger()
_OVERVIEW_S = 15.0  # between two updates of the gauges
_BUSY = 0.05  # largest CPU share of a job: with a million sites, the gauges take longer than their interval
_RENEW_S = 86_400.0  # a broker keeps the offsets of idle groups for a week
_HOUR_S = 3600.0
_RANKS = 5  # shared templates with a gauge
_AT_ONCE = ("heartbeat", "sizes")  # jobs that run at the start, before their first interval
_UNCONFIRMED_SHARE = 0.5  # share of a topic that retention may remove before the clock is confirmed
_SOURCE = re.compile(r"[a-z0-9_.-]{1,32}")


class ClockReading(NamedTuple):
    """A comparison of the two clocks."""

    moved_s: float  # unconfirmed movement of the wall clock against the monotonic clock; 0 if less than an hour
    is_confirmed: bool  # the wall clock has not moved for an hour
    wall_s: float


class ClockWatch:
    """Compares the wall clock with the monotonic clock, which cannot be set.

    An hour in which both move together confirms the current wall clock. A new process starts with such an hour.
    """

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float]) -> None:
        """Both clocks are in seconds."""
        self._wall = wall
        self._monotonic = monotonic
        self._since_s = self._based_s = monotonic()
        self._believed_s = self._seen_s = wall() - self._since_s  # differences of the clocks

    def read(self) -> ClockReading:
        """Compare now."""
        now_s, wall_s = self._monotonic(), self._wall()
        difference_s = wall_s - now_s
        if abs(difference_s - self._seen_s) > _HOUR_S:
            self._seen_s, self._since_s = difference_s, now_s
        is_confirmed = now_s - self._since_s >= _HOUR_S
        if is_confirmed and now_s - self._based_s >= _HOUR_S:  # not at each reading: a clock may move in small steps
            self._believed_s = self._seen_s = difference_s
            self._based_s = now_s
        moved_s = difference_s - self._believed_s
        return ClockReading(moved_s if abs(moved_s) > _HOUR_S else 0.0, is_confirmed, wall_s)


@dataclass
class Maintenance:
    """Runs each job at its interval until stopped. A failed job is logged and tried again at its next interval."""

    log: Log
    settings: UpSettings
    rate: RateSettings
    metrics: Metrics
    live: RunRules
    method: tuple[str, str]  # name and digest of the site method of the live run
    clock: Callable[[], float] = time.time  # both clocks are in seconds
    monotonic: Callable[[], float] = time.monotonic
    _: KW_ONLY
    cpu: Callable[[], float] = time.thread_time  # of a job; wall time would slow the gauges on a busy machine
    renew: Callable[[Log, Control], None] = renew_idle

    def __post_init__(self) -> None:
        self._clock_watch = ClockWatch(self.clock, self.monotonic)
        self._is_retention_waiting = False
        self._table = SiteTable(self.log, self.live.names.sites)
        self._reads = reads_of_live(self.live.names)
        self._share = "none yet"
        self._template_ends: list[int] = []
        self._renew_at = self.monotonic()
        self._series = SeriesWriter(self.log, self.rate, self.live.run.name, self.live.run.epoch)
        self._jobs: Sequence[tuple[str, float, Callable[[], None]]] = (
            ("heartbeat", self.settings.heartbeat_s, self.send_heartbeat),
            ("overview", _OVERVIEW_S, self.update_gauges),
            ("templates", _OVERVIEW_S, self.update_template_gauges),
            ("status", self.settings.status_s, self.log_status),
            ("retention", self.settings.retention_s, self.apply_retention),
            ("sizes", self.settings.retention_s, self.update_size_gauges),
        )
        now_s = self.monotonic()
        self._due = {name: now_s + (0.0 if name in _AT_ONCE else every_s) for name, every_s, _ in self._jobs}
        self._next_point_s = self._end_of_interval(self.clock())
        self._newest_point_s = 0.0  # end of the newest interval with a point

    def run(self, stop: threading.Event) -> None:
        """Run the jobs until `stop`."""
        while not stop.is_set():
            self.run_due_jobs()
            wait_s = min(self._due.values()) - self.monotonic()
            point_in_s = self._next_point_s - self.clock()
            if point_in_s > 0:  # else the point waits until the clock is confirmed
                wait_s = min(wait_s, point_in_s)
            stop.wait(max(0.05, wait_s))

    def run_due_jobs(self) -> None:
        """Run each due job: points of the series by the wall clock, all others by the monotonic clock."""
        for name, every_s, job in self._jobs:
            if (started := self.monotonic()) >= self._due[name]:
                cpu_s = self.cpu()
                self._run_job(name, job)
                self._due[name] = started + max(every_s, (self.cpu() - cpu_s) / _BUSY)
        clock = self._clock_watch.read()
        end_s = self._end_of_interval(clock.wall_s)
        if end_s == self._next_point_s or clock.moved_s:
            return
        self._next_point_s = end_s
        if end_s > self._newest_point_s:  # an older point is not replaced
            self._newest_point_s = end_s
            self._run_job("series", partial(self.append_points, clock.wall_s))

    def _run_job(self, name: str, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:  # noqa: BLE001 - a failed job must not stop TALLY; it runs again at its next interval
            _log.warning("maintenance_failed", job=name, error=f"{type(error).__name__}: {error}"[:300])

    def send_heartbeat(self) -> None:
        """Send a heartbeat through all stages."""
        heartbeat.beat(self.log, self.log.topics()[HITS], int(self.clock() * 1000))

    def apply_retention(self) -> None:
        """Remove and compact old records, except those that runs still need. Does nothing while the clock is in doubt.

        Once a day, also renews the offsets of idle groups.
        """
        control = Control(self.log)
        obstacle = self._expire(control)
        if obstacle and not self._is_retention_waiting:
            _log.warning("retention_waits", why=obstacle, until="an hour confirms the clock", check="timedatectl")
        if self._is_retention_waiting and not obstacle:
            _log.info("retention_resumed")
        self._is_retention_waiting = bool(obstacle)
        if self.monotonic() >= self._renew_at:
            self.renew(self.log, control)
            self._renew_at = self.monotonic() + _RENEW_S

    def _expire(self, control: Control) -> str:
        """Apply retention once. Returns the reason if it has to wait, else ""."""
        clock = self._clock_watch.read()
        if clock.moved_s:
            return f"the clock moved by {clock.moved_s / 3600:+.1f} hours"
        now_ms = int(clock.wall_s * 1000)
        most = 1.0 if clock.is_confirmed else _UNCONFIRMED_SHARE
        try:
            freed = self.log.expire(now_ms, offsets_to_keep(self.log, control, now_ms), most=most)
        except TooMuchExpired as error:
            return str(error)
        if freed:
            _log.info("expired", bytes=freed)
        return ""

    def update_size_gauges(self) -> None:
        """Set the gauges of the log's size."""
        sizes: Counter[str] = Counter()
        for topic, size in self.log.sizes(list(self.log.topics())).items():
            sizes[topic.partition(".")[0]] += size.bytes
        for topic, size_bytes in sizes.items():
            self.metrics.set("log_bytes", size_bytes, topic=topic)

    def log_status(self) -> None:
        """Log one line: the crawl (embedded log only: on a broker it needs the whole changelog), lag and share."""
        status: dict[str, int | str] = {}
        if not self.log.forgets_offsets:  # no broker
            frontier = frontier_left(self.log, self.log.topics()[HITS])
            status = {"pages_fetched": frontier.fetched, "sites_open": frontier.active, "sites": frontier.sites}
        waiting = {group: lag_of(self.log, group, self._reads) for group in self._reads}
        status["run"] = self.live.run.shown
        status["waiting"] = ",".join(f"{group}:{count}" for group, count in waiting.items() if count) or "none"
        status["share"] = self._share
        _log.info("status", **status)

    def append_points(self, now_s: float) -> None:
        """Append the points of the series for the interval that holds `now_s`. Raises BadRuleset.

        For a large log, the rates of each split are stored for `farmwatch rate --by`.
        """
        rows, review = self._live_rows(), self._review()
        splits = {by: lines for by, lines in self._series.append(rows, now_s, review).items() if by}
        self._store(splits, rows, int(now_s * 1000), self.rate.series_s, review)

    def update_gauges(self) -> None:
        """Set the gauges of sites, share and canaries from the rows of the live run. Raises BadRuleset.

        The labels have no digest, so only rows of the ruleset, detector and site method in force count. Sites without a
        verdict count with the ruleset in force. For a large log, the rate is stored for `farmwatch rate`.
        """
        started = self.monotonic()
        rows, now_ms, review = self._live_rows(), int(self.clock() * 1000), self._review()
        for name in ("sites", "sites_expired", "share", "share_sites", "share_changed", "farm_rate"):
            self.metrics.clear(name)
        run = self.live.run.name
        for split, definition in (*(("", definition) for definition in DEFINITIONS), ("source", SITES)):
            lines = rate_lines(rows, split, self.rate, now_ms=now_ms, run=run, review=review, definition=definition)
            if not split and definition == SITES:
                of_sites = lines
                self._update_site_gauges(lines)
            for line in lines:
                self._update_share_gauges(line, definition, _label(line.group) if split else "all")
        self._update_canary_gauges([row for row in rows if row.ruleset], now_ms)
        wait_s = max(_OVERVIEW_S, (self.monotonic() - started) / _BUSY)
        self._store({"": of_sites}, rows, now_ms, wait_s, review)

    def _store(
        self,
        splits: Mapping[str, list[RateLine]],
        rows: Sequence[SiteState],
        now_ms: int,
        next_s: float,
        review: Review | None,
    ) -> None:
        """Store the rates of a large log, of which `rows` are of the versions in force; replaced in `next_s`."""
        if len(self._table) < LARGE:
            return
        every = rows if len(rows) == len(self._table) else list(self._table.rows())
        until, counts = now_ms + round(2000 * next_s), counts_of(every)
        for by, lines in splits.items():
            if every is not rows:  # some are of other versions
                lines = rate_lines(every, by, self.rate, now_ms=now_ms, review=review)
            if len(lines) <= GROUPS_CAP:
                cached = CachedRate(now_ms, until, self._table.ends, self.rate, lines, counts)
                store_rate(self.log, self.live.names.sites, cached, by)

    def _update_site_gauges(self, lines: Sequence[RateLine]) -> None:
        ruleset = self.live.ruleset.name
        for line in lines:
            self._share = line.short(at_every_look=True)
            changed = float(line.change is not None)
            self.metrics.set("sites_expired", line.expired, run=line.run, ruleset=ruleset)
            self.metrics.set("share_changed", changed, run=line.run, ruleset=ruleset, detector=line.detector)
            for verdict in SiteClass:
                self.metrics.set("sites", getattr(line, verdict), run=line.run, ruleset=ruleset, verdict=verdict)

    def _update_share_gauges(self, line: RateLine, definition: str, source: str) -> None:
        labels = {"run": line.run, "ruleset": self.live.ruleset.name, "source": source}
        shares = {"low": line.look_low, "point": line.share, "high": line.look_high}
        judged = {"low": line.judged_low, "point": line.judged_share, "high": line.judged_high}
        of = {"detector": line.detector, "definition": definition, "method": line.method}
        self.metrics.set("share_sites", line.scored_sites, **labels, **of)
        for bound, share in shares.items():
            if share is not None:
                self.metrics.set("share", share, **labels, **of, bound=bound)
        for bound, share in judged.items() if definition == SITES else ():
            if share is not None:
                self.metrics.set("farm_rate", share, **labels, bound=bound)

    def _update_canary_gauges(self, rows: Sequence[SiteState], now_ms: int) -> None:
        self.metrics.clear("canary_sites")
        self.metrics.clear("canary_share")
        found = recent_canaries(self.rate, rows, now_ms)
        if not found.last_at:
            return
        for truth, verdicts in found.sites.items():
            for verdict in SiteClass:
                self.metrics.set("canary_sites", verdicts.get(verdict, 0), truth=truth, verdict=verdict)
        for kind, share in found.shares().items():
            self.metrics.set("canary_share", share.point, kind=kind)
        self.metrics.set("canary_timestamp_seconds", found.last_at / 1000)

    def update_template_gauges(self) -> None:
        """Set the gauges of the templates that most sites share, if there are new ones."""
        topic = self.live.names.templates
        ends = self.log.end(topic)
        if ends == self._template_ends:
            return
        found = read_template_groups(self.log, topic)
        sizes = [len(group.sites) for group in found.groups] + [0] * _RANKS
        for rank, sites in enumerate(sizes[:_RANKS], 1):
            self.metrics.set("template_sites", sites, rank=str(rank))
        self.metrics.set("template_sites", found.sites, rank="all")
        self._template_ends = ends

    def _review(self) -> Review | None:
        try:
            return read_review(self.rate, int(self.clock() * 1000))
        except FarmwatchError as error:
            _log.warning("review_unreadable", error=str(error))
            return None

    def _live_rows(self) -> list[SiteState]:
        """The rows of the detector, ruleset and site method in force, and the rows without a verdict."""
        ruleset = self.live.ruleset
        in_force = {(ruleset.name, ruleset.digest), ("", "")}
        self._table.refresh()
        return [
            row
            for row in self._table.rows()
            if row.detector == self.live.run.detector
            and (row.ruleset, row.digest) in in_force
            and (not has_verdict(row) or (row.method, row.method_digest) == self.method)
        ]

    def _end_of_interval(self, now_s: float) -> float:
        """Start of the next interval of the series."""
        series_s = self.rate.series_s
        return interval_start(now_s, series_s) / 1000 + series_s


def _label(source: str) -> str:
    """The label of a source. Other text from the operator's files must not become a label."""
    return source if _SOURCE.fullmatch(source) and source != "all" else "other"
