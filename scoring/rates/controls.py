"""What a detector flags of controls, whose dates say that they are human: its errors on the measured sites.

Pages of a site agree, so the interval is that of `scoring.statistics.shares`, in which whole sites vary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self

import msgspec

from scoring.estimate.intervals import PLACES
from stream.schema.control_sites import is_control_site, real_host
from stream.schema.records import SiteState
from stream.schema.vocabulary import SiteClass

if TYPE_CHECKING:
    from scoring.estimate.fit import CellCounts

FEWEST_SITES = 50  # with control pages; with fewer the interval of the share is too narrow where people write otherwise


class ControlCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Scored pages that are surely human by their dates, and how many of them are flagged."""

    sites: int  # with such pages
    pages: int
    flagged: int
    share: float  # of the pages that is flagged
    low: float
    high: float
    control_sites: int = 0  # of the sites, those with no other scored article, and a verdict other than unclassifiable
    called_llm: int = 0

    @classmethod
    def of(cls, cells: CellCounts, control_sites: int = 0, called_llm: int = 0) -> Self | None:
        """Of sites by their numbers of such pages, and of flagged ones; None without one."""
        import numpy as np

        from scoring.statistics.shares import share  # it loads numpy

        known = [(n, k, int(sites)) for (n, k), sites in sorted(cells.items()) if n and sites]
        if not known:
            return None
        n, k = (np.repeat([cell[place] for cell in known], [sites for *_, sites in known]) for place in (0, 1))
        of_site = np.repeat(np.arange(len(n)), n)
        hits = np.arange(len(of_site)) - (np.cumsum(n) - n)[of_site] < k[of_site]
        of_pages = share(hits, of_site)
        assert of_pages.share is not None and of_pages.low is not None and of_pages.high is not None
        return cls(
            sites=len(n),
            pages=of_pages.total,
            flagged=of_pages.count,
            share=round(of_pages.share, PLACES),
            low=round(of_pages.low, PLACES),
            high=round(of_pages.high, PLACES),
            control_sites=control_sites,
            called_llm=called_llm,
        )


def archived(rows: Iterable[SiteState]) -> list[SiteState]:
    """The control sites of archives among rows: they count in no share, and their pages are controls like others."""
    return [row for row in rows if is_control_site(row.site)]


def control_cells(rows: Iterable[SiteState]) -> Counter[tuple[int, int]]:
    """Sites by their numbers of scored and of flagged control pages; a host and its archive are one site."""
    hosts: dict[str | int, tuple[int, int]] = {}
    for number, row in enumerate(rows):
        if row.control_scored:
            host = real_host(row.site) or number  # an audit drops the names
            scored, flagged = hosts.get(host, (0, 0))
            hosts[host] = scored + row.control_scored, flagged + row.control_flagged
    return Counter(hosts.values())


def count_controls(rows: Sequence[SiteState]) -> ControlCounts | None:
    """The control pages of these sites; None without one."""
    whole = [row.verdict for row in rows if row.scored == row.control_scored > 0]
    classifiable = [verdict for verdict in whole if verdict != SiteClass.UNCLASSIFIABLE]
    return ControlCounts.of(control_cells(rows), len(classifiable), classifiable.count(SiteClass.LLM))


def count_declared(rows: Iterable[SiteState]) -> ControlCounts | None:
    """The pages that are declared older without a day of change, which may be newer; None without one."""
    cells = Counter((row.declared_scored, row.declared_flagged) for row in rows if row.declared_scored)
    return ControlCounts.of(cells)
