"""A round of queries of one source: from queries to hits and pages on the log."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

import msgspec
import structlog

from crawler.errors import UnusableUrl
from crawler.metrics import SEARCH_HITS, SEARCH_QUERIES
from crawler.settings import CrawlSettings
from crawler.sources import usage as using
from crawler.sources.commoncrawl import CommonCrawl
from crawler.sources.ledger import Round
from crawler.sources.paced_client import PacedClient, RoundEnded
from crawler.sources.source import ArchivePlace, BadAnswer, Query, Results, SearchResult, SourceError, SourceRefused
from crawler.stages.hit_records import HitBatch, KnownHits
from crawler.web.hits_file import make_hit
from crawler.web.inspection import Inspector
from stream.log.contract import Output

_log = structlog.get_logger()
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
    skipped_reasons: Counter[str] = field(default_factory=Counter)  # why results gave no hit
    outcomes: Counter[str] = field(default_factory=Counter)
    unresponsive: dict[str, str] = field(default_factory=dict)
    left: int | None = None
    ended: str = ""
    refused: bool = False  # the source refuses everything: waiting does not help

    @property
    def skipped(self) -> int:
        return self.skipped_reasons.total()


class Searcher:
    """Searches one source. One round at a time."""

    def __init__(
        self,
        turns: PacedClient,
        partitions: int,
        imports: KnownHits,
        crawl: CrawlSettings,
        inspector: Inspector | None = None,
    ) -> None:
        """`turns` are those of the source; `imports`, `crawl` and `inspector` are for archived pages."""
        self.source = turns.source
        self.ledger = turns.ledger
        self._turns = turns
        self._partitions = partitions
        self._imports = imports
        self._crawl = crawl
        self._inspector = inspector
        self._flushing = asyncio.Lock()
        self._batch = HitBatch(partitions)

    async def round(
        self,
        queries: Sequence[Query],
        round_: Round,
        *,
        kept: bool,
        deeper: Container[str] = (),
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> RoundSummary:
        """Search the queries from `round_.done` on; `kept` stores the progress in the log.

        Of queries with an id in `deeper`, twice as many result pages are asked for.

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
                *(self._query(query, round_.started_ms, summary, 1 + (query.id in deeper)) for query in window),
                return_exceptions=True,
            )
            outcomes: list[str] = []
            for outcome in asked:
                if isinstance(outcome, RoundEnded):
                    summary.ended, summary.refused = str(outcome), outcome.refused
                    break
                if isinstance(outcome, BaseException):
                    raise outcome
                outcomes.append(outcome)
            done += len(outcomes)
            await self._flush(summary, msgspec.structs.replace(round_, done=done) if kept else None)
            summary.queries += len(outcomes)
            for outcome in outcomes:
                summary.outcomes[outcome] += 1
                self._turns.metrics.count(SEARCH_QUERIES, source=self.source.name, outcome=outcome)
            on_progress(len(outcomes))
        summary.left = using.left(self.ledger.usage, self._turns.settings, self._turns.clock())
        return summary

    async def _query(self, query: Query, started_ms: int, summary: RoundSummary, times: int) -> str:
        """Search `times` as many result pages as set; returns the outcome. Raises RoundEnded if it is not finished."""
        usable = lost = places = 0
        try:
            for page in range(1, min(times * self._turns.settings.pages, self.source.pages_cap) + 1):
                results = await self._results(query, page)
                summary.unresponsive.update(results.unresponsive)
                if results.bad:
                    self._skip(summary, UNUSABLE, len(results.bad))
                for result in results.found:
                    if result.place is not None and isinstance(self.source, CommonCrawl):
                        skipped = await self._take_page(self.source, query, result.place)
                    else:
                        skipped = self._take_hit(query, page, places, result, started_ms)
                    if skipped:
                        self._skip(summary, skipped, 1)
                    usable += skipped in ("", KNOWN)
                    lost += skipped == LOST
                    if self._batch.is_full:
                        await self._flush(summary)
                places += results.places
                if not results.more:
                    break
        except SourceRefused as error:
            raise RoundEnded(str(error), refused=True) from error
        except SourceError as error:
            _log.warning("query_given_up", source=self.source.name, query_id=query.id[:200], error=str(error))
            return "failed" if error.retriable else "refused"
        return "failed" if lost else "found" if usable else "empty"

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
            why = [reason[:100] for reason in results.bad[:_NAMED]]
            _log.info("results_skipped", source=self.source.name, query_id=query.id[:200], page=page, why=why)
        return results

    def _take_hit(self, query: Query, page: int, places: int, result: SearchResult, started_ms: int) -> str:
        """Add the hit of a result to the batch; returns why there is none.

        Its id uses the start of the round, so that a repeated query gives the same id; its time is now.
        """
        rank, now_ms = places + result.rank, int(self._turns.clock() * 1000)
        fields = {
            "url": result.url,
            "query_id": query.id,
            "query": query.text,
            "source": self.source.name,
            "engine": result.engine,
            "rank": rank,
            "result_page": page,
            "title": result.title,
            "snippet": result.snippet,
            "fetched_at": started_ms,
        }
        try:
            hit = make_hit(fields, now_ms=now_ms)
        except (UnusableUrl, ValueError) as error:
            why = str(error)[:200]
            _log.info("result_skipped", source=self.source.name, query_id=query.id[:200], rank=rank, why=why)
            return UNUSABLE
        self._batch.add(msgspec.structs.replace(hit, fetched_at=now_ms))
        return ""

    async def _take_page(self, archive: CommonCrawl, query: Query, place: ArchivePlace) -> str:
        """Add an archived page, and its hit with the query that listed it, to the batch; returns why there is none.

        Raises SourceError if other requests would also fail.
        """
        try:
            page = await self._turns.ask(
                archive.record_request(place),
                lambda answer: archive.record(answer, place, self._crawl, self._inspector),
            )
        except BadAnswer as error:  # of this record; the archive itself answers
            _log.warning("record_lost", source=archive.name, why=str(error)[:300])
            return LOST
        if isinstance(page, str):
            _log.info("record_skipped", source=archive.name, why=page)
            return page
        hit = msgspec.structs.replace(page.hit, query_id=query.id, query=query.text)
        return "" if self._batch.add_page(dataclasses.replace(page, hit=hit)) else KNOWN

    def _skip(self, summary: RoundSummary, reason: str, count: int) -> None:
        summary.skipped_reasons[reason] += count
        self._turns.metrics.count(SEARCH_HITS, count, source=self.source.name, outcome="skipped")

    async def _flush(self, summary: RoundSummary, round_: Round | None = None) -> None:
        async with self._flushing:
            batch, self._batch = self._batch, HitBatch(self._partitions)

            def keep(outputs: Sequence[Output]) -> None:
                self.ledger.keep(round_, outputs)

            pages, known = await self._turns.with_log(lambda: batch.append(keep, self._imports))
        summary.pages += pages
        summary.hits += batch.hits + pages
        if known:
            self._skip(summary, KNOWN, known)
        self._turns.metrics.count(SEARCH_HITS, batch.hits + pages, source=self.source.name, outcome="appended")
