"""`rate --history`: the points of the kept series, as a table or as JSON lines."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from farmwatch.config.config import Config
from farmwatch.config.configured import caveats, tell
from farmwatch.config.opening import opened
from farmwatch.daemon.rate_series import read_points
from farmwatch.terminal.messages import message, put_columns, put_json
from replay.runs.lookup import find_run
from scoring.rates.cuts import Cut
from scoring.rates.series import SERIES, series_of
from scoring.rates.site_rates import group_order
from stream.schema.control import Control
from stream.schema.records import RatePoint
from stream.schema.runs import shown_run
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted

_DAYS_SHOWN = 7  # without --since


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
            run = find_run(Control(log), run).name
        kept = read_points(log, since, cut.until)
        points = [point for point in kept if point.by == by and point.run == (run or point.run)]
    points.sort(key=lambda point: (group_order(point.group), *series_of(point), point.at))
    warnings = caveats(config, (point.detector for point in points))
    if as_json:
        for point in points:
            fields = {name: getattr(point, name) for name in RatePoint.__struct_fields__ if name not in ("v", "site")}
            put_json({**msgspec.to_builtins(fields), "run": shown_run(point.run), "warning": warnings[point.detector]})
        return Exit.OK
    columns: dict[str, str | Callable[[RatePoint], Any]] = {
        "time": lambda point: datetime.fromtimestamp(point.at / 1000, UTC).strftime("%Y-%m-%d %H:%M"),
        "group": "group",
        "share": lambda point: _percent(point.share),
        "low": lambda point: _percent(point.share_low),
        "high": lambda point: _percent(point.share_high),
        "judged share": lambda point: _percent(point.rate),
        "llm": "llm",
        "classifiable": lambda point: point.llm + point.human + point.undecided,
        "sites": lambda point: point.llm + point.human + point.undecided + point.unclassifiable,
        "method": "method",
        "ruleset": lambda point: f"{point.ruleset} {point.digest[:8]}",
        "detector": "detector",
        "site method": lambda point: f"{point.site_method} {point.site_method_digest}".strip(),
    }
    put_columns(
        points, columns, less=("sites", "llm", "judged share", "method"), same=("ruleset", "detector", "site method")
    )
    shown = f"{counted(len(points), 'point')} since {since}"
    message(f"{shown}; a point is kept every {config.rate.series_s} s while TALLY runs, all times UTC")
    tell(warnings, short=True)
    return Exit.OK


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{share:.1%}"
