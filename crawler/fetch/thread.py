"""The asyncio side of CRAWL: a thread with an event loop that runs jobs, and a queue of results for the stage.

The stage is synchronous: it submits, collects and cancels.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Collection, Mapping
from functools import partial
from typing import NamedTuple

import structlog

from crawler.fetch.fetcher import Fetcher
from crawler.fetch.jobs import FetchResult, Job

_log = structlog.get_logger()

_CLOSE_S = 5.0  # how long close() waits for the thread


class ClaimResult(NamedTuple):
    """A result, and the claim of its job."""

    claim: int
    answer: FetchResult


class FetchThread:
    """Runs jobs of a fetcher concurrently. Its methods are for one thread, the stage's."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._done: queue.SimpleQueue[ClaimResult] = queue.SimpleQueue()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._opened = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fetch", daemon=True)
        self._thread.start()
        self._opened.wait()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def waiting(self) -> int:
        return self._fetcher.waiting

    def submit(self, jobs: Mapping[int, Job]) -> None:
        """Start jobs; their numbers identify them in `collect` and `cancel`."""
        if jobs:
            self._loop.call_soon_threadsafe(self._begin, jobs)

    def share(self, fraction: float) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._fetcher.share, fraction)

    def hold(self, *, held: bool) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(partial(self._fetcher.hold, held=held))

    def collect(self) -> list[ClaimResult]:
        return [self._done.get_nowait() for _ in range(self._done.qsize())]

    def cancel(self, claims: Collection[int]) -> None:
        if claims and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._break_off, claims)

    def close(self) -> None:
        """Cancel all jobs and end the thread, within seconds."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_CLOSE_S)

    def _begin(self, jobs: Mapping[int, Job]) -> None:
        for claim, job in jobs.items():
            self._tasks[claim] = self._loop.create_task(self._do(claim, job))

    def _break_off(self, claims: Collection[int]) -> None:
        for claim in claims:
            if claim in self._tasks:
                self._tasks[claim].cancel()

    async def _do(self, claim: int, job: Job) -> None:
        try:
            self._done.put(ClaimResult(claim, await self._fetcher.fetch(job, wait=False)))
        finally:
            self._tasks.pop(claim, None)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except Exception:  # noqa: BLE001 - the log of the process has it
            _log.exception("fetch_thread_ended")
        finally:
            self._opened.set()

    async def _serve(self) -> None:
        async with self._fetcher:
            self._opened.set()
            await self._stop.wait()
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
