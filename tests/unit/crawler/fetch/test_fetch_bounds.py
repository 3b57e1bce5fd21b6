"""Bounds of a job: other hosts, other ports, long waits, and its share of requests."""

from __future__ import annotations

import asyncio
import errno
import time
from typing import Any

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from crawler.fetch.fetcher import Fetcher
from crawler.fetch.jobs import FetchResult, RequestKind
from stream.schema.vocabulary import FetchOutcome
from tests.support.web.crawl_driver import settings_for
from tests.support.web.fetching import fetch, fetch_all, job_for
from tests.support.web.loopback import Handler, Reply, Web, page, raw, redirect


@pytest.mark.parametrize("kind", [RequestKind.PAGE, RequestKind.SITEMAP, RequestKind.TDMREP])
def test_a_site_has_jobs_at_its_own_host_only(loopback: Web, kind: RequestKind) -> None:
    """A URL of another host, even of the www twin, is not requested under this host's robots.txt."""
    for host in ("www.a.test", "b.test"):
        answer = fetch(loopback.target, job_for(f"http://{host}/x", kind, site="a.test"))
        assert (answer.outcome, answer.reason, answer.requests) == (FetchOutcome.REFUSED, "other_host", [])
    assert loopback.seen == []


def test_a_sitemap_at_the_twin_lists_pages_of_its_own_site(loopback: Web) -> None:
    """A sitemap may be on the www twin; its URLs of the twin do not belong to the site."""
    loopback.routes |= {
        "a.test/s.xml": redirect("http://www.a.test/s.xml"),
        "www.a.test/robots.txt": Reply(b"User-agent: *\nDisallow: /p\n"),
        "www.a.test/s.xml": Reply(
            b"<urlset><loc>http://www.a.test/p1</loc><loc>http://a.test/p2</loc></urlset>",
            headers={"Content-Type": "text/xml"},
        ),
    }
    answer = fetch(loopback.target, job_for("http://a.test/s.xml", RequestKind.SITEMAP))
    assert answer.outcome is FetchOutcome.FETCHED and answer.sitemap.pages == ("http://a.test/p2",)


@pytest.mark.parametrize("location", ["http://a.test:8080/x", "https://a.test:8443/", "http://www.a.test:81/"])
def test_a_redirect_to_another_port_is_refused(loopback: Web, location: str) -> None:
    """A redirect to another port is refused, because it has its own robots.txt; ports 80 and 443 count as one."""
    loopback.routes |= {"a.test/x": redirect(location), "a.test/y": redirect("https://a.test/z"), "a.test/z": page("")}
    refused, followed = fetch_all(settings_for(loopback.target), "http://a.test/x", "http://a.test/y")
    assert (refused.outcome, refused.reason) == (FetchOutcome.REFUSED, "redirect_port")
    assert followed.outcome is FetchOutcome.FETCHED
    assert [seen.path for seen in loopback.seen] == ["/x", "/y", "/z"]


@pytest.mark.parametrize("failed", [Reply(status=503), raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nUser")])
def test_a_twin_whose_robots_txt_fails_is_asked_again(loopback: Web, failed: Reply | Handler) -> None:
    """If a page redirects to the twin while the twin's robots.txt fails, the page fails for now and is not refused."""
    loopback.routes |= {
        "a.test/x": redirect("http://www.a.test/x"),
        "www.a.test/x": page(""),
        "www.a.test/robots.txt": failed,
    }

    async def main() -> list[FetchResult]:
        async with Fetcher(settings_for(loopback.target, retry_s=0.4)) as fetcher:
            answers = [await fetcher.fetch(job_for("http://a.test/x")) for _ in range(2)]
            loopback.routes["www.a.test/robots.txt"] = Reply(status=404)
            async with asyncio.timeout(20):
                while (last := await fetcher.fetch(job_for("http://a.test/x"))).outcome is FetchOutcome.FAILED:
                    await asyncio.sleep(0.01)
            return [*answers, last]

    first, second, third = asyncio.run(main())
    assert [(each.outcome, each.reason, each.transient) for each in (first, second)] == [
        (FetchOutcome.FAILED, "robots_unavailable", True)
    ] * 2
    assert third.outcome is FetchOutcome.FETCHED
    assert [seen.path for seen in loopback.seen].count("/robots.txt") == 2


def test_no_more_requests_than_allowed_are_under_way(loopback: Web) -> None:
    """`max_in_flight` bounds the requests in flight, for any number of jobs."""
    at_once: list[int] = []
    now = 0

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal now
        await reader.readuntil(b"\r\n\r\n")
        now += 1
        at_once.append(now)
        await asyncio.sleep(0.05)
        now -= 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>")
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(slow, "127.0.0.1", 0)
        target = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, Fetcher(settings_for(target, max_in_flight=3)) as fetcher:
            jobs = [job_for(f"http://h{n}.test/") for n in range(9)]
            answers = await asyncio.gather(*map(fetcher.fetch, jobs))
            assert {answer.outcome for answer in answers} == {FetchOutcome.FETCHED}

    asyncio.run(main())
    assert max(at_once) == 3 and len(at_once) == 9


def test_a_job_does_not_wait_for_ever(loopback: Web) -> None:
    """A job ends once its hops have waited longer than its own delay explains, whatever Crawl-delay others may have."""
    loopback.routes |= {f"a.test/{n}": redirect(f"/{n + 1}") for n in range(9)}
    answer = fetch(loopback.target, job_for("http://a.test/0", delay_s=0.15), hops_wait_s=0.05)
    assert (answer.outcome, answer.reason, answer.transient) == (FetchOutcome.FAILED, "busy", True)
    assert not answer.unreachable and 2 <= len(loopback.seen) <= 5


def test_slow_connections_do_not_push_requests_together(loopback: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests to one address arrive a delay apart, even if the first connection was slow."""
    delay_s = 0.2
    loopback.routes |= {f"{name}.test/": page("") for name in "ab"}
    connect = aiohttp.TCPConnector.connect

    async def slow_connect(connector: aiohttp.TCPConnector, request: Any, *given: Any) -> Any:
        if request.url.host == "a.test":
            await asyncio.sleep(1.5 * delay_s)
        return await connect(connector, request, *given)

    monkeypatch.setattr(aiohttp.TCPConnector, "connect", slow_connect)

    async def main() -> list[FetchResult]:
        async with Fetcher(settings_for(loopback.target, address_delay_s=delay_s)) as fetcher:
            return list(await asyncio.gather(*(fetcher.fetch(job_for(f"http://{name}.test/")) for name in "ab")))

    slow, quick = asyncio.run(main())
    assert slow.outcome is quick.outcome is FetchOutcome.FETCHED
    assert abs(slow.started_ms - quick.started_ms) >= 1000 * delay_s - 20


@pytest.mark.parametrize("needed_for", ["the connection", "DNS"])
def test_no_socket_left_is_not_the_sites_fault(loopback: Web, needed_for: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file descriptor the job is repeated as if it was never requested; the site is not blamed."""

    def none_left(*_: Any) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    class NoneLeft(AbstractResolver):
        async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
            return none_left()  # type: ignore[no-any-return]

        async def close(self) -> None:
            """Nothing to close."""

    settings = settings_for(loopback.target)
    if needed_for == "DNS":
        settings = settings_for("", resolve_to={})
    else:
        monkeypatch.setattr("crawler.fetch.connections.guarded_sockets", lambda _: none_left)
    (answer,) = fetch_all(settings, "http://a.test/", resolver=NoneLeft())
    assert answer.outcome is FetchOutcome.DEFERRED and answer.requests == [] and not answer.unreachable
    assert answer.not_before_ms > time.time() * 1000
