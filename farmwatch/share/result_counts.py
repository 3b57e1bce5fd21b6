"""The search results of a log, counted for a share of results."""

from __future__ import annotations

from collections.abc import Iterator

from farmwatch.share.topic_records import topic_records
from scoring.rates.cuts import Cut, Patterns
from scoring.rates.results import RankedHit, Results
from stream.log.contract import Log
from stream.schema.forgotten import Forgotten
from stream.schema.topics import HITS
from stream.text.times import day_ms


def read_results(log: Log, by: str, cut: Cut, patterns: Patterns) -> Results:
    """The results that the log still has, each once: a search that a crash ended may have appended some twice."""
    since_ms = 0 if cut.since is None else day_ms(cut.since)
    return Results(ranked_hits(log, since_ms), by, cut, patterns)


def ranked_hits(log: Log, since_ms: int) -> Iterator[RankedHit]:
    """The hits that the log still has, each once; those from before `since_ms` are mostly skipped."""
    forgotten = Forgotten(log)
    for partition in range(log.topics().get(HITS, 0)):
        seen: set[str] = set()  # a site, and so its hits, has one partition
        for hit in topic_records(log, RankedHit, HITS, [partition], since_ms):
            if hit.id not in seen and not forgotten.covers(hit.site):
                seen.add(hit.id)
                yield hit
