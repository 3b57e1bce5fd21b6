"""The series of rates: a point of each series at each full interval, thinned out after some months."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

import msgspec
import structlog

from farmwatch.tables.columns import Column, columns_of
from replay.runs.lookup import find_run
from scoring.estimate.reviewed_share import Review
from scoring.rates.series import SERIES, THIN_AFTER_DAYS, interval_start, largest, point_of, thinned
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import RateLine, RateQuery, rate_lines
from stream.log.contract import Log, Output
from stream.processing.topic_reader import rows_of
from stream.schema.control import Control
from stream.schema.records import ANSWER_KEY, RatePoint, SiteState, decode, encode
from stream.schema.topics import RATES
from stream.text.times import day_ms

_THIN_BACK_DAYS = 7  # days that are thinned again, because no process may have run on the right day
_EARLY = timedelta(days=1)  # a point may have been appended a little before or after its time

POINT_COLUMNS: list[Column[RatePoint]] = columns_of(  # by the names of `rate --json`
    RatePoint,
    *("id", "site", "answer"),
    rate={"name": "judged_share"},
    low={"name": "judged_low"},
    high={"name": "judged_high"},
    method={"name": "judged_method"},
    share_low={"name": "look_low"},
    share_high={"name": "look_high"},
    share_method={"name": "method"},
    share_low_once={"name": "low"},
    share_high_once={"name": "high"},
)

_log = structlog.get_logger()


@dataclass(slots=True)
class SeriesWriter:
    """Appends points to the topic of series. Two processes at once are harmless: they write the same keys."""

    log: Log
    settings: RateSettings
    run: str = ""
    epoch: str = ""  # feature epoch of the run
    _thinned: str = field(init=False, default="")  # the last day on which old points were thinned

    def append(
        self, rows: Sequence[SiteState], now_s: float, review: Review | None = None
    ) -> dict[str, list[RateLine]]:
        """Append the points of the interval that holds `now_s`; once a day, thin out old points.

        `rows` are those of the ruleset and detector in force, canaries included. Returns the rates of each split.
        """
        at, now_ms = interval_start(now_s, self.settings.series_s), int(now_s * 1000)
        lines = {
            by: rate_lines(rows, RateQuery(by=by, settings=self.settings, now_ms=now_ms, run=self.run, review=review))
            for by in SERIES
        }
        points = []
        for by, of_split in lines.items():
            groups = set(largest({line.group: line.sites for line in of_split}))
            if left_out := {line.group for line in of_split} - groups:
                _log.warning("series_left_out", by=by, groups=len(left_out), kept=len(groups))
            kept = (line for line in of_split if line.group in groups)
            points += [msgspec.structs.replace(point_of(line, at), epoch=self.epoch) for line in kept]
        self.log.append([Output(RATES, 0, point.id.encode(), encode(point)) for point in points])
        today = datetime.fromtimestamp(now_s, UTC).date()
        if self._thinned != today.isoformat():
            last = today - timedelta(days=THIN_AFTER_DAYS)
            first = last - timedelta(days=_THIN_BACK_DAYS)
            old = [Output(RATES, 0, point.id.encode(), None) for point in thinned(read_points(self.log, first, last))]
            if old:
                self.log.append(old)
            self._thinned = today.isoformat()
        return lines


def points_of_run(log: Log, run: str, since: date | None = None, until: date | None = None) -> Iterator[RatePoint]:
    """As `read_points`, of one run if it names one. Raises NotFound."""
    name = find_run(Control(log), run).name if run else ""
    return (point for point in read_points(log, since, until) if point.run == (name or point.run))


def read_points(log: Log, since: date | None = None, until: date | None = None) -> Iterator[RatePoint]:
    """The newest record of each point from the day `since` to the day `until`, both included.

    Only these are held in memory. Records that were appended long after `until` are read for tombstones only.
    """
    if RATES not in log.topics():
        return
    start, end = log.beginning(RATES)[0], None
    first, last = 0, None
    if since is not None:
        start = max(start, log.offset_at(RATES, day_ms(since - _EARLY))[0])
        first = day_ms(since)
    if until is not None and until < date.max - 2 * _EARLY:
        end = log.offset_at(RATES, day_ms(until + 2 * _EARLY))[0]
        last = day_ms(until + timedelta(days=1))
    newest: dict[bytes, bytes] = {}
    points = (message for message in log.read(RATES, 0, start) if not message.key.startswith(ANSWER_KEY.encode()))
    for kept, point in rows_of(RatePoint, points):
        if point is None or kept.value is None:
            newest.pop(kept.key, None)
        elif (end is None or kept.offset < end) and first <= point.at and (last is None or point.at < last):
            newest[kept.key] = kept.value
    for value in newest.values():
        yield decode(RatePoint, value)
