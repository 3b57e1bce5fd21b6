"""The crawler's peers, each set up as its documentation advises for this work: links followed, pages kept as bytes.

They have no delays, logs or telemetry. Kept pages are appended to one file, the cheapest way to keep them. Both are
optional (`requirements-bench.lock`), and so loaded by name.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import importlib.util
import logging
import tempfile
from collections.abc import Callable
from typing import Any, BinaryIO, ClassVar

from tests.bench.peers.crawler_server import PER_SITE, address

PEERS = ("scrapy", "crawlee")
IN_FLIGHT = 64


def missing_peers() -> list[str]:
    return [name for name in PEERS if importlib.util.find_spec(name) is None]


def version(peer: str) -> str:
    return importlib.metadata.version(peer)


def scrapy(target: str, sites: int, *, robots: bool = False, frugal: bool = False) -> Callable[[], None]:
    """A Scrapy spider: 64 requests at a time, one per host, every link followed, a pipeline that keeps the pages.

    A frugal one extracts links of a site only until it knows as many pages as it needs, as our crawler does; Scrapy's
    own way is to extract all links and to filter known ones.
    """
    framework: Any = importlib.import_module("scrapy")
    running: Any = importlib.import_module("scrapy.crawler")
    extraction: Any = importlib.import_module("scrapy.linkextractors")
    starts = _starts(target, sites)

    class Pages(framework.Spider):  # type: ignore[misc]  # loaded by name
        name = "pages"
        links = extraction.LinkExtractor()
        known: ClassVar[dict[str, set[str]]] = {}

        async def start(self) -> Any:
            for url in starts:
                yield framework.Request(url, self.parse)

        def parse(self, response: Any) -> Any:
            yield {"url": response.url, "body": response.body}
            if frugal:
                known = self.known.setdefault(response.url.split("/")[2], {response.url})
                if len(known) < PER_SITE:
                    for link in self.links.extract_links(response):
                        if link.url not in known:
                            known.add(link.url)
                            yield framework.Request(link.url, self.parse)
                return
            for link in self.links.extract_links(response):
                yield framework.Request(link.url, self.parse)

    settings = {
        "CONCURRENT_REQUESTS": IN_FLIGHT,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": robots,
        "COOKIES_ENABLED": False,
        "LOG_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "ITEM_PIPELINES": {KeepingPipeline: 100},
    }

    def work() -> None:
        process = running.CrawlerProcess(settings)
        process.crawl(Pages)
        process.start()

    return work


class KeepingPipeline:
    """A Scrapy pipeline that appends its items to a file."""

    def open_spider(self) -> None:
        self._file: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the spider

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        _keep(self._file, item["url"], item["body"])
        return item

    def close_spider(self) -> None:
        self._file.close()


def crawlee(target: str, sites: int) -> Callable[[], None]:
    """Crawlee's Parsel crawler (its faster parser) with its own HTTP client: 64 tasks, robots.txt, every link followed.

    It has no limit per host, so that a host may see several requests at once.
    """
    logging.disable()
    library: Any = importlib.import_module("crawlee")
    crawlers: Any = importlib.import_module("crawlee.crawlers")
    clients: Any = importlib.import_module("crawlee.storage_clients")
    starts = _starts(target, sites)

    async def crawl() -> None:
        with tempfile.TemporaryFile() as file:

            async def handle(context: Any) -> None:
                _keep(file, context.request.url, await context.http_response.read())
                await context.enqueue_links(strategy="same-hostname")

            crawler = crawlers.ParselCrawler(
                request_handler=handle,
                storage_client=clients.MemoryStorageClient(),
                concurrency_settings=library.ConcurrencySettings(
                    min_concurrency=IN_FLIGHT, desired_concurrency=IN_FLIGHT, max_concurrency=IN_FLIGHT
                ),
                respect_robots_txt_file=True,
                use_session_pool=False,
                retry_on_blocked=False,
                configure_logging=False,
            )
            await crawler.run(starts)

    return lambda: asyncio.run(crawl())


def _starts(target: str, sites: int) -> list[str]:
    port = target.partition(":")[2]
    return [f"http://{address(site)}:{port}/p/0" for site in range(sites)]


def _keep(file: BinaryIO, url: str, body: bytes) -> None:
    file.write(b"%s %d\n" % (url.encode(), len(body)))
    file.write(body)
