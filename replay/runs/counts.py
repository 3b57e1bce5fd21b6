"""What the site rows of a run come to: read once as it ends, for its row, and whenever it is shown in full."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replay.runs.site_table import SiteTable
from scoring.rates.canary import is_canary
from stream.log.contract import Log
from stream.schema.records import SiteState


@dataclass(frozen=True, slots=True)
class Counts:
    """Sums over the rows of a run; canary sites are left out."""

    sites: int = 0
    pages: int = 0
    articles: int = 0
    unscored: int = 0  # articles without a score, and on which the detector did not abstain

    @property
    def mostly_unscored(self) -> bool:
        """Whether more than half of the articles have no score, so that the rate rests on the rest."""
        return 2 * self.unscored > self.articles


def rows_of(log: Log, topic: str) -> list[SiteState]:
    """The newest row of each site on a topic of rows, by name of the site."""
    if topic not in log.topics():
        return []
    table = SiteTable(log, topic)
    table.refresh()
    return table.rows()


def counts_of(rows: Iterable[SiteState]) -> Counts:
    """Sums over rows."""
    kept = [row for row in rows if not is_canary(row.site)]
    return Counts(
        len(kept),
        sum(row.pages for row in kept),
        sum(row.articles for row in kept),
        sum(row.articles - row.scored - row.abstained for row in kept),
    )
