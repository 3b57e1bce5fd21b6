"""`farmwatch search --source`: wires sources to the log, once or as a daemon, and says what came of each round."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import structlog

from crawler.settings import CrawlSettings
from crawler.sources.asking import Asker
from crawler.sources.ledger import Ledger, Round
from crawler.sources.opening import open_source, settings_for, with_pages
from crawler.sources.queries import digest_of, read_queries
from crawler.sources.schedule import next_round
from crawler.sources.searching import OUTCOMES, Searcher, Summary
from crawler.sources.source import Query, Source
from crawler.sources.usage import PARK_CAP_S
from farmwatch.config import Config
from farmwatch.endpoints import Endpoints
from farmwatch.errors import ConfigError, Exit, FarmwatchError
from farmwatch.hits import STDIN, binary_input
from farmwatch.messages import counted, message, one_line, put, put_json, start_logging
from farmwatch.options import opened
from farmwatch.progress import counting
from farmwatch.role_names import Role
from farmwatch.roles import create_topics
from stream.log import Log
from stream.metrics import Metrics
from stream.watching import Health

_log = structlog.get_logger()
PATIENCE_S = 120.0  # a search by hand waits no longer than this for a source
_SLICE_S = 60.0  # longest sleep between looks at the schedule

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for: sources, queries, seconds between rounds (None = once), result pages (None = as set)."""

    sources: Sequence[str]
    queries: Path
    every_s: int | None
    pages: int | None


def run_search(config: Config, wanted: Wanted, *, as_json: bool, environment: Mapping[str, str] = os.environ) -> int:
    """Ask the sources; returns the exit code. Raises as `open_source`, ConfigError, LogUnavailable."""
    if wanted.every_s is not None and str(wanted.queries) in STDIN:
        raise ConfigError("--every reads the queries again each round: give --queries a file, not standard input")
    sources = [open_source(config.search, name, environment, config.crawl) for name in wanted.sources]
    queries = _queries(wanted.queries)
    start_logging("info" if wanted.every_s is not None else "warning")
    with opened(config, create=True) as log:
        create_topics(log, config)
        desk = Desk(config, wanted, log, as_json=as_json)
        if wanted.every_s is None:
            return asyncio.run(desk.once(sources, queries))
        with ExitStack() as served:
            endpoints = Endpoints(desk.metrics.registry, desk.health, config.metrics.host, _port(config))
            endpoints.start()
            served.callback(endpoints.close)
            return asyncio.run(desk.always(sources, queries))


class Desk:
    """Runs the sources beside each other in one event loop. What one of them meets does not touch the others."""

    def __init__(
        self, config: Config, wanted: Wanted, log: Log, *, as_json: bool, clock: Callable[[], float] = time.time
    ) -> None:
        """`clock` is Unix time in seconds."""
        self.metrics = Metrics()
        self._config = config
        self._wanted = wanted
        self._log = log
        self._as_json = as_json
        self._clock = clock
        self._stop: asyncio.Event | None = None
        self._states: dict[str, str] = {}

    def health(self) -> Health:
        """Well as long as it runs; what each source does stands in the detail."""
        return Health(True, True, "; ".join(f"{name}: {state}" for name, state in self._states.items()) or "starting")

    async def once(self, sources: Sequence[Source], queries: Sequence[Query]) -> int:
        """Ask every query of every source once; returns the exit code."""
        self._listen()
        started_ms = int(self._clock() * 1000)
        with counting(len(queries) * len(sources), "queries") as advance:
            async with self._client() as client:
                rounds = [
                    self._searcher(source, client, PATIENCE_S).round(
                        queries, Round(started_ms=started_ms, total=len(queries)), kept=False, told=advance
                    )
                    for source in sources
                ]
                summaries = await asyncio.gather(*rounds)
        for summary in summaries:
            self._tell(summary, len(queries))
        whole = all(not summary.ended and not summary.outcomes["failed"] for summary in summaries)
        refused = any(summary.outcomes["refused"] for summary in summaries)
        return Exit.OK if whole and not refused else Exit.PROBLEM

    async def always(self, sources: Sequence[Source], queries: Sequence[Query]) -> int:
        """Keep the schedule of every source until a signal; returns the exit code."""
        self._listen()
        async with self._client() as client:
            await asyncio.gather(*(self._keep(source, client, queries) for source in sources))
        return Exit.OK

    async def _keep(self, source: Source, client: Asker, queries: Sequence[Query]) -> None:
        """The schedule of one source."""
        assert self._wanted.every_s is not None
        searcher = self._searcher(source, client, float("inf"))
        for outcome in OUTCOMES:
            self.metrics.touch("search_queries", source=source.name, outcome=outcome)
        for outcome in ("appended", "skipped"):
            self.metrics.touch("search_hits", source=source.name, outcome=outcome)
        while not self._stopped():
            ledger = searcher.ledger
            queries = self._again(queries)
            now_ms = int(self._clock() * 1000)
            due_ms, round_ = next_round(ledger.round, digest_of(queries), len(queries), self._wanted.every_s, now_ms)
            if due_ms > now_ms:
                self._states[source.name] = f"next round at {_moment(due_ms / 1000)}"
                await self._sleep(min((due_ms - now_ms) / 1000, _SLICE_S))
                continue
            self._states[source.name] = f"round of {_moment(round_.started_ms / 1000)}"
            summary = await searcher.round(queries, round_, kept=True)
            self._tell(summary, len(queries) - round_.done)
            if not summary.ended:
                self.metrics.set("search_round_timestamp_seconds", self._clock(), source=source.name)
            elif summary.refused:
                self._states[source.name] = f"refused: {summary.ended}"
                await self._rest(PARK_CAP_S)

    async def _rest(self, seconds: float) -> None:
        until = self._clock() + seconds
        while not self._stopped() and (left := until - self._clock()) > 0:
            await self._sleep(min(left, _SLICE_S))

    def _searcher(self, source: Source, client: Asker, patience_s: float) -> Searcher:
        return Searcher(
            source,
            with_pages(settings_for(self._config.search, source.name), self._wanted.pages),
            Ledger(self._log, source.name),
            client,
            self._config.log.partitions,
            clock=self._clock,
            sleep=self._sleep,
            stopped=self._stopped,
            metrics=self.metrics,
            patience_s=patience_s,
        )

    def _client(self) -> Asker:
        crawl: CrawlSettings = self._config.crawl
        return Asker(crawl.user_agent if crawl.contact else crawl.name, self._clock)

    def _again(self, queries: Sequence[Query]) -> Sequence[Query]:
        """The queries as the file has them now; those before where it cannot be read."""
        try:
            return _queries(self._wanted.queries, quiet=True)
        except FarmwatchError as error:
            _log.warning("queries_unreadable", error=str(error))
            return queries

    def _listen(self) -> None:
        """From now on SIGTERM and SIGINT end the search between two queries."""
        self._stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError, RuntimeError, ValueError):  # outside of the main thread
                loop.add_signal_handler(number, self._stop.set)

    def _stopped(self) -> bool:
        return self._stop is not None and self._stop.is_set()

    async def _sleep(self, seconds: float) -> None:
        """Until the time has passed, or the end is wanted."""
        assert self._stop is not None
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)

    def _tell(self, summary: Summary, wanted: int) -> None:
        """One line, or one JSON object, of a round."""
        if self._as_json:
            said = {name: value for name, value in asdict(summary).items() if name != "refused"}
            put_json({**said, "outcomes": dict(summary.outcomes), "unasked": wanted - summary.queries})
            return
        put(one_line(_sentence(summary, wanted)))
        if summary.ended and summary.ended != "stopped":
            message(f"farmwatch: {one_line(summary.ended)}")


def _sentence(summary: Summary, wanted: int) -> str:
    asked = f"{summary.queries} of {wanted}" if summary.queries < wanted else str(summary.queries)
    said = [f"{asked} {'query' if wanted == 1 else 'queries'} asked", f"{counted(summary.hits, 'hit')} appended"]
    if summary.pages:
        said.append(f"{counted(summary.pages, 'page')} imported")
    if summary.skipped:
        said.append(f"{counted(summary.skipped, 'result')} skipped")
    said += [f"{summary.outcomes[kind]} {kind}" for kind in OUTCOMES if kind != "found" and summary.outcomes[kind]]
    if summary.left is not None:
        said.append(f"{counted(summary.left, 'request')} left")
    if summary.unresponsive:
        said.append("did not answer: " + ", ".join(sorted(summary.unresponsive)))
    return f"{summary.source}: {', '.join(said)}"


def _queries(file: Path, *, quiet: bool = False) -> list[Query]:
    """The queries of a file; lines that hold none are told on stderr. Raises FarmwatchError where there is none."""
    with binary_input(file) as lines:
        queries, bad = read_queries(lines)
    for line in () if quiet else bad:
        message(f"{file}: line {line.number}: {one_line(line.reason)}")
    if not queries:
        raise FarmwatchError(f"{file}: no query in it")
    return queries


def _port(config: Config) -> int:
    """Port of /metrics: behind those of the roles; 0 = any."""
    return config.metrics.port + len(Role) if config.metrics.port else 0


def _moment(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at_s))
