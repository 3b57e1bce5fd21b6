"""Which sites a list shows: a filter, as conditions on the index, and sums over what it leaves."""

from __future__ import annotations

import sqlite3
from json import dumps
from typing import NamedTuple

from farmwatch.console.index_tables import NOT_CANARY_SITE
from farmwatch.share.site_lines import state_of
from stream.schema.records import SiteState
from stream.schema.vocabulary import DECIDED as DECIDED_VERDICTS

SORTS = {
    **{"site": "site", "p_llm": "p_llm(site)", "updated": "updated_at"},
    **{name: name for name in ("verdict", "hits", "pages", "articles", "scored", "flagged")},
}
STATES = ("llm", "human", "open", "not judged")  # what the verdict of a site says to people
DECIDED = "decided"  # kind of sites: two of the others
FEW = 2_000  # sites found by name or source that are sorted; of more, the first are found sooner in order
_TRIGRAM, _LETTERS = 3, 8  # that the index of names needs; that select enough: a common ending costs more


class SiteFilter(NamedTuple):
    """Which sites: those that have all that is not empty."""

    search: str = ""  # in the name
    verdict: str = ""  # or one of STATES, or DECIDED
    source: str = ""
    least: int = 0  # articles
    names: tuple[str, ...] | None = None


class SiteSums(NamedTuple):
    """Sums over sites with the same verdict."""

    state: str
    verdict: str
    sites: int
    hits: int
    pages: int
    articles: int
    scored: int
    flagged: int

    @property
    def is_decided(self) -> bool:
        return self.verdict in DECIDED_VERDICTS

    @classmethod
    def of(cls, row: SiteState) -> SiteSums:
        """Of one site."""
        counts = (row.hits, row.pages, row.articles, row.scored, row.flagged)
        return cls(state_of(row.verdict, row.scored), row.verdict, 1, *counts)


def conditions_of(db: sqlite3.Connection, of: SiteFilter) -> tuple[list[str], list[str | int | float | None], bool]:
    """The conditions of a filter, their values, and whether an index of names or sources selects few."""
    where, values = [NOT_CANARY_SITE], list[str | int | float | None]()
    for condition, value in (
        ("verdict = ?", of.verdict if of.verdict not in (*STATES, DECIDED) else ""),
        ("state = ?", of.verdict if of.verdict in STATES else ""),
        ("articles >= ?", of.least),
    ):
        if value:
            where.append(condition)
            values.append(value)
    if of.verdict == DECIDED:
        where.append("state IN ('llm', 'human')")
    picks = list[tuple[str, str]]()  # indices that select sites
    if of.names is not None:
        picks.append(("SELECT id FROM site WHERE site IN (SELECT value FROM json_each(?))", dumps(of.names)))
    if of.source:
        picks.append(("SELECT id FROM site_source WHERE source = ?", of.source))
        where.append("EXISTS (SELECT 1 FROM site_source WHERE source = ? AND site_source.id = site.id)")
        values.append(of.source)
    if of.search:
        where.append("instr(site, ?) > 0")
        values.append(of.search.lower())
    if len(of.search) >= _TRIGRAM and "\0" not in of.search:
        phrase = '"{}"'.format(of.search[:_LETTERS].replace('"', '""'))
        picks.append(("SELECT rowid FROM name WHERE name MATCH ?", phrase))
    for pick, value in picks:
        (many,) = db.execute(f"SELECT COUNT(*) FROM ({pick} LIMIT {FEW + 1})", [value]).fetchone()
        if many <= FEW or of.names is not None:
            return [f"id IN ({pick})", *where], [value, *values], True
    return where, values, False
