"""Rows of sites by their numbers of articles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stream.schema.records import SiteState


def cell_rows(cells: Iterable[tuple[int, int]], name: str = "s{}.com", **more: Any) -> list[SiteState]:
    """A row for each pair of scored and flagged articles; `name` is completed by its place."""
    names = ((name.format(place), *cell) for place, cell in enumerate(cells))
    return [SiteState(id=site, site=site, ruleset="r", scored=n, flagged=k, **more) for site, n, k in names]
