"""The requests of one source: each waits for its turn and is counted before it starts; failures are retried."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import TypeVar

import structlog

from crawler.metrics import SEARCH_PARKED_TIMESTAMP_SECONDS, SEARCH_QUOTA_LEFT, SEARCH_UNRESPONSIVE_ENGINES
from crawler.sources import usage as using
from crawler.sources.ledger import Ledger
from crawler.sources.settings import SourceSettings
from crawler.sources.source import Source, SourceAnswer, SourceError, SourceRequest
from crawler.sources.usage import Usage
from stream.log.errors import StreamError
from stream.processing.metrics import Metrics
from stream.text.wording import moment

_log = structlog.get_logger()
_SLICE_S = 60.0  # a long wait is checked this often: another process may have ended it
_LOGGED_S = 10.0  # longer waits are logged
_LOG_AWAY_S = 5.0  # between attempts while the log is away
_LOOK_S = 0.25  # between checks for the shutdown, while a request is in flight
_GRACE_S = 2.0  # for a request in flight at the shutdown

T = TypeVar("T")


class RoundEnded(Exception):
    """Control flow: the round ends. `refused`: waiting does not help."""

    def __init__(self, why: str, refused: bool = False) -> None:
        super().__init__(why)
        self.refused = refused


@dataclass(slots=True)
class PacedClient:
    """Sends requests to one source, in turn."""

    source: Source
    settings: SourceSettings
    ledger: Ledger
    send: Callable[[SourceRequest, float], Awaitable[SourceAnswer]]  # `SourceClient.ask`
    _: KW_ONLY
    clock: Callable[[], float]  # Unix time in seconds
    sleep: Callable[[float], Awaitable[None]]  # may end early
    stopped: Callable[[], bool]
    metrics: Metrics
    patience_s: float = float("inf")  # a longer wait ends the round
    tries: int = 5  # attempts at a result page until its query is given up
    timeout_s: float = 30.0  # until a request times out
    draw: Callable[[], float] = random.random  # numbers from 0 to 1
    _turns: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)  # one request starts at a time
    _door: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)  # one change of the ledger at a time

    async def ask(self, request: SourceRequest, read: Callable[[SourceAnswer], T]) -> T:
        """Send a request until its response can be read. Raises SourceError after `tries`, RoundEnded."""
        failures = 0
        while True:
            asked_s = await self._turn()
            try:
                answer = read(await self._unless_stopped(request))
            except SourceError as error:
                if not error.retriable:
                    raise
                failures += 1
                why, wait = str(error), error.wait_s
                await self.change(
                    partial(using.parked, why=why, wait_s=wait, asked_s=asked_s, now_s=self.clock(), draw=self.draw)
                )
                until = moment(self.ledger.usage.parked_ms)
                _log.warning("source_parked", source=self.source.name, why=why, failures=failures, until=until)
                if failures >= self.tries:
                    raise
            else:
                if self.ledger.usage.park_level:
                    await self.change(using.calmed)
                return answer

    async def change(self, change: Callable[[Usage], Usage]) -> None:
        async with self._door:
            await self.with_log(lambda: self.ledger.change(change))
        usage, name, now_s = self.ledger.usage, self.source.name, self.clock()
        left = using.left(usage, self.settings, now_s)
        if left is not None:
            self.metrics.set(SEARCH_QUOTA_LEFT, left, source=name)
        self.metrics.set(SEARCH_PARKED_TIMESTAMP_SECONDS, usage.parked_ms / 1000, source=name)
        self.metrics.set(SEARCH_UNRESPONSIVE_ENGINES, len(usage.unresponsive), source=name)

    async def with_log(self, act: Callable[[], T]) -> T:
        """Run `act` off the event loop; while the log is unavailable, a patient caller retries.

        Raises StreamError if waiting does not help, the caller is not patient, or the end is requested.
        """
        while True:
            try:
                return await asyncio.to_thread(act)
            except StreamError as error:
                if not error.retriable or self.patience_s != float("inf") or self.stopped():
                    raise
                _log.warning("log_away", source=self.source.name, error=str(error)[:300])
            await self.sleep(_LOG_AWAY_S)

    async def _turn(self) -> float:
        """Wait for the next request's turn and count it; returns its time. Raises RoundEnded."""
        logged = ""
        async with self._turns:
            while True:
                if self.stopped():
                    raise RoundEnded("stopped")
                now_s, free_s, why = await self._take_turn()
                wait_s = free_s - now_s
                if wait_s <= 0:
                    return now_s
                if wait_s > self.patience_s:
                    raise RoundEnded(f"{why} until {moment(int(free_s * 1000))}")
                if wait_s > _LOGGED_S and logged != (logged := moment(int(free_s * 1000))):
                    _log.warning("waiting", source=self.source.name, why=why, until=logged)
                await self.sleep(min(wait_s, _SLICE_S))

    async def _take_turn(self) -> tuple[float, float, str]:
        """The time, when a request may start, and what it waits for. A request that may start now is counted."""
        name, settings = self.source.name, self.settings
        now_s = free_s = 0.0
        why = ""

        def take(usage: Usage) -> Usage:
            nonlocal now_s, free_s, why
            usage = using.with_key(usage, self.source.key_mark)
            now_s = self.clock()
            free_s = using.renewed_s(usage, settings, now_s)
            if free_s > now_s:
                why = f"{name} has no request left"
                return usage
            free_s = using.free_s(usage, settings, now_s)
            why = f"{name} is left alone ({usage.parked_why or 'its rate'})"
            return using.counted(usage, now_s) if free_s <= now_s else usage

        await self.change(take)
        return now_s, free_s, why

    async def _unless_stopped(self, request: SourceRequest) -> SourceAnswer:
        """The response; if the end is requested meanwhile, waits only briefly. Raises SourceError, RoundEnded."""
        asking = asyncio.ensure_future(self.send(request, self.timeout_s))
        try:
            while not (await asyncio.wait({asking}, timeout=_LOOK_S))[0]:
                if self.stopped() and not (await asyncio.wait({asking}, timeout=_GRACE_S))[0]:
                    raise RoundEnded("stopped")
            return asking.result()
        finally:
            asking.cancel()
