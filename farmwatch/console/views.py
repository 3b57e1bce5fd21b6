"""The pages of the console as data: what a template shows, and what its JSON twin says. Each runs in a thread."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any

import msgspec
import structlog

from crawler.frontier.report import FrontierReport, frontier_lines, report_on
from crawler.reasons import meaning_of_reason, what_ends_stop
from crawler.web.exclusions import reach_of
from farmwatch.canaries.lines import SAID, read_canary_lines
from farmwatch.config.config import Config
from farmwatch.config.detector_config import caveats
from farmwatch.console.history_marks import marks_of
from farmwatch.console.jobs import FORGET, Found, Jobs, Working
from farmwatch.console.networks import Networks
from farmwatch.console.page_index import IndexedRecords
from farmwatch.console.read_model import ReadModel
from farmwatch.console.replays import Replays
from farmwatch.console.run_pages import RunPages
from farmwatch.console.site_lists import Query, SiteLists, one_of
from farmwatch.console.state_pages import StatePages
from farmwatch.crawl.orders import pause_in_words
from farmwatch.doctor.status import DaemonStatus, StatusReader
from farmwatch.explain.as_json import as_json
from farmwatch.explain.blocks import text_lines
from farmwatch.explain.explanation import PageExplanation, explain_page
from farmwatch.explain.segments import outline
from farmwatch.share.change_since import change_since, in_points
from farmwatch.share.current_rate import CurrentRate, current_rate
from farmwatch.share.rate_series import read_points
from farmwatch.share.words import sentences, share_columns
from farmwatch.tables.columns import fields_of
from filters.charsets import decode
from filters.measure.page_measures import inflated
from replay.live.live_run import find_rules
from replay.runs.configured import tally_identity
from scoring.estimate.definitions import FARM, RANKED_RESULTS, SITES
from scoring.rates.series import point_of
from scoring.rates.split_rates import RateLine
from stream.log.contract import Clock, Log, wall_ms
from stream.schema.control import Control
from stream.schema.forgotten import Forgotten
from stream.schema.orders import Orders
from stream.schema.records import RatePoint
from stream.schema.topics import CONTROL
from stream.text.user_errors import FarmwatchError, NotFound

_log = structlog.get_logger()
Data = dict[str, Any]
_SPLITS = {
    SITES: ("source", "rank", "query-group", "week"),
    RANKED_RESULTS: ("week", "engine", "source", "query-group"),
    FARM: ("",),
}
SPLITS = tuple((of, by) for of, splits in _SPLITS.items() for by in splits)
POLITENESS = ("name", "contact", "delay_s", "domain_delay_s", "address_delay_s", "crawl_delay_cap_s")  # settings
_RATE_S = 10.0  # for which an answer is shown again
_STATUS_S = 2.0
_SLOW_S = 30.0  # for which the frontier is shown again
_CHANGE_DAYS = 7
_HOSTS_SHOWN = 100  # of a list of the frontier
_SWITCH_S = 0.0005  # until the thread that follows lets another run; Python's own 5 ms would be paid at each query
_HISTORY_DAYS, _HISTORY_POINTS, _MARKS = 30, 200, 20
_HTML_CAP_BYTES = 2_000_000  # of a page's source that is shown


class Console:
    """Answers the requests of the console from the log and the read model. All methods but `follow` may run at once."""

    def __init__(
        self, log: Log, config: Config, model: ReadModel, clock: Clock = wall_ms, replays: Replays | None = None
    ) -> None:
        """Reads offsets alone."""
        self.config, self.log_url, self.run = config, config.log.url, ""
        self._log, self._model, self._clock = log, model, clock
        self._forgotten = Forgotten(log)
        self.jobs, self.replays = Jobs(), replays or Replays()
        self.runs = RunPages(log, config, self.jobs, self.replays, clock)
        self.state = StatePages(log, config, model, self.jobs, self._read_status, clock)
        self.networks = Networks(log, config, model, self.jobs, clock)
        self.lists = SiteLists(log, config, model, self.jobs, self.networks, clock)
        self.stopped = threading.Event()  # set when `follow` ends
        self._read = 0  # how often records were read
        self._orders = 0  # records of operators
        self._status = StatusReader(log, config, clock, self._lines)

    def follow(self, stop: threading.Event, every_s: float = 1.0) -> None:
        """Keep the read model at the end of the log until `stop`; a log that is away is tried again."""
        sys.setswitchinterval(_SWITCH_S)
        forgotten, is_away = self._forgotten.version, False
        while not stop.is_set():
            try:
                self._read += self._model.follow(self._log, self._forgotten, lambda: not stop.is_set())
                orders = sum(self._log.end(CONTROL)) if CONTROL in self._log.topics() else 0
                if orders != self._orders:
                    self._orders, live = orders, Control(self._log).live
                    self.run = live.shown if live else ""
                if forgotten != (forgotten := self._forgotten.version):
                    self.jobs.drop()
                self._read += is_away  # pages that could not be shown can be now
                is_away = False
            except (FarmwatchError, sqlite3.Error) as error:
                if not is_away:
                    _log.warning("console_cannot_follow", error=str(error))
                is_away = True
            stop.wait(every_s)
        self.stopped.set()

    def version(self) -> int:
        """A number that changes when pages may: with records, orders, results of slow work, progress of replays."""
        replaying = int(time.monotonic()) if self.replays.any() else 0
        return self._read + self._orders + self.jobs.finished + replaying

    def answer(self, query: Query) -> Data:
        """The share, as `farmwatch rate` says it, with its history."""
        of = one_of(query, "of", tuple(_SPLITS))
        by = one_of(query, "by", ("", *_SPLITS[of]) if of == SITES else _SPLITS[of])
        (rate, history, marks), at = self._answer(by, of)
        warnings = caveats(self.config, (line.detector for line in rate.lines))
        columns = share_columns(warnings)
        lines = [fields_of(columns, line) for line in rate.lines]
        return {
            "of": of,
            "by": by,
            "lines": lines,
            "remarks": [sentences(line.remarks) for line in rate.lines],
            "at": rate.kept_at or at,
            "kept_at": rate.kept_at,
            "notes": rate.notes,
            "waiting": rate.waiting,
            "history": history,
            "marks": marks,
            "canaries": [] if by or of != SITES else self.jobs.soon(("canaries",), self._canaries),
            "change": None if by or of != SITES else self.jobs.soon(("change",), self._change),
        }

    def crawl(self, query: Query) -> Data:
        """The sums of the frontier, a pause and the exclusions, as `farmwatch crawl` and `exclude` say them."""
        orders = Orders(self._log).exclusions
        exclusions = [
            {"name": name, "covers": reach_of(name), **msgspec.structs.asdict(order.changes[-1])}
            for name, order in sorted(orders.items())
            if order.on
        ]
        return {
            "crawl": msgspec.to_builtins(self._read_status().crawl),
            "pause": pause_in_words(self._log),
            "politeness": {name: getattr(self.config.crawl, name) for name in POLITENESS},
            "exclusions": exclusions,
            "already": bool(query.get("already")),
            "forgetting": [
                {"title": job.title, "said": str(job.error or job.result or ""), "done": job.done.is_set()}
                for job in self.jobs.of(FORGET)
            ],
        }

    def page(self, query: Query) -> Data:
        """Why a page was kept or dropped, as `farmwatch page` says it, beside its HTML. Raises NotFound."""
        url, ruleset = query.get("url", ""), query.get("ruleset", "")
        rules = find_rules(self._log, self.config)
        records = IndexedRecords(self._model, self._log, rules.names, url)

        def explained(name: str) -> PageExplanation:
            return explain_page(
                records,
                self.runs.ruleset(name) if name else rules.ruleset,
                self.config.measure,
                live=not name,
                detector_identity=lambda: rules.run.detector or tally_identity(self.config),
            )

        explanations = [explained(name) for name in ("", ruleset)[: 1 + bool(ruleset)]]
        explanation = explanations[0]
        fetched = records.page()
        html, cut = "", False
        if fetched is not None and fetched.body:
            body = inflated(fetched.body, _HTML_CAP_BYTES + 1)
            html, cut = decode(body[:_HTML_CAP_BYTES], fetched.encoding), len(body) > _HTML_CAP_BYTES
        return {
            **as_json(explanation),
            "text": explanation.features.text,
            "lines": [line._asdict() for line in text_lines(explanation.features, explanation.repeats)],
            "outline": outline(explanations),
            "html": html,
            "html_is_cut": cut,
            "other": {**as_json(explanations[1]), "name": ruleset} if ruleset else None,
            "rulesets": self.runs.ruleset_names(),
        }

    def frontier(self, _: Query) -> Data:
        """The frontier: parked, stopped and resting hosts. Raises Working."""

        def read() -> FrontierReport:
            now_ms = self._clock()
            return report_on(frontier_lines(self._log, self.config.crawl, now_ms), now_ms, _HOSTS_SHOWN)

        report = self.jobs.result(("frontier",), "Reading the frontier", read, _SLOW_S)
        meanings = {reason: meaning_of_reason(reason)._asdict() for reason in report.parked_reasons}
        for reason in report.stopped_reasons:
            meanings[reason] = {"text": meaning_of_reason(reason).text, "passes": what_ends_stop(reason)}
        return {**msgspec.to_builtins(report), "meanings": meanings}

    def _canaries(self) -> list[Data]:
        """As `farmwatch review canaries --json` has them."""
        _, _, lines = read_canary_lines(self._log, self.config, self._clock())
        return [{**line.fields(), "words": {kind: SAID[kind] for kind in line.summary.shares()}} for line in lines]

    def _change(self) -> Data | None:
        """As `farmwatch rate --why` has it, of a week; None without a share of that time."""
        since = datetime.fromtimestamp(self._clock() / 1000, UTC).date() - timedelta(days=_CHANGE_DAYS)
        try:
            change = change_since(self._log, self.config, since.isoformat(), "", self._clock())
        except NotFound:
            return None
        causes = [{"points": points, "what": what} for points, what in change.causes()]
        return {**change.fields(), "causes": causes, "points": in_points(change.parts.after - change.parts.before)}

    def _lines(self) -> list[RateLine]:
        """The share for the status; nothing while it is found for the first time."""
        try:
            return self._answer("").value[0].lines
        except Working:
            return []

    def _answer(self, by: str, of: str = SITES) -> Found[tuple[CurrentRate, list[Data], list[Data]]]:
        def find() -> tuple[CurrentRate, list[Data], list[Data]]:
            rate = current_rate(self._log, self.config, self._clock(), by=by, of=of)
            return rate, *(([], []) if by or of != SITES else self._history(rate))

        every_s = _RATE_S if of == SITES else _SLOW_S  # all hits are read
        return self.jobs.found(("answer", of, by), "Finding the share", find, every_s)

    def _read_status(self) -> DaemonStatus:
        return self.jobs.result(("status",), "Reading the roles' state", self._status.read, _STATUS_S)

    def _history(self, rate: CurrentRate) -> tuple[list[Data], list[Data]]:
        """Points of the last days and of now, thinned out, and what happened between them."""
        now_ms = self._clock()
        since = datetime.fromtimestamp(now_ms / 1000, UTC).date() - timedelta(days=_HISTORY_DAYS)
        points = sorted((point for point in read_points(self._log, since) if not point.by), key=attrgetter("at"))
        points += [point_of(line, rate.kept_at or now_ms) for line in rate.lines if line.share is not None]
        step = max(1, -(-len(points) // _HISTORY_POINTS))  # more points than that look the same in a plot
        marks = marks_of(points, Control(self._log).cutovers)[-_MARKS:] if points else []
        return [_point(point) for point in points[::-step][::-1]], marks


def _point(of: RatePoint) -> Data:
    """A point of the history: the interval of the headline, and the one for repeated looks."""
    return {
        **{name: getattr(of, name) for name in ("at", "share", "scored_sites")},
        **{"low": of.share_low_once, "high": of.share_high_once, "look_low": of.share_low, "look_high": of.share_high},
        "ruleset": f"{of.ruleset} {of.digest[:8]}",
        "version": " ".join((of.ruleset, of.digest[:8], of.detector, of.site_method_digest)),
    }
