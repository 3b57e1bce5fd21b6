"""The live run's share as gauges, as points of the series, and as the cached rate of a large log."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import structlog

from farmwatch import metrics as gauges
from farmwatch.share.rate_cache import LARGE, CachedRate, store_rate
from farmwatch.share.rate_series import SeriesWriter
from farmwatch.share.result_counts import read_results
from farmwatch.share.review_labels import read_review
from farmwatch.share.second_opinions import second_opinions
from farmwatch.share.template_groups import read_template_groups
from farmwatch.share.topic_records import NewestRecords
from farmwatch.share.words import short_share
from replay.rows.site_table import SiteTable, counts_of, ends_of
from replay.runs.run_rules import RunRules
from scoring.estimate.definitions import FARM, OF_ROWS, RANKED_RESULTS, SITES
from scoring.estimate.reviewed_share import Review
from scoring.rates.canary_counts import recent_canaries
from scoring.rates.cuts import Cut
from scoring.rates.farm_signs import ListedUrls
from scoring.rates.groups import day_of
from scoring.rates.series import GROUPS_CAP, interval_start
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import RateLine, RateQuery, rate_lines
from scoring.rates.versions import has_verdict
from stream.log.contract import Log
from stream.processing.metrics import Metrics
from stream.schema.control import Control
from stream.schema.records import SiteState
from stream.schema.runs import Run
from stream.schema.topics import SITEMAPS
from stream.schema.vocabulary import SiteClass
from stream.text.times import DAY_MS
from stream.text.user_errors import FarmwatchError

_log = structlog.get_logger()
GAUGES_S = 15.0  # between two updates of the gauges
BUSY = 0.05  # largest CPU share of a job: with a million sites, the gauges take longer than their interval
_GAUGES = (
    *(gauges.SITES, gauges.SITES_EXPIRED, gauges.SHARE, gauges.SHARE_SITES, gauges.SHARE_CHANGED, gauges.FARM_RATE),
    gauges.DETECTORS_GAP,
    gauges.CONTROL_SHARE,
)
_RESULT_DAYS = 7  # of search results with gauges, today included
_RANKS = 5  # shared templates with a gauge
_SOURCE = re.compile(r"[a-z0-9_.-]{1,32}")


@dataclass
class LiveShare:
    """What TALLY's process tells of the live run's sites."""

    log: Log
    settings: RateSettings
    metrics: Metrics
    live: RunRules
    method: tuple[str, str]  # name and digest of the site method of the live run
    clock: Callable[[], float] = time.time  # seconds
    monotonic: Callable[[], float] = time.monotonic
    stated: float | None = None  # share of human pages that the detector's card says it flags

    def __post_init__(self) -> None:
        self.text = "none yet"  # the share in words
        self._table = SiteTable(self.log, self.live.names.sites)
        self._control = Control(self.log)
        self._second_tables: dict[str, SiteTable] = {}  # by topic
        self._series = SeriesWriter(self.log, self.settings, self.live.run.name, self.live.run.epoch)
        self._sitemaps = NewestRecords(self.log, ListedUrls, SITEMAPS)
        self._template_ends: list[int] = []
        self._next_point_s = self._end_of_interval(self.clock())
        self._newest_point_s = 0.0  # end of the newest interval with a point

    def update_gauges(self) -> None:
        """Set the gauges of sites, share and canaries from the rows of the live run. Raises BadRuleset.

        The labels have no digest, so only rows of the ruleset, detector and site method in force count. Sites without a
        verdict count with the ruleset in force. For a large log, the rate is stored for `farmwatch rate`.
        """
        started = self.monotonic()
        rows, now_ms, review = self._live_rows(), int(self.clock() * 1000), self._review()
        for name in _GAUGES:
            self.metrics.clear(name)
        run = self.live.run.name
        for split, definition in (*(("", definition) for definition in OF_ROWS), ("source", SITES)):
            query = RateQuery(by=split, settings=self.settings, now_ms=now_ms, run=run, review=review)
            lines = rate_lines(rows, replace(query, definition=definition))
            if not split and definition == SITES:
                of_sites = lines
                self._set_site_gauges(lines)
            for line in lines:
                # other text from the operator's files must not become a label
                source = line.group if _SOURCE.fullmatch(line.group) and line.group != "all" else "other"
                self._set_share_gauges(line, definition, source if split else "all")
        self._set_canary_gauges([row for row in rows if row.ruleset], now_ms)
        self._set_gaps(of_sites, rows, now_ms)
        wait_s = max(GAUGES_S, (self.monotonic() - started) / BUSY)
        self._store({"": of_sites}, rows, now_ms, wait_s, review)

    def update_result_gauges(self) -> None:
        """Set the gauges of the search results of the last days. Raises BadRuleset."""
        now_ms = int(self.clock() * 1000)
        cut = Cut(since=day_of(now_ms // DAY_MS) - timedelta(days=_RESULT_DAYS - 1))
        query = RateQuery(
            settings=self.settings,
            now_ms=now_ms,
            cut=cut,
            run=self.live.run.name,
            review=self._review(),
            definition=RANKED_RESULTS,
            results=read_results(self.log, "", cut, self.settings.groups),
        )
        self.metrics.clear(gauges.RESULTS_SHARE)
        self.metrics.clear(gauges.RESULTS_SCORED)
        for line in rate_lines(self._live_rows(), query):
            of = {"run": line.run, "ruleset": self.live.ruleset.name, "detector": line.detector}
            for name, part in line.result_parts().items():
                labels = {**of, "method": part.method, "part": name}
                self.metrics.set(gauges.RESULTS_SCORED, part.results, **labels)
                for bound, share in (("low", part.low), ("point", part.share), ("high", part.high)):
                    if share is not None:
                        self.metrics.set(gauges.RESULTS_SHARE, share, **labels, bound=bound)

    def update_farm_gauges(self) -> None:
        """Set the gauges of the share of content farms. Raises BadRuleset."""
        query = RateQuery(
            settings=self.settings,
            now_ms=int(self.clock() * 1000),
            run=self.live.run.name,
            review=self._review(),
            definition=FARM,
            sitemaps=self._sitemaps.refresh(),
        )
        self.metrics.clear(gauges.CONTENT_FARM_SHARE)
        for line in rate_lines(self._live_rows(), query):
            labels = {"run": line.run, "ruleset": self.live.ruleset.name, "detector": line.detector}
            ends = {"low": line.low, "point": line.share, "at_most": line.at_most, "high": line.high}
            for bound, share in ends.items() if line.farms else ():
                if share is not None:
                    self.metrics.set(gauges.CONTENT_FARM_SHARE, share, **labels, method=line.method, bound=bound)

    def text_now(self) -> str:
        """The share in words, of all rows so far: another process may have told it already. Raises BadRuleset."""
        if ends_of(self.log, self.live.names.sites) != self._table.ends:
            self.update_gauges()
        return self.text

    def append_due_points(self) -> None:
        """Append the points of the interval that has ended."""
        now_s = self.clock()
        end_s = self._end_of_interval(now_s)
        if end_s == self._next_point_s:
            return
        self._next_point_s = end_s
        if end_s > self._newest_point_s:  # an older point is not replaced
            self._newest_point_s = end_s
            self.append_points(now_s)

    def append_points(self, now_s: float) -> None:
        """Append the points of the interval with `now_s`; of a large log, store the rates too. Raises BadRuleset."""
        rows, review = self._live_rows(), self._review()
        splits = {by: lines for by, lines in self._series.append(rows, now_s, review).items() if by}
        self._store(splits, rows, int(now_s * 1000), self.settings.series_s, review)

    def update_template_gauges(self) -> None:
        """Set the gauges of the templates that most sites share, if there are new ones."""
        topic = self.live.names.templates
        ends = self.log.end(topic)
        if ends == self._template_ends:
            return
        templates = read_template_groups(self.log, topic)
        sizes = [len(group.sites) for group in templates.groups] + [0] * _RANKS
        for rank, sites in enumerate(sizes[:_RANKS], 1):
            self.metrics.set(gauges.TEMPLATE_SITES, sites, rank=str(rank))
        self.metrics.set(gauges.TEMPLATE_SITES, templates.sites, rank="all")
        self._template_ends = ends

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
                lines = rate_lines(every, RateQuery(by=by, settings=self.settings, now_ms=now_ms, review=review))
            if len(lines) <= GROUPS_CAP:
                cached = CachedRate(now_ms, until, self._table.ends, self.settings, lines, counts)
                store_rate(self.log, self.live.names.sites, cached, by)

    def _set_site_gauges(self, lines: Sequence[RateLine]) -> None:
        ruleset = self.live.ruleset.name
        for line in lines:
            self.text = short_share(line) + _at_every_look(line)
            changed = float(line.change is not None)
            self.metrics.set(gauges.SITES_EXPIRED, line.expired, run=line.run, ruleset=ruleset)
            self.metrics.set(gauges.SHARE_CHANGED, changed, run=line.run, ruleset=ruleset, detector=line.detector)
            controls = line.controls
            bounds = {"low": controls.low, "point": controls.share, "high": controls.high} if controls else {}
            for bound, flags in ({**bounds, "stated": self.stated} if bounds else {}).items():
                if flags is not None:
                    labels = {"run": line.run, "ruleset": ruleset, "detector": line.detector}
                    self.metrics.set(gauges.CONTROL_SHARE, flags, **labels, bound=bound)
            for verdict in SiteClass:
                self.metrics.set(gauges.SITES, getattr(line, verdict), run=line.run, ruleset=ruleset, verdict=verdict)

    def _set_share_gauges(self, line: RateLine, definition: str, source: str) -> None:
        labels = {"run": line.run, "ruleset": self.live.ruleset.name, "source": source}
        shares = {"low": line.low, "point": line.share, "high": line.high}
        shares |= {"look_low": line.look_low, "look_high": line.look_high}
        judged = {"low": line.judged_low, "point": line.judged_share, "high": line.judged_high}
        of = {"detector": line.detector, "definition": definition, "method": line.method}
        self.metrics.set(gauges.SHARE_SITES, line.scored_sites, **labels, **of)
        for bound, share in shares.items():
            if share is not None:
                self.metrics.set(gauges.SHARE, share, **labels, **of, bound=bound)
        for bound, share in judged.items() if definition == SITES else ():
            if share is not None:
                self.metrics.set(gauges.FARM_RATE, share, **labels, bound=bound)

    def _set_canary_gauges(self, rows: Sequence[SiteState], now_ms: int) -> None:
        self.metrics.clear(gauges.CANARY_SITES)
        self.metrics.clear(gauges.CANARY_SHARE)
        canaries = recent_canaries(self.settings, rows, now_ms)
        if not canaries.last_at:
            return
        for truth, verdicts in canaries.sites.items():
            for verdict in SiteClass:
                self.metrics.set(gauges.CANARY_SITES, verdicts.get(verdict, 0), truth=truth, verdict=verdict)
        for kind, share in canaries.shares().items():
            self.metrics.set(gauges.CANARY_SHARE, share.point, kind=kind)
        self.metrics.set(gauges.CANARY_TIMESTAMP_SECONDS, canaries.last_at / 1000)

    def _set_gaps(self, lines: Sequence[RateLine], rows: Sequence[SiteState], now_ms: int) -> None:
        self._control.refresh()
        for line in lines:
            if line.digest != self.live.ruleset.digest:
                continue
            for opinion in second_opinions(self._control, line, rows, self._rows_of, self.settings, now_ms):
                labels = {"run": line.run, "ruleset": self.live.ruleset.name, "detector": opinion.line.detector}
                for kind, gap in (("share", opinion.share_gap), ("flags", opinion.flags_gap)):
                    if gap is not None:
                        self.metrics.set(gauges.DETECTORS_GAP, gap, **labels, kind=kind)

    def _rows_of(self, run: Run) -> list[SiteState]:
        """The rows of a run beside the live one, by its detector and ruleset."""
        topic = run.names().sites
        table = self._second_tables.setdefault(topic, SiteTable(self.log, topic))
        table.refresh()
        return [row for row in table.rows() if row.detector == run.detector and row.digest in ("", run.digest)]

    def _review(self) -> Review | None:
        try:
            return read_review(self.settings, int(self.clock() * 1000))
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
        series_s = self.settings.series_s
        return interval_start(now_s, series_s) / 1000 + series_s


def _at_every_look(line: RateLine) -> str:
    """The wider interval, which holds however often one looks."""
    if line.share is None or line.look_low is None or line.look_high is None:
        return ""
    return f"; for repeated looks {line.look_low:.1%} to {line.look_high:.1%}"
