"""A source without network or waiting: a function answers the client, and `sleep` moves the clock."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Container, Sequence
from contextlib import nullcontext
from typing import Any

from crawler.settings import CrawlSettings
from crawler.sources.ledger import Exclusion, Ledger, Round
from crawler.sources.paced_client import PacedClient
from crawler.sources.queries import digest_of
from crawler.sources.searcher import RoundSummary, Searcher
from crawler.sources.settings import SourceSettings
from crawler.sources.source import Query, Source, SourceAnswer, SourceRequest
from crawler.stages.hit_records import KnownHits
from stream.log.contract import Log
from stream.processing.metrics import Metrics
from stream.schema.records import Hit, decode
from stream.schema.topics import HITS

PARTITIONS = 2
NOON = 1_763_812_800.0  # 2025-11-22 12:00 UTC

Answering = Callable[[SourceRequest], SourceAnswer | Exception]


class Desk:
    """Everything around a `Searcher`; each `run` makes a new one on the same log, as after a restart."""

    def __init__(
        self, log: Log, source: Source, settings: SourceSettings, answering: Answering, tries: int = 5
    ) -> None:
        self.log = log
        self.source = source
        self.settings = settings
        self.answering = answering
        self.tries = tries
        self.now = NOON
        self.asked: list[float] = []
        self.stop_after: int | None = None
        self.under_way = 0
        self.most_under_way = 0
        self.together = 1  # an answer waits until this many requests are in flight, for five seconds at most
        self.metrics = Metrics()
        self.exclusive: Exclusion = nullcontext

    async def ask(self, request: SourceRequest, timeout_s: float) -> SourceAnswer:
        """Answer once other requests could begin."""
        assert timeout_s > 0
        self.asked.append(self.now)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0)
        until = time.monotonic() + 5.0
        while self.most_under_way < self.together and time.monotonic() < until:
            await asyncio.sleep(0.001)
        self.under_way -= 1
        answer = self.answering(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.now += seconds
        await asyncio.sleep(0)

    def stopped(self) -> bool:
        return self.stop_after is not None and len(self.asked) >= self.stop_after

    def searcher(self, patience_s: float = float("inf")) -> Searcher:
        """A searcher in a new process."""
        turns = PacedClient(
            self.source,
            self.settings,
            Ledger(self.log, self.source.name, self.exclusive, lambda: self.now),
            self.ask,
            clock=lambda: self.now,
            sleep=self.sleep,
            stopped=self.stopped,
            metrics=self.metrics,
            patience_s=patience_s,
            tries=self.tries,
            draw=lambda: 1.0,
        )
        return Searcher(turns, PARTITIONS, KnownHits(self.log), CrawlSettings())

    def run(
        self, queries: Sequence[Query], patience_s: float = float("inf"), kept: bool = True, deeper: Container[str] = ()
    ) -> RoundSummary:
        """A round; an interrupted one is resumed."""

        async def go() -> RoundSummary:
            searcher = self.searcher(patience_s)
            new = Round(started_ms=int(self.now * 1000), queries=digest_of(queries), total=len(queries))
            last = searcher.ledger.round
            round_ = new if last is None or last.finished else last
            return await searcher.round(queries, round_, kept=kept, deeper=deeper)

        return asyncio.run(go())

    def hits(self) -> list[Hit]:
        return [decode(Hit, m.value or b"") for p in range(PARTITIONS) for m in self.log.read(HITS, p)]


def answer(value: Any, at_s: float = NOON, status: int = 200) -> SourceAnswer:
    return SourceAnswer(status, {}, json.dumps(value).encode(), at_s)
