"""The change of the share since a day, split into its causes: for `rate --why`, and for the console."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from farmwatch.config.config import Config
from farmwatch.config.detector_config import caveats
from farmwatch.share.cut_options import read_option_day
from farmwatch.share.rate_series import read_points
from farmwatch.share.review_labels import read_review
from farmwatch.share.words import text_of
from replay.rows.site_table import read_sites
from scoring.errors import BadParameters
from scoring.rates.change_parts import ChangeParts, change_parts
from scoring.rates.split_rates import RateLine, RateQuery, llm_probabilities, rate_lines
from stream.log.contract import Log
from stream.schema.runs import shown_run
from stream.text.user_errors import NotFound
from stream.text.wording import counted

_OF_NOW = ("ruleset", "digest", "detector", "low", "high", "scored_sites", "confidence", "method")


class ChangeSince(NamedTuple):
    """The parts of a change, the share of now, and the detector's caveat."""

    parts: ChangeParts
    now: RateLine
    warning: str

    def fields(self) -> dict[str, Any]:
        """As JSON."""
        of_now = {name: getattr(self.now, name) for name in _OF_NOW}
        return {**msgspec.to_builtins(self.parts), **of_now, "run": shown_run(self.now.run), "warning": self.warning}

    def causes(self) -> Iterator[tuple[str, str]]:
        """(points, what they are due to)."""
        parts = self.parts
        seams = ", ".join(map(day_time, parts.seams))
        instrument = f"another ruleset, detector or method ({seams})" if seams else "the instrument is the same"
        for part, what in (
            (parts.new_sites, f"{counted(parts.new, 'new site')}, against the sites known before of the same sources"),
            (parts.sources, "other sources than before, or more sites of some"),
            (parts.left_sites, f"{counted(parts.left, 'left site')}, whose verdicts are too old now"),
            (parts.known_sites, f"{counted(parts.known, 'site')} known before, by what their articles say now"),
            (parts.instrument, instrument),
        ):
            yield in_points(part), what


def change_since(log: Log, config: Config, since: str, run: str, now_ms: int) -> ChangeSince:
    """The change since the day `since`. Raises NotFound if no share was kept since then, or there is none now."""
    day = read_option_day(since, "--why", now_ms)
    rows = read_sites(log, run)
    points = list(read_points(log, day))
    lines = rate_lines(rows, RateQuery(settings=config.rate, now_ms=now_ms, review=read_review(config.rate, now_ms)))
    now = max(lines, key=lambda line: line.scored_sites)
    if now.share is None:
        raise NotFound(f"--why {since}: there is no share now: {text_of(now.remarks)}")
    try:
        parts = change_parts(
            (point for point in points if not run or point.run == now.run),
            now,
            [row for row in rows if (row.digest, row.detector) == (now.digest, now.detector)],
            llm_probabilities([replace(row, term_end=0) for row in rows], config.rate, now_ms),  # those too old as well
            now_ms,
        )
    except BadParameters as error:
        raise NotFound(f"--why {since}: {error}; `farmwatch rate --history` lists those that were") from None
    return ChangeSince(parts, now, caveats(config, [now.detector])[now.detector])


def in_points(share: float) -> str:
    """A share in percentage points, with its sign."""
    return f"{round(100 * share, 1) + 0.0:+.1f}"  # never -0.0


def day_time(at_ms: int) -> str:
    """A time to the minute."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
