"""Which sites a list shows: a filter, as conditions on the index, their order by probability, and sums over them."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from json import dumps
from typing import NamedTuple

from farmwatch.console.index_tables import NOT_CANARY_SITE
from farmwatch.share.site_lines import state_of
from stream.schema.records import SiteState
from stream.schema.vocabulary import DECIDED as DECIDED_VERDICTS

Value = str | int | float | None
SORTS = {
    **{"site": "site", "p_llm": "p_llm(site)", "updated": "updated_at"},
    **{name: name for name in ("verdict", "hits", "pages", "articles", "scored", "flagged")},
}
STATES = ("llm", "human", "open", "not judged")  # what the verdict of a site says to people
DECIDED = "decided"  # kind of sites: two of the others
FEW = 2_000  # sites found by name or source that are sorted; of more, the first are found sooner in order
_LAST = "\U0010ffff"  # after every name
_RANKED_AT_ONCE = 200  # sites that are looked up by name, and then twice as many
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


class Likely:
    """The probabilities of sites, ranked once for all screens of a list. Sites without one come before all others."""

    def __init__(self, by_site: Mapping[str, float]) -> None:
        self.by_site = by_site
        self._ranked = sorted((p_llm, site) for site, p_llm in by_site.items())

    def p_llm(self, site: str) -> float:
        """Less than any probability for a site without one."""
        return self.by_site.get(site, -1.0)

    def ordered(
        self, db: sqlite3.Connection, where: Sequence[str], values: Sequence[Value], after: str, *, down: bool
    ) -> Iterator[int]:
        """Ids of the sites that match, after the site `after`, looked up as they are taken."""
        matching = f"SELECT site, id FROM site INDEXED BY site_by_site WHERE {' AND '.join(where)} AND site"
        ranked, first = self._ranked[::-1] if down else self._ranked, _LAST if down else ""
        if after:
            key = (self.p_llm(after), after)
            ranked = ranked[len(ranked) - bisect_left(self._ranked, key) if down else bisect_right(self._ranked, key) :]
            first = _LAST if after in self.by_site else after

        def with_one() -> Iterator[int]:
            start, size = 0, _RANKED_AT_ONCE
            while names := [site for _, site in ranked[start : start + size]]:
                found = dict(db.execute(f"{matching} IN (SELECT value FROM json_each(?))", [*values, dumps(names)]))
                yield from (found[site] for site in names if site in found)
                start, size = start + size, 2 * size

        def without() -> Iterator[int]:
            bound, order = ("<", "DESC") if down else (">", "ASC")
            for site, number in db.execute(f"{matching} {bound} ? ORDER BY site {order}", [*values, first]):
                if site not in self.by_site:
                    yield number

        return chain(with_one(), without()) if down else chain(without(), with_one())


def conditions_of(db: sqlite3.Connection, of: SiteFilter) -> tuple[list[str], list[Value], bool]:
    """The conditions of a filter, their values, and whether an index of names or sources selects few."""
    where, values = [NOT_CANARY_SITE], list[Value]()
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
