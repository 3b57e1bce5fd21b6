"""Periodic work: heartbeats, retention, status, the gauges of sites and rate, the series.

It runs in a thread of the TALLY role, which is small and there whenever sites are. That two TALLY processes do it twice
does no harm: points of a series have one key.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import structlog

from crawler.crawl_stage import frontier_left
from farmwatch.config.settings import UpSettings
from farmwatch.daemon.kept_answer import LARGE, KeptAnswer, keep_answer
from farmwatch.daemon.rate_series import SeriesKeeper
from farmwatch.daemon.review_labels import read_review
from replay.runs.retention import offsets_to_keep, renew_idle
from replay.runs.run_rules import RunRules
from replay.runs.site_table import SiteTable, counts_of
from replay.runs.topology import lag_of, reads_of_live
from scoring.rates.canary_counts import recent_canaries
from scoring.rates.definitions import DEFINITIONS, SITES
from scoring.rates.reviewed_share import Review
from scoring.rates.series import interval_start
from scoring.rates.settings import RateSettings
from scoring.rates.site_rates import has_verdict
from scoring.rates.split_rates import rate_lines
from stream.log.contract import Log
from stream.log.errors import TooMuchExpired
from stream.processing import heartbeat
from stream.processing.metrics import Metrics
from stream.schema.control import Control
from stream.schema.records import SiteState
from stream.schema.topics import HITS
from stream.schema.vocabulary import VERDICTS
from stream.text.user_errors import FarmwatchError

_log = structlog.get_logger()
_BUSY = 0.05  # share of the time that a job may take: over a million sites a look takes longer than its interval
_RENEW_S = 86_400.0  # a broker keeps the offsets of idle groups for a week
_HOUR_S = 3600.0
_MOST = 0.5  # share of a topic that retention may take before the clock is confirmed
_SOURCE = re.compile(r"[a-z0-9_.-]{1,32}")


class ClockReading(NamedTuple):
    """What is known of the wall clock at a moment."""

    moved_s: float  # how far it has moved against the monotonic clock, not confirmed yet; 0 for less than an hour
    is_confirmed: bool  # for an hour it has not moved
    wall_s: float  # the time that was compared


class ClockWatch:
    """Compares the wall clock with the monotonic clock, which nobody sets.

    An hour in which the two moved together confirms the wall clock, as it then is. A process that starts knows nothing
    of the time before, so it begins with such an hour.
    """

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float]) -> None:
        """Both clocks are in seconds."""
        self._wall = wall
        self._monotonic = monotonic
        self._since_s = self._based_s = monotonic()
        self._believed_s = self._seen_s = wall() - self._since_s  # differences of the clocks

    def look(self) -> ClockReading:
        """Compare now."""
        now_s, wall_s = self._monotonic(), self._wall()
        difference_s = wall_s - now_s
        if abs(difference_s - self._seen_s) > _HOUR_S:
            self._seen_s, self._since_s = difference_s, now_s
        is_confirmed = now_s - self._since_s >= _HOUR_S
        if is_confirmed and now_s - self._based_s >= _HOUR_S:  # not at each look: a clock may move in small steps
            self._believed_s = self._seen_s = difference_s
            self._based_s = now_s
        moved_s = difference_s - self._believed_s
        return ClockReading(moved_s if abs(moved_s) > _HOUR_S else 0.0, is_confirmed, wall_s)


@dataclass
class Upkeep:
    """Calls each job at its interval until stopped. A job that fails is logged and tried again next time."""

    log: Log
    settings: UpSettings
    rate: RateSettings
    metrics: Metrics
    live: RunRules
    method: tuple[str, str]  # name and digest of the site method of the live run
    clock: Callable[[], float] = time.time  # both clocks are in seconds
    monotonic: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._clock_watch = ClockWatch(self.clock, self.monotonic)
        self._waits = False
        self._table = SiteTable(self.log, self.live.names.sites)
        self._reads = reads_of_live(self.live.names)
        self._share = "none yet"
        self._renew_at = self.monotonic()
        self._series = SeriesKeeper(self.log, self.rate, self.live.run.name)
        self._jobs: Sequence[tuple[str, float, Callable[[], None]]] = (
            ("heartbeat", self.settings.heartbeat_s, self.beat),
            ("overview", self.settings.overview_s, self.look),
            ("status", self.settings.status_s, self.tell),
            ("retention", self.settings.retention_s, self.expire),
        )
        now_s = self.monotonic()
        self._due = {name: now_s + (0.0 if name == "heartbeat" else every_s) for name, every_s, _ in self._jobs}
        self._next_point_s = self._end_of_interval(self.clock())
        self._kept_s = 0.0  # end of the newest interval with a point

    def run(self, stop: threading.Event) -> None:
        """Work until `stop`."""
        while not stop.is_set():
            self.round()
            wait_s = min(self._due.values()) - self.monotonic()
            point_in_s = self._next_point_s - self.clock()
            if point_in_s > 0:  # else the point waits until the clock is confirmed
                wait_s = min(wait_s, point_in_s)
            stop.wait(max(0.05, wait_s))

    def round(self) -> None:
        """Do what is due now: series at full intervals of the wall clock, all else by the clock that nobody sets."""
        for name, every_s, job in self._jobs:
            if (started := self.monotonic()) >= self._due[name]:
                self._do(name, job)
                took_s = self.monotonic() - started
                self._due[name] = started + max(every_s, took_s / _BUSY)
        look = self._clock_watch.look()
        end_s = self._end_of_interval(look.wall_s)
        if end_s == self._next_point_s or look.moved_s:
            return
        self._next_point_s = end_s
        if end_s > self._kept_s:  # an older point keeps what it says
            self._kept_s = end_s
            self._do("series", partial(self.keep, look.wall_s))

    def _do(self, name: str, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:  # noqa: BLE001 - upkeep must not take the stage down with it; next round tries again
            _log.warning("upkeep_failed", job=name, error=f"{type(error).__name__}: {error}"[:300])

    def beat(self) -> None:
        """Send a heartbeat through all stages."""
        heartbeat.beat(self.log, self.log.topics()[HITS], int(self.clock() * 1000))

    def expire(self) -> None:
        """Apply retention and compaction but to what runs have still to read; wait while the clock is in doubt."""
        control = Control(self.log)
        why = self._expire(control)
        if why and not self._waits:
            _log.warning("retention_waits", why=why, until="an hour confirms the clock", check="timedatectl")
        if self._waits and not why:
            _log.info("retention_resumed")
        self._waits = bool(why)
        if self.monotonic() >= self._renew_at:
            renew_idle(self.log, control)
            self._renew_at = self.monotonic() + _RENEW_S

    def _expire(self, control: Control) -> str:
        """One round of retention; returns why it has to wait, "" where it was done."""
        look = self._clock_watch.look()
        if look.moved_s:
            return f"the clock moved by {look.moved_s / 3600:+.1f} hours"
        now_ms = int(look.wall_s * 1000)
        try:
            freed = self.log.expire(
                now_ms, offsets_to_keep(self.log, control, now_ms), most=1.0 if look.is_confirmed else _MOST
            )
        except TooMuchExpired as error:
            return str(error)
        if freed:
            _log.info("expired", bytes=freed)
        return ""

    def tell(self) -> None:
        """One line: the crawl (not on a broker, which keeps its state in a changelog), waiting records, the share."""
        said: dict[str, int | str] = {}
        if not self.log.forgets_offsets:  # no broker
            frontier = frontier_left(self.log, self.log.topics()[HITS])
            said = {"pages_fetched": frontier.fetched, "sites_open": frontier.active, "sites": frontier.sites}
        waiting = {group: lag_of(self.log, group, self._reads) for group in self._reads}
        said["run"] = self.live.run.name
        said["waiting"] = ",".join(f"{group}:{count}" for group, count in waiting.items() if count) or "none"
        said["share"] = self._share
        _log.info("status", **said)

    def keep(self, now_s: float) -> None:
        """Append the points of the series at the start of an interval. Raises BadRuleset."""
        self._series.keep(self._rows(), now_s, self._review())

    def look(self) -> None:
        """Set the gauges of sites, share and canaries from the live run's rows, and keep the answer. Raises BadRuleset.

        Labels have no digest, so only rows of the ruleset, detector and site method in force count, or lines of two
        digests would overwrite each other. Sites without a verdict count with the ruleset in force.
        """
        started = self.monotonic()
        ruleset, run = self.live.ruleset, self.live.run.name
        rows, now_ms = self._rows(), int(self.clock() * 1000)
        review = self._review()
        self.metrics.clear("sites")
        self.metrics.clear("share")
        self.metrics.clear("share_changed")
        self.metrics.clear("farm_rate")
        for split, definition in (*(("", definition) for definition in DEFINITIONS), ("source", SITES)):
            lines = rate_lines(rows, split, self.rate, now_ms=now_ms, run=run, review=review, definition=definition)
            if not split and definition == SITES:
                of_sites = lines
            for line in lines:
                if not split and definition == SITES:
                    self._share = "none yet" if line.share is None else f"{line.share:.1%}"
                    of_detector = {"run": line.run, "ruleset": ruleset.name, "detector": line.detector}
                    self.metrics.set("share_changed", float(line.change is not None), **of_detector)
                    for verdict in VERDICTS:
                        count = int(getattr(line, verdict))
                        self.metrics.set("sites", count, run=line.run, ruleset=ruleset.name, verdict=verdict)
                labels = {"run": line.run, "ruleset": ruleset.name, "source": _label(line.group) if split else "all"}
                bounds = ("low", line.look_low, line.judged_low), ("point", line.share, line.judged_share)
                for bound, share, judged in (*bounds, ("high", line.look_high, line.judged_high)):
                    if share is not None:
                        self.metrics.set(
                            "share", share, **labels, detector=line.detector, definition=definition, bound=bound
                        )
                    if judged is not None and definition == SITES:
                        self.metrics.set("farm_rate", judged, **labels, bound=bound)
        self._look_at_canaries([row for row in rows if row.ruleset])
        every = self._table.rows()
        if len(every) >= LARGE:
            if len(every) > len(rows):  # some are of other versions
                of_sites = rate_lines(every, "", self.rate, now_ms=now_ms, review=review)
            wait_s = max(self.settings.overview_s, (self.monotonic() - started) / _BUSY)
            until = now_ms + round(2000 * wait_s)
            answer = KeptAnswer(now_ms, until, self._table.ends, self.rate, of_sites, counts_of(every))
            keep_answer(self.log, self.live.names.sites, answer)

    def _look_at_canaries(self, rows: Sequence[SiteState]) -> None:
        self.metrics.clear("canary_sites")
        self.metrics.clear("canary_share")
        found = recent_canaries(self.rate, rows, int(self.clock() * 1000))
        if not found.last_at:
            return
        for truth, verdicts in found.sites.items():
            for verdict in VERDICTS:
                self.metrics.set("canary_sites", verdicts.get(verdict, 0), truth=truth, verdict=verdict)
        for kind, share in found.shares().items():
            self.metrics.set("canary_share", share.point, kind=kind)
        self.metrics.set("canary_timestamp_seconds", found.last_at / 1000)

    def _review(self) -> Review | None:
        try:
            return read_review(self.rate, int(self.clock() * 1000))
        except FarmwatchError as error:
            _log.warning("review_unreadable", error=str(error))
            return None

    def _rows(self) -> list[SiteState]:
        """The rows of the detector, the ruleset and the site method in force, and those that are not judged yet."""
        ruleset = self.live.ruleset
        find_rules = {(ruleset.name, ruleset.digest), ("", "")}
        self._table.refresh()
        return [
            row
            for row in self._table.rows()
            if row.detector == self.live.run.detector
            and (row.ruleset, row.digest) in find_rules
            and (not has_verdict(row) or (row.method, row.method_digest) == self.method)
        ]

    def _end_of_interval(self, now_s: float) -> float:
        """When the next interval of the series starts."""
        series_s = self.rate.series_s
        return interval_start(now_s, series_s) / 1000 + series_s


def _label(source: str) -> str:
    """Sources come from the operator's files: what does not look like a source's name must not become a label."""
    return source if _SOURCE.fullmatch(source) and source != "all" else "other"
