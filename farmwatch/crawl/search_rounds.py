"""`farmwatch hits search --source`: runs searches, once or as a daemon, appends their hits, and reports each round."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import KW_ONLY, asdict, dataclass
from functools import partial
from pathlib import Path

import msgspec
import structlog

from crawler.metrics import SEARCH_HITS, SEARCH_QUERIES
from crawler.sources.catalogue import open_source, settings_for
from crawler.sources.http_client import SourceClient
from crawler.sources.ledger import Ledger, Round, next_round
from crawler.sources.paced_client import PacedClient
from crawler.sources.queries import digest_of, read_queries
from crawler.sources.searcher import OUTCOMES, RoundSummary, Searcher
from crawler.sources.source import Query, Source
from crawler.sources.usage import PARK_CAP_S
from crawler.stages.hit_records import KnownHits
from farmwatch.config.config import Config
from farmwatch.config.opening import opened
from farmwatch.config.topic_limits import create_missing
from farmwatch.crawl.append_hits import input_lines
from farmwatch.crawl.archive_import import IMPORTS_LOCK, locks_folder
from farmwatch.crawl.deeper_queries import deeper_queries
from farmwatch.daemon import page_inspector
from farmwatch.daemon.endpoints import Endpoints, Exposition
from farmwatch.daemon.signals import signals_to
from farmwatch.metrics import ALL, SEARCH_ROUND_TIMESTAMP_SECONDS
from farmwatch.terminal.jsonl import STDIN
from farmwatch.terminal.messages import counting, message, put, put_json, start_logging
from stream.log.contract import Log
from stream.log.errors import StreamError
from stream.log.file_lock import file_lock
from stream.processing.health import Health
from stream.processing.metrics import Metrics
from stream.schema.roles import Role
from stream.text.user_errors import ConfigError, Exit, FarmwatchError, UsageError
from stream.text.wording import counted, moment, one_line

_log = structlog.get_logger()
PATIENCE_S = 120.0  # longest wait for a source in a search that runs once
_SLICE_S = 60.0  # longest sleep between checks of the schedule
_LOG_AWAY_S = 5.0
_REASONS = 5  # shown reasons of skipped results, the most frequent
_TABLES = frozenset({".csv", ".tsv"})


def run_search(
    config: Config, names: Sequence[str], file: Path, every_s: int | None, pages: int | None, *, as_json: bool
) -> int:
    """Search the sources for the queries of `file`, once or every `every_s` seconds; returns the exit code.

    `pages` overrides the setting. Raises as `open_source`, ConfigError, UsageError, LogUnavailable.
    """
    if every_s is not None and str(file) in STDIN:
        raise ConfigError("--every reads the queries again each round: give --queries a file, not standard input")
    sources = [open_source(config.search, name, os.environ) for name in names]
    for source in sources:
        if pages is not None and pages > source.pages_cap:
            raise UsageError(f"--pages {pages}: {source.name} gives {source.pages_cap} at most")
    queries, bad = queries_of(file)
    start_logging("info" if every_s is not None else "warning")
    with opened(config, create=True) as log, ExitStack() as held:
        create_missing(log, config)
        locks = locks_folder(config)
        runner = SearchRunner(config, log, locks, file, every_s, pages, as_json=as_json)
        if every_s is None:
            code = asyncio.run(runner.run_once(sources, queries))
            return Exit.PROBLEM if bad and code == Exit.OK else code
        for source in sources:
            if not held.enter_context(file_lock(locks / f"{source.name}.daemon.lock", wait=False)):
                raise FarmwatchError(f"another process searches {source.name} by a schedule on this log: one is enough")
        port = config.metrics.port + len(Role) if config.metrics.port else 0  # after those of the roles
        shown = Exposition(runner.metrics.registry, "search")
        held.enter_context(Endpoints(shown, runner.health, config.metrics.host, port))
        return asyncio.run(runner.run_scheduled(sources, queries))


@dataclass
class SearchRunner:
    """Runs several sources concurrently in one event loop. The errors of a source do not affect the others."""

    config: Config
    log: Log
    locks: Path  # folder of the locks between processes
    file: Path  # of the queries
    every_s: int | None = None  # between rounds; None = once
    pages: int | None = None  # of results; None = as set
    _: KW_ONLY
    as_json: bool

    def __post_init__(self) -> None:
        self.metrics = Metrics(ALL)
        self.stopping = asyncio.Event()  # ends the search between two requests
        self._interrupted = False
        self._states: dict[str, str] = {}
        self._imports = KnownHits(self.log, self.locks / IMPORTS_LOCK)

    def health(self) -> Health:
        """Always healthy; the detail has the state of each source."""
        return Health(True, True, "; ".join(f"{name}: {state}" for name, state in self._states.items()) or "starting")

    async def run_once(self, sources: Sequence[Source], queries: Sequence[Query]) -> int:
        """Send every query to every source once; returns the exit code. Raises the error of a source after all end."""
        started_ms = int(time.time() * 1000)
        kept = "what was found is kept; the next search begins anew"
        with self._ending_on_signals(kept), counting(len(queries) * len(sources), "queries") as advance:
            async with self._client() as client:
                rounds = [
                    self._searcher(source, client, PATIENCE_S).round(
                        queries, Round(started_ms=started_ms, total=len(queries)), kept=False, on_progress=advance
                    )
                    for source in sources
                ]
                ended = await asyncio.gather(*rounds, return_exceptions=True)
        summaries = [end for end in ended if isinstance(end, RoundSummary)]
        for summary in summaries:
            self._report(summary, len(queries))
        for end in ended:
            if isinstance(end, BaseException):
                raise end
        if self._interrupted:
            return Exit.INTERRUPTED
        faults = any(s.ended or s.outcomes["failed"] or s.outcomes["refused"] for s in summaries)
        return Exit.PROBLEM if faults else Exit.OK

    async def run_scheduled(self, sources: Sequence[Source], queries: Sequence[Query]) -> int:
        """Follow the schedule of every source until a signal; returns the exit code."""
        with self._ending_on_signals("the round continues at the next start"):
            async with self._client() as client:
                await asyncio.gather(*(self._run_source(source, client, queries) for source in sources))
        return Exit.OK

    async def _run_source(self, source: Source, client: SourceClient, queries: Sequence[Query]) -> None:
        while not self.stopping.is_set():
            try:
                await self._follow_schedule(source, client, queries)
            except StreamError as error:
                if error.retriable and self.stopping.is_set():
                    _log.warning("ended_without_log", source=source.name, error=str(error)[:300])
                elif not error.retriable:
                    raise
                else:
                    await self._sleep(_LOG_AWAY_S)
            except Exception:  # noqa: BLE001 - a bug in one source must not stop the others
                _log.exception("source_failed", source=source.name, again_in_s=PARK_CAP_S)
                self._states[source.name] = "failed"
                await self._sleep(PARK_CAP_S)

    async def _follow_schedule(self, source: Source, client: SourceClient, queries: Sequence[Query]) -> None:
        assert self.every_s is not None
        searcher = self._searcher(source, client, float("inf"))
        for outcome in OUTCOMES:
            self.metrics.touch(SEARCH_QUERIES, source=source.name, outcome=outcome)
        for outcome in ("appended", "skipped"):
            self.metrics.touch(SEARCH_HITS, source=source.name, outcome=outcome)
        logged_ms = 0
        while not self.stopping.is_set():
            try:
                queries, _ = queries_of(self.file, quiet=True)
            except FarmwatchError as error:
                _log.warning("queries_unreadable", error=str(error))
            now_ms = int(time.time() * 1000)
            last = searcher.ledger.round
            due_ms, round_ = next_round(last, digest_of(queries), len(queries), self.every_s, now_ms)
            if due_ms > now_ms:
                if logged_ms != (logged_ms := due_ms):
                    _log.info("next_round", source=source.name, at=moment(due_ms))
                self._states[source.name] = f"next round at {moment(due_ms)}"
                await self._sleep(min((due_ms - now_ms) / 1000, _SLICE_S))
                continue
            self._states[source.name] = f"round of {moment(round_.started_ms)}"
            before_ms = last.started_ms if last and last.finished else round_.started_ms - 1000 * self.every_s
            deeper = await asyncio.to_thread(self._deeper, source.name, before_ms, now_ms)
            summary = await searcher.round(queries, round_, kept=True, deeper=deeper)
            self._report(summary, len(queries) - round_.done)
            if not summary.ended:
                self.metrics.set(SEARCH_ROUND_TIMESTAMP_SECONDS, time.time(), source=source.name)
            elif summary.refused:
                _log.warning("source_refuses", source=source.name, again_in_s=PARK_CAP_S)
                self._states[source.name] = f"refused: {summary.ended}"
                await self._sleep(PARK_CAP_S)

    def _deeper(self, source: str, since_ms: int, now_ms: int) -> frozenset[str]:
        above = self.config.search.deepen_above
        if above >= 1:
            return frozenset()
        deeper = deeper_queries(self.log, self.config.rate, source, since_ms, now_ms, above)
        _log.info("round_deepens", source=source, queries=len(deeper))
        return deeper

    def _searcher(self, source: Source, client: SourceClient, patience_s: float) -> Searcher:
        settings = settings_for(self.config.search, source.name)
        if self.pages is not None:
            settings = msgspec.structs.replace(settings, pages=self.pages)
        paced = PacedClient(
            source,
            settings,
            Ledger(self.log, source.name, partial(file_lock, self.locks / f"{source.name}.lock"), time.time),
            client.ask,
            clock=time.time,
            sleep=self._sleep,
            stopped=self.stopping.is_set,
            metrics=self.metrics,
            patience_s=patience_s,
        )
        return Searcher(paced, self.config.log.partitions, self._imports, self.config.crawl, page_inspector)

    def _client(self) -> SourceClient:
        crawl = self.config.crawl
        return SourceClient(crawl.user_agent if crawl.contact else crawl.name, time.time)

    def _ending_on_signals(self, then: str) -> AbstractContextManager[None]:
        """Let SIGTERM and SIGINT end the search between two requests, and a second signal end it at once."""
        loop, came = asyncio.get_running_loop(), threading.Event()

        def end(number: signal.Signals) -> None:
            if came.is_set():
                os._exit(Exit.INTERRUPTED)  # safe: appended hits are complete
            came.set()
            self._interrupted = number == signal.SIGINT
            message(f"farmwatch: stopping; {then}. Once more ends it at once")
            loop.call_soon_threadsafe(self.stopping.set)

        return signals_to(end)

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), seconds)

    def _report(self, summary: RoundSummary, wanted: int) -> None:
        """Report a round of `wanted` queries: as a line, a JSON object, or an event in the log of a daemon."""
        if self.as_json:
            fields = {name: value for name, value in asdict(summary).items() if name != "refused"}
            counts = {"outcomes": dict(summary.outcomes), "skipped_reasons": dict(summary.skipped_reasons)}
            put_json({**fields, **counts, "skipped": summary.skipped, "unasked": wanted - summary.queries})
        elif self.every_s is not None:
            _log.info("round_ended", source=summary.source, result=one_line(_sentence(summary, wanted)))
        else:
            put(one_line(f"{summary.source}: {_sentence(summary, wanted)}"))
        if not summary.ended:
            return
        if self.every_s is not None:
            _log.warning("round_broken_off", source=summary.source, why=one_line(summary.ended))
        else:
            message(f"farmwatch: {one_line(summary.ended)}")


def _sentence(summary: RoundSummary, wanted: int) -> str:
    sent = f"{summary.queries} of {wanted}" if summary.queries < wanted else str(summary.queries)
    parts = [f"{sent} {'query' if wanted == 1 else 'queries'} asked", f"{counted(summary.hits, 'hit')} appended"]
    if summary.pages:
        parts.append(f"{counted(summary.pages, 'page')} imported")
    if summary.skipped:
        reasons = ", ".join(f"{reason} {count}" for reason, count in summary.skipped_reasons.most_common(_REASONS))
        parts.append(f"{counted(summary.skipped, 'result')} skipped ({reasons})")
    parts += [f"{summary.outcomes[kind]} {kind}" for kind in OUTCOMES if kind != "found" and summary.outcomes[kind]]
    if summary.left is not None:
        parts.append(f"{counted(summary.left, 'request')} left")
    if summary.unresponsive:
        parts.append("did not answer: " + ", ".join(sorted(summary.unresponsive)))
    return ", ".join(parts)


def queries_of(file: Path, *, quiet: bool = False) -> tuple[list[Query], int]:
    """The queries of a file, and the number of lines without one, which are reported. Raises FarmwatchError."""
    with input_lines(file) as lines:
        queries, bad = read_queries(lines, is_table=not _TABLES.isdisjoint(file.suffixes))
    for line in () if quiet else bad:
        message(f"{file}: line {line.number}: {one_line(line.reason)}")
    if not queries:
        raise FarmwatchError(f"{file}: no query in the file")
    return queries, len(bad)
