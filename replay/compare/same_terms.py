"""Sites of two runs are compared in the same term: the newest that both have judged.

A run whose window ends earlier has fewer terms of a site. Of the other run the row of that term is taken.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import msgspec

from replay.compare.run_pair import ComparedRun
from replay.compare.site_rows import SiteRows, compared
from replay.rows.site_table import read_rows
from stream.log.contract import Log


class RowPair(NamedTuple):
    """The rows of the two runs."""

    a: SiteRows
    b: SiteRows


def in_same_terms(log: Log, runs: tuple[ComparedRun, ComparedRun], found: RowPair) -> RowPair:
    """The rows with those of earlier terms in place of newer ones that the other run lacks."""
    a, b = found
    both = a.rows.keys() & b.rows.keys()
    ahead_a = {site: b.rows[site].term for site in both if a.rows[site].term > b.rows[site].term}
    ahead_b = {site: a.rows[site].term for site in both if b.rows[site].term > a.rows[site].term}
    return RowPair(_set_back(log, runs[0], a, ahead_a), _set_back(log, runs[1], b, ahead_b))


def _set_back(log: Log, run: ComparedRun, found: SiteRows, terms: dict[str, int]) -> SiteRows:
    """The rows, of these sites in these terms. A site without a row of its term stays as it is."""
    rows = dict(found.rows)
    for row in read_rows(log, run.names.terms) if terms else ():
        if terms.get(row.site) == row.term and row.digest == run.newest.digest:
            newest = rows[row.site]
            named = {name: getattr(newest, name) for name in ("sources", "queries", "best_rank")}
            rows[row.site] = msgspec.structs.replace(compared(row), **named)
    return replace(found, rows=rows)
