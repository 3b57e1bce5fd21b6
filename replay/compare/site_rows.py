"""The newest rows of the sites of a run, with one ruleset, detector and site method, and those of two runs.

Sites of two runs are compared in the same term: the newest that both have judged. A run whose window ends earlier has
fewer terms of a site. Of the other run the row of that term is taken.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from sys import intern

import msgspec

from replay.compare.run_pair import ComparedRun, RunPair
from replay.rows.site_table import compared_row, read_rows
from scoring.rates.canary import is_canary
from scoring.rates.versions import has_verdict
from stream.log.contract import Log
from stream.processing.topic_reader import rows_of
from stream.schema.records import SiteState


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
