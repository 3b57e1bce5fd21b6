"""Pages per CPU-second of the crawler beside raw aiohttp: the same pages, the same server in another process, one run.

    python -m tests.bench.bench_crawler [pages]

Rows: raw aiohttp (get and read), the fetcher (guard, gate, redirects, inflating, charset, zstd, envelope), and the
whole stage on the embedded log (frontier, robots.txt, links, commits). Only this process's CPU time counts.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import aiohttp
import yarl

from crawler.crawl_stage import CrawlStage, frontier_left
from crawler.fetching import Fetcher
from crawler.guard import FixedResolver
from crawler.hits_file import make_hit
from crawler.jobs import Job, Kind, Outcome
from crawler.robots import RobotsRules
from crawler.settings import CrawlSettings
from crawler.urls import fetch_id, page_id_of_normal
from stream.embedded_log import EmbeddedLog
from stream.log import Output, partition_of
from stream.loop import StageLoop
from stream.metrics import Metrics
from stream.records import Page, encode
from stream.topics import DECISIONS, FRONTIER_STORE, HITS, PAGES, all_topics

IN_FLIGHT = 64
PER_SITE = 40
ROUNDS = 3
PARTITIONS = 4
_WORDS = "the measured share of pages that a language model wrote depends on what was asked and when it was asked "


class Answering(asyncio.Protocol):
    """A server that costs next to nothing: one page for every path, with links to the others; no robots.txt."""

    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n"
    missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

    def __init__(self) -> None:
        links = "".join(f'<li><a href="/p/{n}" class="item">Entry number {n}</a></li>' for n in range(PER_SITE))
        paragraphs = "".join(f"<p>{n}: {_WORDS * 6}</p>\n" for n in range(18))
        head = "<!doctype html><html><head><title>x</title></head>"
        body = f"{head}<body><ul>{links}</ul>{paragraphs}</body></html>".encode()
        self.page = self.head % len(body) + body

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request of the piece; requests are small and never split here."""
        assert isinstance(self.transport, asyncio.Transport)
        for request in data.split(b"\r\n\r\n")[:-1]:
            self.transport.write(self.missing if request.startswith(b"GET /robots") else self.page)


def serve(ready: Connection) -> None:
    """Run the server for ever and tell its port."""

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def settings_for(target: str) -> CrawlSettings:
    """As a user has them, but without waiting."""
    return CrawlSettings(
        contact="https://crawler.example/about",
        delay_s=0.0005,
        domain_delay_s=0.0,
        address_delay_s=0.0,
        ask_tdmrep=False,
        delay_per_second=0.0,
        max_in_flight=IN_FLIGHT,
        page_budget=PER_SITE,
        use_sitemaps=False,
        allow_private=True,
        resolve_to={"*": target},
    )


async def side_by_side(count: int, one: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    """Fetch `count` URLs, one at a time per host, IN_FLIGHT hosts at once."""

    async def host(number: int) -> None:
        for page in range(count // IN_FLIGHT):
            await one(f"http://site{number}.test/p/{page}")

    await asyncio.gather(*(host(number) for number in range(IN_FLIGHT)))


async def raw(target: str, count: int) -> None:
    """aiohttp alone."""
    connector = aiohttp.TCPConnector(limit=IN_FLIGHT, resolver=FixedResolver({"*": target}))
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def one(url: str) -> None:
            async with session.get(yarl.URL(url, encoded=True)) as response:
                await response.read()

        await side_by_side(count, one)


async def fetcher(target: str, count: int) -> None:
    """The fetcher and the record."""
    rules = RobotsRules(b"", "farmwatch")
    async with Fetcher(settings_for(target)) as fetching:

        async def one(url: str) -> None:
            site = url.split("/")[2]
            answer = await fetching.fetch(Job(Kind.PAGE, site, url, 0.0005, rules))
            assert answer.outcome is Outcome.FETCHED, answer.reason
            page = Page(id=fetch_id(url, 1), site=site, page_id=page_id_of_normal(url), url=url, body=answer.packed)
            encode(page)

        await side_by_side(count, one)


def stage(target: str, count: int, told: dict[str, float]) -> None:
    """The whole stage on the embedded log, from hits to committed pages."""
    with tempfile.TemporaryDirectory() as folder:
        log = EmbeddedLog(Path(folder))
        log.create(all_topics(PARTITIONS, "bench"))
        hits = [make_hit({"url": f"http://site{n}.test/p/0"}) for n in range(count // PER_SITE)]
        log.append([Output(HITS, partition_of(h.site, PARTITIONS), h.site.encode(), encode(h)) for h in hits])
        metrics = Metrics()
        member = log.join("crawl", [HITS, DECISIONS], member="bench", store=FRONTIER_STORE)
        loop = StageLoop(CrawlStage(settings_for(target), metrics), member, metrics=metrics)
        stop = threading.Event()
        thread = threading.Thread(target=loop.run, args=(stop,))
        thread.start()
        while (left := frontier_left(log, PARTITIONS)).active or left.sites < len(hits):
            time.sleep(0.1)
        stop.set()
        thread.join()
        assert left.fetched == count // PER_SITE * PER_SITE == sum(log.end(PAGES)), left
        told["log"] = sum(
            metrics.registry.get_sample_value("farmwatch_log_cpu_seconds_total", {"operation": name}) or 0.0
            for name in ("poll", "commit")
        )
        log.close()


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 3200
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    target = f"127.0.0.1:{ours.recv()}"
    told: dict[str, float] = {}
    runs: dict[str, Callable[[], None]] = {
        "raw aiohttp": lambda: asyncio.run(raw(target, count)),
        "fetcher": lambda: asyncio.run(fetcher(target, count)),
        "whole stage": lambda: stage(target, count, told),
    }
    rates: dict[str, list[float]] = {name: [] for name in runs}
    shares = []
    for _ in range(ROUNDS):
        for name, work in runs.items():
            started = time.process_time()
            work()
            spent = time.process_time() - started
            rates[name].append(count / spent)
            if name == "whole stage":
                shares.append(told["log"] / spent)
    server.terminate()
    base = statistics.median(rates["raw aiohttp"])
    print(f"{count} pages of {len(Answering().page)} bytes, {IN_FLIGHT} in flight, medians of {ROUNDS} rounds")
    print(f"{'':14} {'pages/CPU-s':>12} {'of raw':>7}")
    for name, found in rates.items():
        print(f"{name:14} {statistics.median(found):12.0f} {statistics.median(found) / base:7.2f}")
    print(f"log's share of the stage's CPU: {statistics.median(shares):.2f}")
    print(f"largest resident memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")


if __name__ == "__main__":
    main()
