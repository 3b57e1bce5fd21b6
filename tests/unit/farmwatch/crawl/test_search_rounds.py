"""The runner of `farmwatch hits search`: an error of one source does not affect the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from crawler.sources.brave import Brave
from crawler.sources.json_http import JsonHttp
from crawler.sources.settings import BraveSettings, JsonHttpSettings, SearchSettings
from crawler.sources.source import Query, Source, SourceRequest
from farmwatch.config.config import Config
from farmwatch.crawl.search_rounds import SearchRunner
from stream.log.contract import Output
from stream.log.errors import LogUnavailable
from stream.memory.log import MemoryLog
from stream.schema.topics import all_topics
from stream.text.user_errors import Exit
from tests.support.web.search_engines import BRAVE, Engine, says

QUERIES = [Query("garden", "garden")]


class _Broken(Brave):
    """A source with a bug."""

    def request(self, query: Query, page: int) -> SourceRequest:
        """Fail with an unexpected error."""
        raise ZeroDivisionError


class _AwayLog(MemoryLog):
    """A log that can be unavailable; `refused` counts appends meanwhile."""

    away = False
    refused = 0

    def append(self, outputs: Sequence[Output]) -> list[int]:
        """Fail while the log is away."""
        if self.away:
            self.refused += 1
            raise LogUnavailable("the broker is away")
        return super().append(outputs)


def _runner(log: MemoryLog, engine: Engine, tmp_path: Path, every_s: int | None) -> SearchRunner:
    search = SearchSettings(brave=BraveSettings(rate=100.0), json_http={"mine": _mine(engine)})
    (tmp_path / "queries").write_text("garden\n")
    return SearchRunner(Config(search=search), log, tmp_path, tmp_path / "queries", every_s, as_json=True)


def _mine(engine: Engine) -> JsonHttpSettings:
    return JsonHttpSettings(url=f"{engine.url}/?q={{query}}", items="web.results", rate=100.0)


def _sources(engine: Engine) -> list[Brave | JsonHttp]:
    return [_Broken(BraveSettings(), "key"), JsonHttp("mine", _mine(engine), "")]


async def _run_until(runner: SearchRunner, sources: Sequence[Source], done: Callable[[], bool]) -> int:
    """Run the schedule until `done`, then stop it; returns the exit code."""
    async with asyncio.timeout(20):
        daemon = asyncio.create_task(runner.run_scheduled(sources, QUERIES))
        while not done():
            assert not daemon.done()
            await asyncio.sleep(0.01)
        runner.stopping.set()
        return await daemon


@pytest.fixture
def log() -> _AwayLog:
    """A log with every topic."""
    log = _AwayLog()
    log.create(all_topics(64, "e"))
    return log


def test_a_bug_in_one_source_does_not_end_the_others(
    log: _AwayLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A single run reports the other sources before it raises; a daemon logs the error and continues."""
    with Engine(lambda _: says(BRAVE)) as engine:
        with pytest.raises(ZeroDivisionError):
            asyncio.run(_runner(log, engine, tmp_path, None).run_once(_sources(engine), QUERIES))
        assert '"source": "mine"' in capsys.readouterr().out
        runner = _runner(log, engine, tmp_path, 3600)

        def done() -> bool:
            detail = runner.health().detail
            return "brave: failed" in detail and "mine: next round" in detail

        assert asyncio.run(_run_until(runner, _sources(engine), done)) == Exit.OK


def test_a_daemon_can_be_stopped_while_its_log_is_away(log: _AwayLog, tmp_path: Path) -> None:
    """The exit code is 0: the next start sends the same queries."""
    log.away = True
    with Engine(lambda _: says(BRAVE)) as engine:
        runner = _runner(log, engine, tmp_path, 3600)
        assert asyncio.run(_run_until(runner, _sources(engine)[1:], lambda: log.refused > 0)) == Exit.OK
        assert not engine.seen
