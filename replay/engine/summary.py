"""The result of a replay: pages, articles, sites by verdict, its share and the live share, and the next step."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import msgspec

from replay.engine.source import round_up_to_second
from replay.rows.gaps import gaps_of, missing_records, records_in
from replay.rows.scores import requests_wait, scored_detectors
from replay.rows.site_table import Counts, counts_of, read_rows
from replay.runs.lookup import FIRST_RUN
from replay.runs.overview import STOPPED, WAS_LIVE, state_of
from replay.settings import ReplaySettings
from scoring.estimate.remarks import Remark
from scoring.estimate.reviewed_share import Review
from scoring.rates.split_rates import RateQuery, rate_lines
from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.roles import Role
from stream.schema.runs import Gap, Run, RunStatus
from stream.schema.vocabulary import SiteClass
from stream.text.wording import counted


class NextStep(enum.StrEnum):
    """What the operator may do after a replay."""

    REMOVE = "remove"
    RESUME = "resume"
    COMPARE = "compare"
    CUT_OVER = "cut over"


class ReplaySummary(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a replay, shown as text and as JSON."""

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
    scored_by: list[str]  # detectors that SCORE runs; [] = unknown
    requests_wait: bool  # requests of replays wait for SCORE
    score_runs: bool  # a SCORE process is running
    lost: dict[str, int]  # topic -> records that expired before the run read them; of its window an upper bound
    lost_said: str  # `lost` as text
    verdicts: dict[str, int]
    rate: tuple[tuple[Remark, ...], ...]  # the share of each ruleset, detector and site method
    live: str  # name of the live run
    live_rate: tuple[tuple[Remark, ...], ...]
    next: list[NextStep]


def summary_of(
    log: Log, control: Control, config: ReplaySettings, run: Run, now_ms: int, review: Review | None = None
) -> ReplaySummary:
    """The present result of the run; with a `review` its shares use those labels. Raises LogUnavailable."""
    rows = read_rows(log, run.names().sites)
    live = control.live or FIRST_RUN
    live_rows = read_rows(log, live.names(is_live=True).sites)
    counts = counts_of(rows)
    scored_by = scored_detectors(control, config)
    state = state_of(log, control, run)
    gaps = gaps_of(log, run)
    query = RateQuery(settings=config.rate, now_ms=now_ms, review=review)
    lines, live_lines = rate_lines(rows, query), rate_lines(live_rows, query)
    return ReplaySummary(
        run=run.shown,
        state=state,
        **{name: getattr(run, name) for name in ("ruleset", "digest", "detector", "source", "why_source")},
        **asdict(counts),
        scored_by=scored_by,
        requests_wait=requests_wait(log),
        score_runs=bool(log.members(Role.SCORE.value)),
        lost=records_in(gaps),
        lost_said=lost_text(gaps),
        verdicts={verdict: sum(getattr(line, verdict) for line in lines) for verdict in SiteClass},
        rate=tuple(line.remarks for line in lines),
        live=live.shown,
        live_rate=tuple(line.remarks for line in live_lines if line.digest in (live.digest, "") or not live.digest),
        next=list(_next(log, control, run, state, counts)),
    )


def lost_text(gaps: Sequence[Gap]) -> str:
    """Text about records that expired before the run read them; "" if none."""
    parts = []
    if before := records_in(gap for gap in gaps if gap.kept_at is not None):
        whole_at = max(gap.kept_at or 0 for gap in gaps)
        topics = f"{', '.join(before)}{f', complete from {round_up_to_second(whole_at)} on' if whole_at else ''}"
        most = counted(sum(before.values()), "record")
        parts.append(f"up to {most} of its window had been deleted before it began ({topics})")
    if unread := records_in(gap for gap in gaps if gap.kept_at is None):
        topics = ", ".join(f"{topic} {records}" for topic, records in unread.items())
        parts.append(f"{counted(sum(unread.values()), 'record')} expired before it read them ({topics})")
    return "; ".join(parts)


def _next(log: Log, control: Control, run: Run, state: str, counts: Counts) -> Iterator[NextStep]:
    if state == RunStatus.CANCELLED:
        yield NextStep.REMOVE
    if state in (RunStatus.CANCELLED, STOPPED) or (state == RunStatus.DONE and counts.unscored):
        yield NextStep.RESUME
    if state in (RunStatus.DONE, WAS_LIVE):
        yield NextStep.COMPARE
        is_refused = not counts.articles or counts.mostly_unscored or missing_records(log, run, control.runs)
        if state == WAS_LIVE or not is_refused:
            yield NextStep.CUT_OVER
