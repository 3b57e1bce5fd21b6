"""The two runs of a comparison: names, newest verdict, progress, and the newest rows of their sites.

Rows are of one ruleset, detector and site method. Sites of two runs are compared in the same term: the newest that both
have judged. A run whose window ends earlier has fewer terms of a site. Of the other run the row of that term is taken.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, replace
from sys import intern

import msgspec

from replay.rows.site_table import compared_row, read_rows
from replay.runs.lookup import find_run
from replay.runs.overview import state_of
from replay.runs.phases import JUDGE, MEASURE, TALLY, progress_of
from replay.runs.topology import lag_by_group, last_record
from scoring.rates.canary import is_canary
from scoring.rates.versions import has_verdict
from stream.log.contract import Log
from stream.processing.topic_reader import records_of, rows_of
from stream.schema.control import Control
from stream.schema.records import SiteState, Verdict
from stream.schema.runs import Run, RunNames, RunStatus
from stream.text.user_errors import NotFound

_NOTED_LAG_SHARE = 0.01  # of its records; a comparison notes a larger lag of a run that follows
_DONE = {MEASURE: "measured", JUDGE: "judged", TALLY: "tallied"}


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run, its topics, and its newest verdict, whose ruleset is the one compared."""

    run: Run
    names: RunNames
    state: str  # see `state_of`
    newest: Verdict
    progress: str  # unfinished work as text; "" = none


RunPair = tuple[ComparedRun, ComparedRun]


def find_compared_run(log: Log, control: Control, name: str) -> ComparedRun:
    """The run with this name or alias, for a comparison."""
    run = find_run(control, name)
    names = run.names(is_live=run.name == control.alias.run)
    newest = _newest(log, names.verdicts)
    progress = _progress(log, control, run)
    if newest is None:
        so_far = f" ({progress})" if progress else ""
        raise NotFound(f"the run {run.shown} has judged nothing yet{so_far}", case="no verdict")
    return ComparedRun(run, names, state_of(log, control, run), newest, progress)


def _newest(log: Log, topic: str) -> Verdict | None:
    """The newest verdict: its ruleset is the one of the run now."""
    if topic not in log.topics():
        return None
    spans = list(enumerate(zip(log.beginning(topic), log.end(topic), strict=True)))
    last = [last_record(log, topic, partition, first, end) for partition, (first, end) in spans]
    verdicts = list(records_of(Verdict, (message for message in last if message is not None)))
    if not verdicts:  # a live topic may end with hours of heartbeats
        for partition, _ in spans:
            verdicts += deque(records_of(Verdict, log.read(topic, partition)), maxlen=1)
    return max((verdict for _, verdict in verdicts), key=lambda verdict: verdict.judged_at, default=None)


def _progress(log: Log, control: Control, run: Run) -> str:
    """The unfinished work, as text. A small lag of a run that follows is left out."""
    if run.state == RunStatus.DONE or not {run.source, run.names().verdicts} <= log.topics().keys():
        return ""
    advances = progress_of(log, run).phases
    if run.follows:
        behind, done = sum(lag_by_group(log, control, run).values()), sum(advance.done for advance in advances)
        parts = [f"{behind:,} records behind the live topics"] if behind > done * _NOTED_LAG_SHARE else []
    else:
        parts = [
            f"{_DONE[advance.phase]} {advance.done:,} of {advance.total:,} records ({advance.done / advance.total:.0%})"
            for advance in advances
            if not advance.is_done
        ]
    if parts and run.state == RunStatus.CANCELLED:
        parts.insert(0, "cancelled")
    return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class SiteRows:
    """Rows of one ruleset, detector and site method, `slim`; canaries separately, with all fields."""

    rows: dict[str, SiteState]
    canaries: list[SiteState]
    left_out: int  # rows of other rulesets, detectors and site methods
    detector: str
    site_method: str


def _method(row: SiteState) -> tuple[str, str, str]:
    return row.detector, row.method, row.method_digest


def read_site_rows(log: Log, topic: str, digest: str, detector: str) -> SiteRows:
    """The sites of a run that are judged by the ruleset of this digest and scored by this detector.

    If `detector` is "", it is the one of most sites. Of several site methods, that of most sites counts: a setting
    changes it, and rows change one by one. Sites without a page count with any method. Raises as `Log.read`.
    """
    rows: dict[str, SiteState] = {}
    canaries: dict[str, SiteState] = {}
    others: set[str] = set()
    for partition in range(log.topics().get(topic, 0)):
        for message, row in rows_of(SiteState, log.read(topic, partition)):
            site = message.key.decode(errors="replace")
            rows.pop(site, None)
            others.discard(site)
            if row is None:
                continue
            if is_canary(site):
                canaries[site] = row
            elif has_verdict(row) and row.digest != digest:
                others.add(site)
            else:
                rows[intern(site)] = compared_row(row)
    methods = Counter(_method(row) for row in rows.values() if has_verdict(row) and detector in ("", row.detector))
    chosen = methods.most_common(1)[0][0] if methods else (detector, "", "")
    chosen_detector, name, method_digest = chosen
    kept = {
        site: row
        for site, row in rows.items()
        if _method(row) == chosen or (not has_verdict(row) and chosen_detector in ("", row.detector))
    }
    return SiteRows(
        rows=kept,
        canaries=[row for row in canaries.values() if (row.digest, *_method(row)) == (digest, *chosen)],
        left_out=len(others) + len(rows) - len(kept),
        detector=chosen_detector,
        site_method=f"{name} {method_digest}".strip(),
    )


def in_same_terms(log: Log, runs: RunPair, a: SiteRows, b: SiteRows) -> tuple[SiteRows, SiteRows]:
    """The rows with those of earlier terms in place of newer ones that the other run lacks."""
    both = a.rows.keys() & b.rows.keys()
    ahead_a = {site: b.rows[site].term for site in both if a.rows[site].term > b.rows[site].term}
    ahead_b = {site: a.rows[site].term for site in both if b.rows[site].term > a.rows[site].term}
    return _set_back(log, runs[0], a, ahead_a), _set_back(log, runs[1], b, ahead_b)


def _set_back(log: Log, run: ComparedRun, newest_rows: SiteRows, terms: dict[str, int]) -> SiteRows:
    """The rows, of these sites in these terms. A site without a row of its term stays as it is."""
    rows = dict(newest_rows.rows)
    for row in read_rows(log, run.names.terms) if terms else ():
        if terms.get(row.site) == row.term and row.digest == run.newest.digest:
            newest = rows[row.site]
            named = {name: getattr(newest, name) for name in ("sources", "queries", "best_rank")}
            rows[row.site] = msgspec.structs.replace(compared_row(row), **named)
    return replace(newest_rows, rows=rows)
