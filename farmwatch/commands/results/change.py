"""`rate --why`: the change of the share since a day, split into its causes."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from farmwatch.config.config import Config
from farmwatch.config.detector_config import caveats, print_caveats
from farmwatch.config.opening import opened
from farmwatch.daemon.rate_series import read_points
from farmwatch.daemon.review_labels import read_review
from farmwatch.terminal.messages import put, put_json, put_wrapped
from replay.runs.site_table import read_sites
from scoring.errors import BadParameters
from scoring.rates.change_parts import ChangeParts, change_parts
from scoring.rates.cuts import read_days
from scoring.rates.split_rates import RateLine, llm_probabilities, rate_lines
from stream.schema.runs import shown_run
from stream.text.user_errors import Exit, NotFound
from stream.text.wording import counted, one_line

_OF_NOW = ("ruleset", "digest", "detector", "low", "high", "scored_sites", "confidence", "method")


def show_change(config: Config, since: str, run: str, *, as_json: bool) -> Exit:
    """Print the parts of the change. Raises NotFound if no share was kept since then, or there is none now."""
    now_ms = int(time.time() * 1000)
    day, _ = read_days(since, "", now_ms)
    with opened(config) as log:
        rows = read_sites(log, run)
        points = list(read_points(log, day))
    lines = rate_lines(rows, "", config.rate, now_ms=now_ms, review=read_review(config.rate, now_ms))
    now = max(lines, key=lambda line: line.scored_sites)
    try:
        found = change_parts(
            (point for point in points if not run or point.run == now.run),
            now,
            [row for row in rows if (row.digest, row.detector) == (now.digest, now.detector)],
            llm_probabilities([replace(row, term_end=0) for row in rows], config.rate, now_ms),  # those too old as well
            now_ms,
        )
    except BadParameters as error:
        raise NotFound(f"--why {since}: {error}") from None
    warnings = caveats(config, [now.detector])
    if as_json:
        of_now = {name: getattr(now, name) for name in _OF_NOW}
        more = {"run": shown_run(now.run), "warning": warnings[now.detector]}
        put_json({**msgspec.to_builtins(found), **of_now, **more})
        return Exit.OK
    _put(found, now)
    print_caveats(warnings, short=True)
    return Exit.OK


def _put(found: ChangeParts, now: RateLine) -> None:
    put_wrapped(one_line(f"now {now.short()}"), "  ")
    interval = ""
    if found.before_low is not None and found.before_high is not None:
        ends = f"{found.before_low:.1%} to {found.before_high:.1%}"
        interval = f" ({found.before_confidence:.0%} interval {ends})"
    put_wrapped(
        f"{found.before:.1%}{interval} of {counted(found.before_sites, 'site')} at {_time(found.since)}:"
        f" {_points(found.after - found.before)} points since",
        "  ",
    )
    seams = ", ".join(map(_time, found.seams))
    for part, what in (
        (found.new_sites, f"{counted(found.new, 'new site')}, against the sites known before of the same sources"),
        (found.sources, "other sources than before, or more sites of some"),
        (found.left_sites, f"{counted(found.left, 'left site')}, whose verdicts are too old now"),
        (found.known_sites, f"{counted(found.known, 'site')} known before, by what their articles say now"),
        (found.instrument, f"another ruleset, detector or method ({seams})" if seams else "the instrument is the same"),
    ):
        put(f"  {_points(part):>6}  {what}")


def _points(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f}"  # never -0.0


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
