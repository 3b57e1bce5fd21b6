"""A round of queries of one source: from queries to hits and pages on the log."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
import structlog

from crawler.errors import UnusableUrl
from crawler.hit_records import hit_output, page_outputs
from crawler.sources import usage as using
from crawler.sources.known_hits import KnownHits
from crawler.sources.ledger import Ledger, Round
from crawler.sources.paced_client import PacedClient, RoundEnded
from crawler.sources.settings import SourceSettings
from crawler.sources.source import (
    Archive,
    ArchivePlace,
    BadAnswer,
    Query,
    Results,
    SearchResult,
    Source,
    SourceError,
    SourceRefused,
)
from crawler.warc.pages import ArchivedPage
from crawler.web.hits_file import make_hit
from stream.log.contract import Output
from stream.processing.metrics import Metrics

_log = structlog.get_logger()
_FLUSH_BYTES = 4 * 1024 * 1024  # of records that wait to be appended
_FLUSH_RECORDS = 2000
_RECORD_BYTES = 500  # memory of a record beside its key and value, about
_NAMED = 5  # bad results of a page that are logged with their reason
OUTCOMES = ("found", "empty", "refused", "failed")
UNUSABLE, KNOWN, LOST = "unusable", "known", "lost"  # why results are skipped; archives name further reasons


@dataclass(slots=True)
class RoundSummary:
    """The result of a round. `ended` says why it was interrupted; "" = all queries are done."""

    source: str
    queries: int = 0
    hits: int = 0
    pages: int = 0  # imported
    skipped: int = 0  # results without a hit, and why:
    skipped_reasons: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    unresponsive: dict[str, str] = field(default_factory=dict)
    left: int | None = None
    ended: str = ""
    refused: bool = False  # the source refuses everything: waiting does not help


@dataclass(frozen=True, slots=True)
class _Taken:
    """The records of a result, or why it has none."""

    outputs: Sequence[Output] = ()
    imported: str = ""  # id of the hit of a page from an archive
    skipped: str = ""

    @property
    def size_bytes(self) -> int:
        """About the memory that it takes."""
        return _RECORD_BYTES + sum(len(output.key) + len(output.value or b"") for output in self.outputs)


class Searcher:
    """Searches one source. One round at a time."""

    def __init__(
        self,
        source: Source,
        settings: SourceSettings,
        turns: PacedClient,
        partitions: int,
        metrics: Metrics,
        imports: KnownHits,
    ) -> None:
        """`turns` belong to the source; `imports` is used only if the source is an archive."""
        self.source = source
        self._archive = source if isinstance(source, Archive) else None
        self._settings = settings
        self._turns = turns
        self._partitions = partitions
        self._metrics = metrics
        self._imports = imports
        self._flushing = asyncio.Lock()
        self._waiting: list[_Taken] = []
        self._waiting_bytes = 0

    @property
    def ledger(self) -> Ledger:
        """The ledger of the source."""
        return self._turns.ledger

    async def round(
        self,
        queries: Sequence[Query],
        round_: Round,
        *,
        kept: bool,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> RoundSummary:
        """Search the queries from `round_.done` on; `kept` stores the progress in the log.

        `on_progress` gets the number of queries done since its last call. An interrupted query keeps its results; it is
        repeated as a whole, and repeated results have the same ids. Raises StreamError as `PacedClient.with_log`.
        """
        summary = RoundSummary(self.source.name)
        done = round_.done
        while done < len(queries) and not summary.ended:
            if self._turns.stopped():
                summary.ended = "stopped"
                break
            window = queries[done : done + self.source.at_once]
            asked = await asyncio.gather(
                *(self._query(query, round_.started_ms, summary) for query in window), return_exceptions=True
            )
            outcomes: list[str] = []
            for one in asked:
                if isinstance(one, RoundEnded):
                    summary.ended, summary.refused = str(one), one.refused
                    break
                if isinstance(one, BaseException):
                    raise one
                outcomes.append(one)
            done += len(outcomes)
            await self._flush(summary, msgspec.structs.replace(round_, done=done) if kept else None)
            summary.queries += len(outcomes)
            for outcome in outcomes:
                summary.outcomes[outcome] += 1
                self._metrics.count("search_queries", source=self.source.name, outcome=outcome)
            on_progress(len(outcomes))
        summary.left = using.left(self.ledger.usage, self._settings, self._turns.clock())
        return summary

    async def _query(self, query: Query, started_ms: int, summary: RoundSummary) -> str:
        """Search all result pages of a query; returns its outcome. Raises RoundEnded if it is not finished."""
        found = lost = places = 0
        try:
            for page in range(1, self._settings.pages + 1):
                results = await self._results(query, page)
                summary.unresponsive.update(results.unresponsive)
                self._hold([_Taken(skipped=UNUSABLE)] * len(results.bad))
                for result in results.found:
                    taken = await self._take(query, page, places, result, started_ms)
                    found += bool(taken.outputs)
                    lost += taken.skipped == LOST
                    self._hold([taken])
                    if self._waiting_bytes >= _FLUSH_BYTES or len(self._waiting) >= _FLUSH_RECORDS:
                        await self._flush(summary)
                places += results.places
                if not results.more:
                    break
        except SourceRefused as error:
            raise RoundEnded(str(error), refused=True) from error
        except SourceError as error:
            _log.warning("query_given_up", source=self.source.name, query_id=query.id[:200], error=str(error))
            return "failed" if error.retriable else "refused"
        return "failed" if lost else "found" if found else "empty"

    async def _results(self, query: Query, page: int) -> Results:
        results = await self._turns.ask(
            self.source.request(query, page), lambda answer: self.source.results(answer, page)
        )
        await self._turns.change(
            lambda usage: using.answered(
                usage, results.left, results.reset_s, dict(results.unresponsive), self._turns.clock()
            )
        )
        if results.bad:
            why = "; ".join(results.bad[:_NAMED])[:300]
            _log.info("results_skipped", source=self.source.name, query_id=query.id[:200], page=page, why=why)
        return results

    async def _take(self, query: Query, page: int, places: int, found: SearchResult, started_ms: int) -> _Taken:
        """The record of a result."""
        if found.place is not None and self._archive is not None:
            return await self._read(self._archive, query, found.place)
        rank, now_ms = places + found.rank, int(self._turns.clock() * 1000)
        try:
            hit = result_output(self.source.name, query, found, page, rank, started_ms, now_ms, self._partitions)
        except (UnusableUrl, ValueError) as error:
            _log.info(
                "result_skipped", source=self.source.name, query_id=query.id[:200], rank=rank, why=str(error)[:200]
            )
            return _Taken(skipped=UNUSABLE)
        return _Taken([hit])

    async def _read(self, archive: Archive, query: Query, place: ArchivePlace) -> _Taken:
        """The page and the hit of an archive record. Raises SourceError if other requests would also fail."""
        try:
            page = await self._turns.ask(archive.record_request(place), lambda answer: archive.record(answer, place))
        except BadAnswer as error:  # of this record; the archive itself answers
            _log.warning("record_lost", source=archive.name, why=str(error)[:300])
            return _Taken(skipped=LOST)
        if isinstance(page, str):
            _log.info("record_skipped", source=archive.name, why=page)
            return _Taken(skipped=page)
        return _Taken(listed_page(query, page, self._partitions), imported=page.hit.id)

    def _hold(self, taken: Sequence[_Taken]) -> None:
        self._waiting += taken
        self._waiting_bytes += sum(one.size_bytes for one in taken)

    async def _flush(self, summary: RoundSummary, round_: Round | None = None) -> None:
        """Append what waits and the round's progress; count what was appended."""
        async with self._flushing:
            waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
            dealt_with = await self._turns.with_log(lambda: self._append(waiting, round_))
        appended = [one for one in dealt_with if one.outputs]
        reasons = Counter(one.skipped for one in dealt_with if one.skipped)
        summary.hits += len(appended)
        summary.pages += sum(bool(one.imported) for one in appended)
        summary.skipped += reasons.total()
        summary.skipped_reasons += reasons
        self._metrics.count("search_hits", len(appended), source=self.source.name, outcome="appended")
        self._metrics.count("search_hits", reasons.total(), source=self.source.name, outcome="skipped")

    def _append(self, waiting: Sequence[_Taken], round_: Round | None) -> list[_Taken]:
        """Append without the pages that the log has; returns what became of each result."""
        if not any(one.imported for one in waiting):
            self.ledger.keep(round_, [output for one in waiting for output in one.outputs])
            return list(waiting)
        with self._imports.hold():
            seen: set[str] = set()
            dealt_with = []
            for one in waiting:
                is_known = one.imported in self._imports.ids or one.imported in seen
                dealt_with.append(_Taken(skipped=KNOWN) if is_known else one)
                if one.imported:
                    seen.add(one.imported)
            self.ledger.keep(round_, [output for one in dealt_with for output in one.outputs])
            self._imports.ids |= seen
        return dealt_with


def result_output(
    source: str, query: Query, found: SearchResult, page: int, rank: int, started_ms: int, now_ms: int, partitions: int
) -> Output:
    """The hit of a result, ranked over all pages, in its site's partition.

    Its id uses the start of the round, `started_ms`, so that a repeated query gives the same id; its time is `now_ms`.
    Raises UnusableUrl or ValueError if the result is unusable.
    """
    fields = {
        "url": found.url,
        "query_id": query.id,
        "query": query.text,
        "source": source,
        "engine": found.engine,
        "rank": rank,
        "result_page": page,
        "title": found.title,
        "snippet": found.snippet,
        "fetched_at": started_ms,
    }
    return hit_output(msgspec.structs.replace(make_hit(fields, now_ms=now_ms), fetched_at=now_ms), partitions)


def listed_page(query: Query, archived: ArchivedPage, partitions: int) -> list[Output]:
    """An archived page and its hit with the query that listed it; append them together."""
    hit = msgspec.structs.replace(archived.hit, query_id=query.id, query=query.text)
    return page_outputs(dataclasses.replace(archived, hit=hit), partitions)
