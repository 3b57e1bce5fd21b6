"""A console served in this process to a real browser, and the logs that it shows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from aiohttp import web
from msgspec import structs

from farmwatch.__main__ import run
from farmwatch.config.config import Config, load
from farmwatch.config.opening import opened
from farmwatch.crawl.orders import order_exclusions
from replay.rows.site_table import read_sites
from scoring.rates.canary import is_canary
from stream.log.contract import Message, Output, partition_of, wall_ms
from stream.opening import open_log
from stream.processing.dead_letters import dead_letter
from stream.schema.records import RatePoint, encode
from stream.schema.topics import HITS, RATES, SITES
from tests.support.front_door import SITE
from tests.support.kafka_broker import free_ports
from tests.support.web.console_browser import console_of
from tests.support.web.server_thread import ServerThread


class ServedConsole(NamedTuple):
    """Its address, the URL of its log, and the paths of its pages."""

    url: str
    log: str
    pages: set[str]


class _Server(ServerThread):
    def __init__(self, app: web.Application, port: int) -> None:
        super().__init__()
        self._runner, self._port = web.AppRunner(app), port

    async def serve(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()

    async def close(self) -> None:
        await self._runner.cleanup()


@contextmanager
def served(config: Config, folder: Path) -> Iterator[ServedConsole]:
    """The console of a log until the end of the block; it follows the log as `farmwatch console` does."""
    (port,) = free_ports(1)
    stop = threading.Event()
    with opened(config) as log:
        console, app = console_of(log, config, folder, port)
        following = threading.Thread(target=console.follow, args=(stop, 0.1))
        following.start()
        places = {route.resource.canonical for route in app.router.routes() if route.resource}
        pages = {place for place in places if f"{place}.json" in places}
        with _Server(app, port):
            try:
                yield ServedConsole(f"http://127.0.0.1:{port}", config.log.url, pages)
            finally:
                stop.set()
                following.join()  # it ends the streams of events, for which the server would wait


def prepared(kept: Path) -> Config:
    """The configuration of a demo's log, which gets a replay, a history, an operator, a dead letter, an exclusion."""
    config = load(kept / "farmwatch.toml", environment={}).config
    replay(config, "--ruleset", "c4")
    put_history(config.log.url)
    put_account(config.log.url)
    put_letter(config.log.url, KeyError("x"))
    order_exclusions(config, [("no.example", "its owner asked")], on=True)
    return config


def put_letter(url: str, error: Exception) -> None:
    """Append a dead letter of CRAWL to the log at `url`."""
    with closing(open_log(url)) as log:
        log.append([dead_letter(Message(HITS, 0, 0, SITE.encode(), b"{", {}, 0), "crawl", error, 1)])


def put_account(url: str) -> None:
    """Let the first three sites share an account, and the next two a container alone."""
    with closing(open_log(url)) as log:
        rows = [row for row in read_sites(log) if not is_canary(row.site)][:5]
        ids = ["analytics:google:123456"] * 3 + ["analytics:gtm:ABC123"] * 2
        rows = [structs.replace(row, signals={of_id: row.pages}) for row, of_id in zip(rows, ids, strict=True)]
        partitions = log.topics()[SITES]
        log.append([Output(SITES, partition_of(row.site, partitions), row.site.encode(), encode(row)) for row in rows])


def put_history(url: str) -> None:
    """Append a share of each of the last three days."""
    points = [
        RatePoint(
            id=f"{day}/all",
            site="",
            at=wall_ms() - day * 86_400_000,
            share=share,
            share_low=low / 2,
            share_high=(1 + high) / 2,
            share_low_once=low,
            share_high_once=high,
        )
        for day, low, share, high in ((3, 0.1, 0.5, 0.9), (2, 0.2, 0.4, 0.7), (1, 0.3, 0.45, 0.6))
    ]
    with closing(open_log(url)) as log:
        log.append([Output(RATES, 0, point.id.encode(), encode(point)) for point in points])


def replay(config: Config, *arguments: str) -> None:
    """Run `farmwatch replay --name stricter` on the log."""
    flags = [f"log.url={config.log.url}", f"log.partitions={config.log.partitions}"]
    words = ["replay", "--name", "stricter", *arguments, *(word for flag in flags for word in ("--set", flag))]
    assert run(words) == 0
