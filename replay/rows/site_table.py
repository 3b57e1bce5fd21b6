"""The newest row of every site of a run, with incremental refresh."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from sys import intern

import msgspec

from replay.runs.lookup import names_to_read
from scoring.rates.canary import is_canary
from stream.log.contract import At, Log
from stream.processing.topic_reader import rows_of
from stream.schema.forgotten import Forgotten
from stream.schema.records import SiteState
from stream.schema.topics import SITES

_DIGEST_SHOWN = 8  # hexadecimal digits: enough to distinguish the rulesets of one log
_LEGEND = {  # of columns in tables of sites
    "p_llm": "probability of an LLM site, by the flags of all sites; the verdict is stricter (it bounds how often a"
    " human site is called llm), so a site may be undecided beside 1.00",
    "used": "scored pages on which the verdict rests",
    "llr": "their evidence: for llm above 0, for human below",
    "most dropped by": "the rule that failed most of the site's pages",
}


class SiteTable:
    """The newest row of each key: of each site, or of each site and term; `refresh` reads only new records."""

    def __init__(self, log: Log, topic: str = SITES) -> None:
        """Start empty; call `refresh` to read."""
        self._log = log
        self._topic = topic
        self._next: dict[int, int] = {}
        self._rows: dict[bytes, SiteState] = {}
        self._forgotten = Forgotten(log)

    def refresh(self) -> None:
        """Read to the end of the topic. An unreadable row changes nothing. Raises as `Log.read_all`."""
        ends = self._log.end(self._topic)
        spans = enumerate(zip(self._log.beginning(self._topic), ends, strict=True))
        unread = {At(self._topic, place): (max(first, self._next.get(place, 0)), end) for place, (first, end) in spans}
        found = self._log.read_all({at: (start, end) for at, (start, end) in unread.items() if start < end})
        for message, row in rows_of(SiteState, found):
            if row is None:
                self._rows.pop(message.key, None)
            else:
                self._rows[message.key] = row
        if self._forgotten.refresh():
            self._rows = {key: row for key, row in self._rows.items() if not self._forgotten.covers(row.site)}
        self._next = dict(enumerate(ends))  # a transaction marker may follow the last record

    @property
    def ends(self) -> list[int]:
        """The read position of each partition."""
        return list(self._next.values())

    def rows(self) -> list[SiteState]:
        """All rows, sorted by key."""
        return [self._rows[key] for key in sorted(self._rows)]


def legend(shown: Iterable[str]) -> str:
    """The legend of the shown columns; "" if none needs one."""
    return "; ".join(f"{column}: {_LEGEND[column]}" for column in shown if column in _LEGEND)


@dataclass(frozen=True, slots=True)
class Counts:
    """Sums over the rows of a run, without canary sites."""

    sites: int = 0
    pages: int = 0
    articles: int = 0
    unscored: int = 0  # articles without a score, and on which the detector did not abstain

    @property
    def mostly_unscored(self) -> bool:
        """Whether more than half of the articles have no score."""
        return 2 * self.unscored > self.articles


_NAMES = ("verdict", "detector", "digest", "ruleset", "run", "method", "method_digest")  # equal in most rows


def slim(row: SiteState) -> SiteState:
    """The row without the fields on which no share depends, for rows that stay in memory."""
    names = {name: intern(str(getattr(row, name))) for name in _NAMES}
    lists = {"sources": list(map(intern, row.sources)), "queries": list(map(intern, row.queries))}
    return msgspec.structs.replace(row, **names, **lists, days=[], dropped_by={}, llr=0.0)


def read_rows(log: Log, topic: str) -> list[SiteState]:
    """The newest row of each key on a topic of rows, sorted by key."""
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


def read_sites(log: Log, run: str = "") -> list[SiteState]:
    """All site rows of a run (default: the live run), sorted by site; [] if it has no topic yet.

    Raises NotFound for an unknown run.
    """
    return read_rows(log, names_to_read(log, run).sites)


def ruleset_of(row: SiteState) -> str:
    """Name and short digest of the ruleset that last judged the site; "" for a site without a verdict."""
    return short_ruleset(row.ruleset, row.digest) if row.ruleset else ""


def short_ruleset(name: str, digest: str) -> str:
    """A ruleset by name and short digest."""
    return f"{name} {digest[:_DIGEST_SHOWN]}"
