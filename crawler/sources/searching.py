"""One source at work: its turns, its failures, and a round of queries. Around it: the log, a clock, an HTTP client."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol, TypeVar

import msgspec
import structlog

from crawler.errors import UnusableUrl
from crawler.sources import usage as using
from crawler.sources.commoncrawl import CommonCrawl
from crawler.sources.ledger import Ledger, Round
from crawler.sources.recording import hit_output, page_outputs
from crawler.sources.settings import SourceSettings
from crawler.sources.source import (
    Answer,
    Found,
    Query,
    QuotaSpent,
    Request,
    Results,
    Source,
    SourceError,
    SourceRefused,
)
from crawler.sources.usage import Usage
from crawler.warc_in import ArchivedPage
from stream.errors import StreamError
from stream.log import Output
from stream.metrics import Metrics

_log = structlog.get_logger()
_SLICE_S = 60.0  # a long wait is looked at again so often: another process may have changed what is waited for
_LOG_AWAY_S = 5.0  # between attempts while the log is away
_FLUSH_BYTES = 4 * 1024 * 1024  # of records that wait to be appended
OUTCOMES = ("found", "empty", "refused", "failed")

T = TypeVar("T")


class Client(Protocol):
    """What makes requests, see `crawler.sources.asking.Asker`."""

    async def ask(self, request: Request, timeout_s: float) -> Answer:
        """The answer, whatever its status. Raises SourceError."""


@dataclass(slots=True)
class Summary:
    """What a round came to. `ended` says why it was broken off; "" = every query was dealt with."""

    source: str
    queries: int = 0
    hits: int = 0
    pages: int = 0  # imported
    skipped: int = 0  # results that could not be used
    outcomes: Counter[str] = field(default_factory=Counter)
    unresponsive: dict[str, str] = field(default_factory=dict)
    left: int | None = None
    ended: str = ""
    refused: bool = False  # the source refuses everything: waiting does not mend it


class _Ended(Exception):
    """Not an error: the round cannot go on now."""

    def __init__(self, why: str, refused: bool = False) -> None:
        super().__init__(why)
        self.refused = refused


class Searcher:
    """Asks one source. One round at a time."""

    def __init__(
        self,
        source: Source,
        settings: SourceSettings,
        ledger: Ledger,
        client: Client,
        partitions: int,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        stopped: Callable[[], bool],
        metrics: Metrics,
        patience_s: float = float("inf"),
        draw: Callable[[], float] = random.random,
    ) -> None:
        """`clock` is Unix time in seconds; `sleep` may end early; a wait beyond `patience_s` ends the round.

        `draw` gives numbers from 0 to 1.
        """
        self.source = source
        self._settings = settings
        self.ledger = ledger
        self._client = client
        self._partitions = partitions
        self._clock = clock
        self._sleep = sleep
        self._stopped = stopped
        self._metrics = metrics
        self._patience_s = patience_s
        self._draw = draw
        self._turns = asyncio.Lock()  # who asks next
        self._door = asyncio.Lock()  # to the ledger
        self._waiting: list[Output] = []
        self._waiting_bytes = 0

    async def round(
        self,
        queries: Sequence[Query],
        round_: Round,
        *,
        kept: bool,
        told: Callable[[int], None] = lambda _: None,
    ) -> Summary:
        """Ask the queries from `round_.done` on; `kept` writes into the log how far it is.

        `told` hears how many queries were dealt with since.

        Raises StreamError where the log is away and `patience_s` is finite.
        """
        summary = Summary(self.source.name)
        done = round_.done
        at_once = int(getattr(self._settings, "at_once", 1))
        while done < len(queries) and not summary.ended:
            if self._stopped():
                summary.ended = "stopped"
                break
            window = queries[done : done + at_once]
            ended = await asyncio.gather(*(self._query(query, round_.started_ms, summary) for query in window))
            whole = next((place for place, end in enumerate(ended) if end is not None), len(window))
            done += whole
            summary.queries += whole
            first = next((end for end in ended if end is not None), None)
            if first is not None:
                summary.ended, summary.refused = str(first), first.refused
            await self._flush(msgspec.structs.replace(round_, done=done) if kept else None)
            told(whole)
        usage = self.ledger.usage
        summary.left = using.left(usage, self._settings, self._clock())
        summary.unresponsive = dict(usage.unresponsive)
        return summary

    async def _query(self, query: Query, started_ms: int, summary: Summary) -> _Ended | None:
        """Ask all result pages of a query. Returns why it was not finished."""
        found = 0
        outcome = ""
        places = 0
        try:
            for page in range(1, min(self._settings.pages, self.source.pages_cap) + 1):
                results = await self._results(query, page)
                found += await self._take(query, page, places, results, started_ms, summary)
                places += results.places
                if not results.more:
                    break
        except _Ended as end:
            return end
        except SourceRefused as error:
            return _Ended(str(error), refused=True)
        except SourceError as error:
            outcome = "failed" if error.retriable else "refused"
            _log.warning("query_given_up", source=self.source.name, query_id=query.id[:200], error=str(error))
        outcome = outcome or ("found" if found else "empty")
        summary.outcomes[outcome] += 1
        self._metrics.count("search_queries", source=self.source.name, outcome=outcome)
        return None

    async def _results(self, query: Query, page: int) -> Results:
        results = await self._ask(self.source.request(query, page), lambda answer: self.source.results(answer, page))
        await self._change(
            lambda usage: using.answered(
                usage, results.left, results.reset_s, dict(results.unresponsive), self._clock()
            )
        )
        return results

    async def _ask(self, request: Request, read: Callable[[Answer], T]) -> T:
        """Ask until there is an answer that can be read. Raises SourceError after `tries`, _Ended."""
        for attempt in range(1, self._settings.tries + 1):
            asked_s = await self._turn()
            try:
                answer = read(await self._client.ask(request, self._settings.timeout_s))
            except QuotaSpent as error:
                wait_s = error.wait_s or using.PARK_CAP_S
                await self._change(lambda usage, w=wait_s: using.spent(usage, self._clock(), w))  # type: ignore[misc]
                last: SourceError = error
            except SourceError as error:
                if not error.retriable:
                    raise
                last = error
                why, wait = str(error), error.wait_s
                await self._change(
                    lambda usage, why=why, wait=wait, asked_s=asked_s: using.parked(  # type: ignore[misc]
                        usage, why, wait, asked_s, self._clock(), self._draw
                    )
                )
                _log.warning(
                    "source_parked", source=self.source.name, why=why, attempt=attempt, until=self._parked_until()
                )
            else:
                if self.ledger.usage.park_level:
                    await self._change(using.calmed)
                return answer
        raise last

    async def _turn(self) -> float:
        """Wait for the next request's place and count it; returns its time. Raises _Ended."""
        async with self._turns:
            while True:
                if self._stopped():
                    raise _Ended("stopped")
                async with self._door:
                    await self._with_log(self.ledger.refresh)
                    now_s, usage = self._clock(), self.ledger.usage
                    why, until_s = self._next(usage, now_s)
                    if until_s <= now_s:
                        await self._keep(using.counted(usage, now_s))
                        return now_s
                if until_s - now_s > self._patience_s:
                    raise _Ended(f"{why} until {_moment(until_s)}")
                await self._sleep(min(until_s - now_s, _SLICE_S))

    def _next(self, usage: Usage, now_s: float) -> tuple[str, float]:
        """What is waited for, and until when."""
        renewed_s = using.renewed_s(usage, self._settings, now_s)
        if renewed_s > now_s:
            return f"{self.source.name} has no request left", renewed_s
        return f"{self.source.name} is left alone ({usage.parked_why or 'its rate'})", using.free_s(
            usage, self._settings, now_s
        )

    async def _change(self, change: Callable[[Usage], Usage]) -> None:
        async with self._door:
            await self._with_log(self.ledger.refresh)
            changed = change(self.ledger.usage)
            if changed != self.ledger.usage:
                await self._keep(changed)

    async def _keep(self, usage: Usage) -> None:
        await self._with_log(lambda: self.ledger.keep(usage))
        name, now_s = self.source.name, self._clock()
        left = using.left(usage, self._settings, now_s)
        if left is not None:
            self._metrics.set("search_quota_left", left, source=name)
        self._metrics.set("search_parked_timestamp_seconds", usage.parked_ms / 1000, source=name)
        self._metrics.set("search_unresponsive_engines", len(usage.unresponsive), source=name)

    async def _take(
        self, query: Query, page: int, places: int, results: Results, started_ms: int, summary: Summary
    ) -> int:
        """Make records of results; returns how many hits there were."""
        bad = len(results.bad)
        hits = 0
        for found in results.found:
            if found.place is not None:
                outputs = await self._imported(query, found)
                summary.pages += bool(outputs)
            else:
                outputs = self._hit(query, page, places, found, started_ms)
            hits += bool(outputs)
            bad += not outputs
            await self._hold(outputs)
        summary.hits += hits
        summary.skipped += bad
        self._metrics.count("search_hits", hits, source=self.source.name, outcome="appended")
        self._metrics.count("search_hits", bad, source=self.source.name, outcome="skipped")
        return hits

    def _hit(self, query: Query, page: int, places: int, found: Found, started_ms: int) -> list[Output]:
        """The hit of a result; none where it cannot be one."""
        rank, now_ms = places + found.rank, int(self._clock() * 1000)
        try:
            return [hit_output(self.source.name, query, found, page, rank, started_ms, now_ms, self._partitions)]
        except (UnusableUrl, ValueError) as error:
            _log.info("result_skipped", source=self.source.name, rank=rank, why=str(error)[:200])
            return []

    async def _imported(self, query: Query, found: Found) -> list[Output]:
        """The page and the hit of a record of an archive; none where it holds no page, or could not be had."""
        place = found.place
        assert place is not None and isinstance(self.source, CommonCrawl)
        archive = self.source
        try:
            page = await self._ask(archive.record_request(place), lambda answer: archive.record(answer, place))
        except SourceRefused:
            raise
        except SourceError as error:
            page = str(error)
        if not isinstance(page, ArchivedPage):
            _log.info("record_skipped", source=archive.name, why=page[:200])
            return []
        return page_outputs(query, page, self._partitions)

    async def _hold(self, outputs: list[Output]) -> None:
        self._waiting += outputs
        self._waiting_bytes += sum(len(output.value or b"") for output in outputs)
        if self._waiting_bytes > _FLUSH_BYTES:
            await self._flush(None)

    async def _flush(self, round_: Round | None) -> None:
        async with self._door:
            outputs, self._waiting, self._waiting_bytes = self._waiting, [], 0
            await self._with_log(lambda: self.ledger.keep(round_=round_, outputs=outputs))

    async def _with_log(self, act: Callable[[], None]) -> None:
        """Do it off the event loop; while the log is away, a patient searcher tries again, even when it is to stop."""
        while True:
            try:
                return await asyncio.to_thread(act)
            except StreamError as error:
                if not error.retriable or self._patience_s != float("inf"):
                    raise
                if self._stopped():
                    raise
                _log.warning("log_away", source=self.source.name, error=str(error)[:300])
            await self._sleep(_LOG_AWAY_S)

    def _parked_until(self) -> str:
        return _moment(self.ledger.usage.parked_ms / 1000)


def _moment(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
