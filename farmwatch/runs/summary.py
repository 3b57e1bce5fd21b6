"""What a replay came to: pages, articles, sites by verdict, the rate beside the live one, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from farmwatch.config import Config
from farmwatch.messages import counted, one_line
from farmwatch.rating import RateLine, rate_lines
from farmwatch.runs.missing import gaps_of, records_in
from farmwatch.runs.named import FIRST
from farmwatch.runs.overview import Counts, counts_of, rows_of
from farmwatch.site_table import VERDICTS, short_ruleset
from stream.control import Control
from stream.log import Log
from stream.runs import Run, State


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a replay, for people and as JSON."""

    run: str
    state: str
    ruleset: str
    digest: str
    detector: str
    source: str
    why_source: str
    sites: int
    pages: int
    articles: int
    unscored: int
    lost: dict[str, int]  # topic -> records that left the log before it had read them
    verdicts: dict[str, int]
    rate: str  # in words, with its interval
    live: str  # name of the live run
    live_rate: str
    next: list[str]


def summary_of(log: Log, control: Control, config: Config, run: Run, now_ms: int) -> Summary:
    """What the run has come to by now. Raises LogUnavailable."""
    rows = rows_of(log, run.names().sites)
    live = control.live or FIRST
    live_rows = rows_of(log, live.names(is_live=True).sites)
    counts = counts_of(rows)
    lines = rate_lines(rows, settings=config.rate, now_ms=now_ms)
    live_lines = rate_lines(live_rows, settings=config.rate, now_ms=now_ms)
    return Summary(
        run=run.name,
        state=run.state,
        ruleset=run.ruleset,
        digest=run.digest,
        detector=run.detector,
        source=run.source,
        why_source=run.why_source,
        sites=counts.sites,
        pages=counts.pages,
        articles=counts.articles,
        unscored=counts.unscored,
        lost=records_in(gaps_of(log, run)),
        verdicts={verdict: sum(getattr(line, verdict) for line in lines) for verdict in VERDICTS},
        rate=_rate(lines),
        live=live.name,
        live_rate=_rate([line for line in live_lines if line.digest in (live.digest, "") or not live.digest]),
        next=_next(run, live, counts),
    )


def lines_of(summary: Summary) -> list[str]:
    """The summary as people read it."""
    found = [
        f"{summary.run}: {counted(summary.pages, 'page')} judged by {short_ruleset(summary.ruleset, summary.digest)},"
        f" {counted(summary.articles, 'article')}; {counted(summary.sites, 'site')}: "
        + ", ".join(f"{count} {verdict}" for verdict, count in summary.verdicts.items()),
        f"  rate {summary.rate}",
        f"  {summary.live} (live): rate {summary.live_rate}",
    ]
    if summary.lost:
        found.append(f"  {lost_text(summary.lost)}: not all records are in it, and a cutover asks for --partial")
    if summary.unscored:
        verb = "has no score yet: it is" if summary.unscored == 1 else "have no score yet: they are"
        found.append(
            f"  {counted(summary.unscored, 'article')} {verb} requested at low priority and counted as unscored, in no"
            " verdict"
        )
    return [one_line(line) for line in [*found, *(f"  next: {step}" for step in summary.next)]]


def lost_text(lost: Mapping[str, int]) -> str:
    """What left the log before a run had read it, in words."""
    said = ", ".join(f"{topic} {records}" for topic, records in lost.items())
    return f"{counted(sum(lost.values()), 'record')} left the log before it had read them ({said})"


def _rate(lines: Sequence[RateLine]) -> str:
    return " | ".join(line.text for line in lines) or "none yet"


def _next(run: Run, live: Run, counts: Counts) -> list[str]:
    if run.state == State.CANCELLED:
        return [f"farmwatch runs rm {run.name}"]
    if run.state == State.RUNNING:
        return [f"farmwatch replay --name {run.name}    # goes on"]
    again = [f"farmwatch replay --name {run.name}    # takes in the scores that came since"] if counts.unscored else []
    return [*again, f"farmwatch compare {live.name} {run.name}", f"farmwatch cutover {run.name}"]


def as_builtins(summary: Summary) -> Any:
    """The summary as JSON has it."""
    return msgspec.to_builtins(summary)
