"""The desk of `farmwatch search`: sources side by side, whatever one of them meets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from crawler.sources.brave import Brave
from crawler.sources.marginalia import Marginalia
from crawler.sources.settings import BraveSettings, MarginaliaSettings, SearchSettings
from crawler.sources.source import Query, SourceRequest
from farmwatch.config.config import Config
from farmwatch.crawl.search_rounds import Desk
from stream.log.contract import Output
from stream.log.errors import LogUnavailable
from stream.memory.log import MemoryLog
from stream.schema.topics import all_topics
from stream.text.user_errors import Exit
from tests.support.search_engines import BRAVE, Engine, says

QUERIES = [Query("garden", "garden")]


class _Broken(Brave):
    """A source with a mistake in it."""

    def request(self, query: Query, page: int) -> SourceRequest:
        """Fail as nobody foresaw."""
        raise ZeroDivisionError


class _AwayLog(MemoryLog):
    """A log that goes away for good."""

    away = False

    def append(self, outputs: Sequence[Output]) -> None:
        """Fail, once it is away."""
        if self.away:
            raise LogUnavailable("the broker is away")
        super().append(outputs)


def _desk(log: MemoryLog, engine: Engine, tmp_path: Path, every_s: int | None) -> Desk:
    search = SearchSettings(brave=BraveSettings(rate=100.0), marginalia=MarginaliaSettings(url=engine.url, rate=100.0))
    (tmp_path / "queries").write_text("garden\n")
    return Desk(Config(search=search), log, tmp_path, tmp_path / "queries", every_s, as_json=True)


def _sources(engine: Engine) -> list[Brave | Marginalia]:
    return [_Broken(BraveSettings(), "key"), Marginalia(MarginaliaSettings(url=engine.url), "key")]


@pytest.fixture
def log() -> _AwayLog:
    """A log with every topic."""
    made = _AwayLog()
    made.create(all_topics(64, "e"))
    return made


def test_a_mistake_in_one_source_does_not_end_the_others(
    log: _AwayLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By hand the others are told before it is; on a schedule it is logged, and they go on."""
    with Engine(lambda _: says(BRAVE)) as engine:
        with pytest.raises(ZeroDivisionError):
            asyncio.run(_desk(log, engine, tmp_path, None).once(_sources(engine), QUERIES))
        assert '"source": "marginalia"' in capsys.readouterr().out

        async def watched() -> int:
            desk = _desk(log, engine, tmp_path, 3600)
            daemon = asyncio.create_task(desk.always(_sources(engine), QUERIES))
            for _ in range(1000):
                await asyncio.sleep(0.01)
                if "brave: failed" in desk.health().detail and "marginalia: next round" in desk.health().detail:
                    break
            else:
                pytest.fail(desk.health().detail)
            assert desk._stop is not None
            desk._stop.set()
            return await daemon

        assert asyncio.run(watched()) == Exit.OK


def test_a_daemon_that_is_stopped_while_its_log_is_away_ends_well(log: _AwayLog, tmp_path: Path) -> None:
    """What it could not write is asked again at the next start: exit code 0."""

    async def watched(engine: Engine) -> int:
        desk = _desk(log, engine, tmp_path, 3600)
        log.away = True
        daemon = asyncio.create_task(desk.always(_sources(engine)[1:], QUERIES))
        await asyncio.sleep(0.3)
        assert not daemon.done() and not engine.seen
        assert desk._stop is not None
        desk._stop.set()
        return await asyncio.wait_for(daemon, 10)

    with Engine(lambda _: says(BRAVE)) as engine:
        assert asyncio.run(watched(engine)) == Exit.OK
