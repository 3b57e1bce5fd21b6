"""Fetches of single jobs, from a web on loopback or from a server that sends any bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from crawler.fetch.address_guard import resolved
from crawler.fetch.exchange import Tap
from crawler.fetch.fetcher import Fetcher
from crawler.fetch.jobs import FetchResult, Job, RequestKind
from crawler.robots.rules import RobotsRules
from crawler.settings import CrawlSettings
from crawler.web.inspection import Inspector
from crawler.web.urls import host_of
from tests.support.web.crawl_driver import settings_for

RULES = RobotsRules(b"User-agent: *\nDisallow: /private", "farmwatch")
HTML = {"Content-Type": "text/html"}

Server = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class FixedDns(AbstractResolver):
    """DNS that has the same addresses for every name."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.asked = 0

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        self.asked += 1
        return [resolved(host, address, port) for address in self.addresses]

    async def close(self) -> None:
        """Nothing to close."""


def job_for(url: str, kind: RequestKind = RequestKind.PAGE, delay_s: float = 0.01, site: str = "", **more: Any) -> Job:
    """A job of the URL's site, or of another."""
    return Job(kind, site or host_of(url), url, delay_s, RULES, **more)


def fetch_all(
    settings: CrawlSettings,
    *jobs: Job | str,
    resolver: AbstractResolver | None = None,
    tap: Tap | None = None,
    inspector: Inspector | None = None,
) -> list[FetchResult]:
    """Fetch jobs and pages one after the other, with one fetcher."""

    async def main() -> list[FetchResult]:
        async with Fetcher(settings, resolver=resolver, tap=tap, inspector=inspector) as fetcher:
            return [await fetcher.fetch(job_for(job) if isinstance(job, str) else job) for job in jobs]

    return asyncio.run(main())


def fetch(
    target: str, job: Job | str, tap: Tap | None = None, inspector: Inspector | None = None, **changes: Any
) -> FetchResult:
    """Fetch one job from the web at `target`; the delay is that of the settings."""
    settings = settings_for(target, **changes)
    job = job_for(job, delay_s=settings.delay_s) if isinstance(job, str) else job
    (answer,) = fetch_all(settings, job, tap=tap, inspector=inspector)
    return answer


def fetch_from(server: Server, *jobs: Job | str, tap: Tap | None = None, **changes: Any) -> list[FetchResult]:
    """Fetch jobs from a server with any behaviour; by default one page."""

    async def main() -> list[FetchResult]:
        listening = await asyncio.start_server(server, "127.0.0.1", 0)
        settings = settings_for(f"127.0.0.1:{listening.sockets[0].getsockname()[1]}", **changes)
        asked = [job_for(job, delay_s=settings.delay_s) if isinstance(job, str) else job for job in jobs]
        async with listening, Fetcher(settings, tap=tap) as fetcher:
            return [await fetcher.fetch(job) for job in asked or [job_for("http://a.test/x")]]

    return asyncio.run(main())


def endless(start: bytes, more: bytes, every_s: float = 0.0, sent: list[int] | None = None) -> Server:
    """A server that sends a beginning, then the same bytes while the client reads; counts in `sent`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(start)
        try:
            while True:
                writer.write(more)
                await writer.drain()
                if sent is not None:
                    sent.append(len(more))
                await asyncio.sleep(every_s)
        except (ConnectionError, asyncio.CancelledError):
            writer.close()

    return serve
