"""The newest row of every site of a run.

`SiteTable` is for a process that runs for months: its rows take a tenth of the memory of structs. A partition is read
again when it has grown, so that no index by site is needed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from sys import intern

import msgspec

from replay.rows.site_columns import SiteColumns
from replay.rows.stated_accounts import StatedAccounts
from replay.runs.lookup import names_to_read
from scoring.estimate.operators import accounts_of
from scoring.rates.canary import is_canary
from stream.log.contract import At, Log, Message
from stream.log.errors import BadRecord
from stream.processing.topic_reader import report, rows_of
from stream.schema.forgotten import Forgotten
from stream.schema.records import SiteState, decode
from stream.schema.topics import ADS_TXT

_AT_ONCE = 20_000  # records of several partitions that are read together: all their rows are held once
_DIGEST_SHOWN = 8  # hexadecimal digits: enough to distinguish the rulesets of one log
_INTERNED = ("verdict", "detector", "digest", "ruleset", "run", "method", "method_digest")  # equal in most rows


class SiteTable:
    """The sites of a topic of rows, as `read_rows` gives them; `refresh` reads the partitions with new records."""

    def __init__(self, log: Log, topic: str) -> None:
        self._log = log
        self._topic = topic
        self._partitions: dict[int, SiteColumns] = {}
        self._ends: list[int] = []
        self._forgotten = Forgotten(log)
        self._restated: set[int] = set()  # partitions whose sites state other accounts than their rows here have
        self.stated = StatedAccounts(log)

    @property
    def ends(self) -> list[int]:
        """Where it has read to, as `ends_of`."""
        return [*self._ends, *self.stated.ends]

    def __len__(self) -> int:
        return sum(map(len, self._partitions.values()))

    def refresh(self) -> None:
        """Read to the end of the topic. An unreadable row changes nothing. Raises as `Log.read_all`."""
        ends = self._log.end(self._topic)
        if self._forgotten.refresh():
            self._ends = []  # rows of forgotten hosts are no longer read
        self._restated |= self.stated.refresh()
        before = self._ends or [0] * len(ends)
        spans = {
            place: span
            for place, span in enumerate(zip(self._log.beginning(self._topic), ends, strict=True))
            if span[1] != before[place] or place in self._restated
        }

        def report_new(message: Message, error: BadRecord) -> None:
            if message.offset >= before[message.partition]:  # reported once, not by each refresh that reads it again
                report(message, error)

        batches: list[dict[int, tuple[int, int]]] = []
        room = 0
        for place, (first, end) in spans.items():
            if not batches or end - first > room:
                batches.append({})
                room = _AT_ONCE
            batches[-1][place] = first, end
            room -= end - first
        for some in batches:
            packed: dict[int, dict[bytes, bytes]] = {place: {} for place in some}  # many rows at once are large
            messages = self._log.read_all({At(self._topic, place): span for place, span in some.items()})
            for message, row in rows_of(SiteState, messages, report_new):
                if row is None or message.value is None:
                    packed[message.partition].pop(message.key, None)
                else:
                    packed[message.partition][message.key] = message.value
            for place in some:
                rows = packed.pop(place)
                self._partitions[place] = SiteColumns(
                    self.stated.added_to(decode(SiteState, rows[key])) for key in sorted(rows)
                )
        self._ends, self._restated = ends, set()

    def rows(self) -> Iterator[SiteState]:
        """All rows, sorted by site: views that read like `SiteState`."""
        return heapq.merge(*(columns.rows() for columns in self._partitions.values()), key=attrgetter("site"))


@dataclass(frozen=True, slots=True)
class Counts:
    """Sums over the rows of a run, without canary sites."""

    sites: int = 0
    pages: int = 0
    articles: int = 0
    unscored: int = 0  # articles without a score, and on which the detector did not abstain

    @property
    def mostly_unscored(self) -> bool:
        return 2 * self.unscored > self.articles


def slim(row: SiteState) -> SiteState:
    """The row without the fields on which no share depends, for rows that stay in memory."""
    names = {name: intern(str(getattr(row, name))) for name in _INTERNED}
    lists = {"sources": list(map(intern, row.sources)), "queries": list(map(intern, row.queries))}
    return msgspec.structs.replace(
        row, **names, **lists, days=[], dropped_by={}, quarters={}, llr=0.0, signals=accounts_of(row.signals)
    )


def compared_row(row: SiteState) -> SiteState:
    """The row with the compared fields only, and counts that fit each other."""
    counts = {"articles": min(row.articles, row.pages), "flagged": min(row.flagged, row.scored)}
    return msgspec.structs.replace(slim(row), **counts)


def ends_of(log: Log, topic: str) -> list[int]:
    """End offsets of what the rows of a topic are read from: they change while these do."""
    return [*log.end(topic), *(log.end(ADS_TXT) if ADS_TXT in log.topics() else ())]


def read_rows(log: Log, topic: str) -> list[SiteState]:
    """The newest row of each key on a topic of rows, sorted by key, with the accounts that its ads.txt states."""
    if topic not in log.topics():
        return []
    rows: dict[bytes, SiteState] = {}
    spans = enumerate(zip(log.beginning(topic), log.end(topic), strict=True))
    unread = {At(topic, partition): span for partition, span in spans if span[0] < span[1]}
    for message, row in rows_of(SiteState, log.read_all(unread)):
        if row is None:
            rows.pop(message.key, None)
        else:
            rows[message.key] = row
    stated = StatedAccounts(log)
    stated.refresh()
    return [stated.added_to(rows[key]) for key in sorted(rows)]


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
    """All site rows of a run (default: the live run), sorted by site; [] if it has no topic yet."""
    return read_rows(log, names_to_read(log, run).sites)


def short_ruleset(name: str, digest: str) -> str:
    """A ruleset by name and short digest."""
    return f"{name} {digest[:_DIGEST_SHOWN]}"
