"""`rate --history`: the points of the kept series, as a table or as JSON lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta

import msgspec

from farmwatch.caveats import caveats, tell
from farmwatch.config import Config
from farmwatch.errors import Exit, UsageError
from farmwatch.messages import counted, message, put_json, put_table
from farmwatch.options import opened
from farmwatch.rate_cuts import Cut
from farmwatch.runs.named import run_meant
from scoring.rate_series import SERIES, series_of
from scoring.site_rates import group_order
from stream.control import Control
from stream.log import Log
from stream.reading import rows_of
from stream.records import RatePoint, decode
from stream.topics import RATES

_DAYS_SHOWN = 7  # without --since
_EARLY = timedelta(days=1)  # a point may have been appended a little before or after the time that it stands for


def show_history(
    config: Config, by: str, cut: Cut, as_json: bool, clock: Callable[[], float] = time.time, run: str = ""
) -> Exit:
    """Print the points of the series of `by` ("": all sites), oldest first; of one run where it is named.

    Raises UsageError for no such series, NotFound for no such run.
    """
    if by not in SERIES:
        names = ", ".join(name for name in SERIES if name)
        raise UsageError(f"--by {by}: series are kept of all sites, and of each {names}; leave --history out")
    if cut.source or cut.group or cut.ranks:
        raise UsageError("--history: a kept series cannot be cut; use --by, or leave --history out")
    since = cut.since or datetime.fromtimestamp(clock(), UTC).date() - timedelta(days=_DAYS_SHOWN)
    with opened(config) as log:
        if run:
            run = run_meant(Control(log), run).name
        kept = read_points(log, since, cut.until)
        points = [point for point in kept if point.by == by and point.run == (run or point.run)]
    points.sort(key=lambda point: (group_order(point.group), *series_of(point), point.at))
    warnings = caveats(config, (point.detector for point in points))
    if as_json:
        for point in points:
            fields = {name: getattr(point, name) for name in RatePoint.__struct_fields__ if name not in ("v", "site")}
            put_json({**msgspec.to_builtins(fields), "warning": warnings[point.detector]})
        return Exit.OK
    put_table(
        (
            "time",
            "group",
            "rate",
            "low",
            "high",
            "llm",
            "classifiable",
            "sites",
            "method",
            "ruleset",
            "detector",
            "site method",
        ),
        (
            (
                datetime.fromtimestamp(point.at / 1000, UTC).strftime("%Y-%m-%d %H:%M"),
                point.group,
                *(None if share is None else f"{share:.1%}" for share in (point.rate, point.low, point.high)),
                point.llm,
                point.llm + point.human + point.undecided,
                point.llm + point.human + point.undecided + point.unclassifiable,
                point.method,
                f"{point.ruleset} {point.digest[:8]}",
                point.detector,
                f"{point.site_method} {point.site_method_digest}".strip(),
            )
            for point in points
        ),
        less=("sites", "llm", "method"),
        same=("ruleset", "detector", "site method"),
    )
    shown = f"{counted(len(points), 'point')} since {since}"
    message(f"{shown}; a point is kept every {config.rate.series_s} s while TALLY runs, all times UTC")
    tell(warnings, short=True)
    return Exit.OK


def read_points(log: Log, since: date | None = None, until: date | None = None) -> Iterator[RatePoint]:
    """The newest record of each point whose day lies from `since` to `until`, both included.

    It holds only these in memory. What was appended long after `until` is looked through for points taken away only.
    """
    if RATES not in log.topics():
        return
    start, end = log.beginning(RATES)[0], None
    first, last = 0, None
    if since is not None:
        start = max(start, log.offset_at(RATES, _ms(since - _EARLY))[0])
        first = _ms(since)
    if until is not None and until < date.max - 2 * _EARLY:
        end = log.offset_at(RATES, _ms(until + 2 * _EARLY))[0]
        last = _ms(until + timedelta(days=1))
    newest: dict[bytes, bytes] = {}
    for kept, point in rows_of(RatePoint, log.read(RATES, 0, start)):
        if point is None or kept.value is None:
            newest.pop(kept.key, None)
        elif (end is None or kept.offset < end) and first <= point.at and (last is None or point.at < last):
            newest[kept.key] = kept.value
    for value in newest.values():
        yield decode(RatePoint, value)


def _ms(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)
