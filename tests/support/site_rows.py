"""Rows of sites by their numbers of articles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scoring.rates.cuts import Cut
from scoring.rates.results import RankedHit, Results
from stream.schema.records import SiteState
from stream.text.times import DAY_MS


def cell_rows(cells: Iterable[tuple[int, int]], name: str = "s{}.com", **more: Any) -> list[SiteState]:
    """A row for each pair of scored and flagged articles; `name` is completed by its place."""
    names = ((name.format(place), *cell) for place, cell in enumerate(cells))
    return [SiteState(id=site, site=site, ruleset="r", scored=n, flagged=k, **more) for site, n, k in names]


def results_of(rows: Iterable[SiteState]) -> Results:
    """Search results that name each row as often as it has `hits`, at its best rank."""
    hits = (result(f"{row.site} {n}", row.site, row.best_rank) for row in rows for n in range(row.hits))
    return Results(hits, "", Cut(), {})


def result(name: str, site: str, rank: int, day: int = 0, engine: str = "") -> RankedHit:
    """A search result."""
    return RankedHit(id=name, site=site, query_id="q", source="", engine=engine, rank=rank, fetched_at=day * DAY_MS)
