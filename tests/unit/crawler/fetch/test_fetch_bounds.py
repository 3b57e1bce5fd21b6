"""What a job may not do, wherever its site leads it: other hosts, other ports, long waits, and more than its share."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from crawler.fetch.fetcher import Fetcher
from crawler.fetch.gate import HostGate
from crawler.fetch.jobs import Capture, FetchOutcome, FetchResult, Job, RequestKind
from crawler.fetch.thread import FetchThread
from crawler.robots.rules import RobotsRules
from crawler.settings import CrawlSettings
from tests.support.crawl_driver import patient_settings, settings_for
from tests.support.loopback import Reply, Web, page, raw, redirect

OPEN = RobotsRules(b"", "farmwatch")


@pytest.fixture
def loopback() -> Iterator[Web]:
    """A web on loopback."""
    with Web() as served:
        yield served


def fetch(target: str, *jobs: Job, tap: Any = None, **changes: Any) -> list[FetchResult]:
    """Do jobs one after the other."""

    async def main() -> list[FetchResult]:
        async with Fetcher(settings_for(target, **changes), tap=tap) as fetcher:
            return [await fetcher.fetch(job) for job in jobs]

    return asyncio.run(main())


def job_for(url: str, site: str = "a.test", kind: RequestKind = RequestKind.PAGE, delay_s: float = 0.01) -> Job:
    """A job of a site."""
    return Job(kind, site, url, delay_s, OPEN)


@pytest.mark.parametrize("kind", [RequestKind.PAGE, RequestKind.SITEMAP, RequestKind.TDMREP])
def test_a_site_has_jobs_at_its_own_host_only(loopback: Web, kind: RequestKind) -> None:
    """A URL of another host, of the www twin too, is not requested under the rules of this one."""
    for host in ("www.a.test", "b.test"):
        (answer,) = fetch(loopback.target, job_for(f"http://{host}/x", kind=kind))
        assert (answer.outcome, answer.reason, answer.requests) == (FetchOutcome.REFUSED, "other_host", [])
    assert loopback.seen == []


def test_a_sitemap_at_the_twin_lists_pages_of_its_own_site(loopback: Web) -> None:
    """A sitemap may stand at the www twin; URLs of the twin in it are still not the site's."""
    loopback.routes |= {
        "a.test/s.xml": redirect("http://www.a.test/s.xml"),
        "www.a.test/robots.txt": Reply(b"User-agent: *\nDisallow: /p\n"),
        "www.a.test/s.xml": Reply(
            b"<urlset><loc>http://www.a.test/p1</loc><loc>http://a.test/p2</loc></urlset>",
            headers={"Content-Type": "text/xml"},
        ),
    }
    (answer,) = fetch(loopback.target, job_for("http://a.test/s.xml", kind=RequestKind.SITEMAP))
    assert answer.outcome is FetchOutcome.FETCHED and answer.sitemap.pages == ("http://a.test/p2",)


@pytest.mark.parametrize("location", ["http://a.test:8080/x", "https://a.test:8443/", "http://www.a.test:81/"])
def test_a_redirect_to_another_port_is_refused(loopback: Web, location: str) -> None:
    """Another port is another server, whose robots.txt was not asked for; the schemes' own ports are one."""
    loopback.routes |= {"a.test/x": redirect(location), "a.test/y": redirect("https://a.test/z"), "a.test/z": page("")}
    refused, followed = fetch(loopback.target, job_for("http://a.test/x"), job_for("http://a.test/y"))
    assert (refused.outcome, refused.reason) == (FetchOutcome.REFUSED, "redirect_port")
    assert followed.outcome is FetchOutcome.FETCHED
    assert [seen.path for seen in loopback.seen] == ["/x", "/y", "/z"]


def test_a_twin_whose_robots_txt_fails_is_asked_again(loopback: Web) -> None:
    """A page that leads to the twin fails for now while the twin's robots.txt does; it is not refused for good."""
    loopback.routes |= {
        "a.test/x": redirect("http://www.a.test/x"),
        "www.a.test/x": page(""),
        "www.a.test/robots.txt": Reply(status=503),
    }

    async def main() -> list[FetchResult]:
        async with Fetcher(settings_for(loopback.target, retry_s=0.4)) as fetcher:
            answers = [await fetcher.fetch(job_for("http://a.test/x")) for _ in range(2)]
            loopback.routes["www.a.test/robots.txt"] = Reply(status=404)
            await asyncio.sleep(0.25)
            return [*answers, await fetcher.fetch(job_for("http://a.test/x"))]

    first, second, third = asyncio.run(main())
    assert [(each.outcome, each.reason, each.transient) for each in (first, second)] == [
        (FetchOutcome.FAILED, "robots_unavailable", True)
    ] * 2
    assert third.outcome is FetchOutcome.FETCHED
    assert [seen.path for seen in loopback.seen].count("/robots.txt") == 2


def test_jobs_that_wait_between_requests_are_not_under_way(loopback: Web) -> None:
    """Hosts that all lead to one hub wait for it outside of the requests under way, and others go on meanwhile."""
    hub = redirect("http://hub.test/robots.txt")
    loopback.routes |= {f"h{n}.test/robots.txt": hub for n in range(6)}
    loopback.routes |= {"hub.test/robots.txt": Reply(b""), "decent.test/x": page("")}

    async def main() -> tuple[int, float]:
        async with Fetcher(settings_for(loopback.target, max_in_flight=2)) as fetcher:
            tasks = [
                asyncio.create_task(
                    fetcher.fetch(
                        Job(RequestKind.ROBOTS, f"h{n}.test", f"http://h{n}.test/robots.txt", 0.5), wait=False
                    )
                )
                for n in range(6)
            ]
            await asyncio.sleep(0.3)
            waiting, before = fetcher.waiting, time.monotonic()
            answer = await fetcher.fetch(job_for("http://decent.test/x", "decent.test"), wait=False)
            assert answer.outcome is FetchOutcome.FETCHED
            took_s = time.monotonic() - before
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert fetcher.waiting == 0
            return waiting, took_s

    waiting, took_s = asyncio.run(main())
    assert waiting == 5 and took_s < 1.0


def test_no_more_requests_than_allowed_are_under_way(loopback: Web) -> None:
    """Whoever asks, and however many: `max_in_flight` bounds the requests that have begun."""
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
            jobs = [job_for(f"http://h{n}.test/", f"h{n}.test") for n in range(9)]
            answers = await asyncio.gather(*map(fetcher.fetch, jobs))
            assert {answer.outcome for answer in answers} == {FetchOutcome.FETCHED}

    asyncio.run(main())
    assert max(at_once) == 3 and len(at_once) == 9


def test_a_job_does_not_wait_for_ever(loopback: Web) -> None:
    """Hops that ask for more waiting in sum than the longest Crawl-delay end a job, to be tried again."""
    loopback.routes |= {f"a.test/{n}": redirect(f"/{n + 1}") for n in range(9)}
    jobs = job_for("http://a.test/0", delay_s=0.25)
    (answer,) = fetch(loopback.target, jobs, crawl_delay_cap_s=0.6)
    assert (answer.outcome, answer.reason, answer.transient) == (FetchOutcome.FAILED, "busy", True)
    assert not answer.unreachable and 2 <= len(loopback.seen) <= 4


def test_a_host_rests_for_as_long_as_its_answers_take() -> None:
    """The turn after a slow response comes later, by the same factor and cap as between pages."""
    now = 100.0
    starts: list[float] = []

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def main() -> None:
        nonlocal now
        gate = HostGate(patient_settings("", delay_slow_cap_s=30.0), lambda: now, sleep)
        for took_s in (0.0, 4.0, 100.0, 0.0):
            turn = gate.turn("a", 1.0)
            await turn.take()
            starts.append(now)
            now += took_s
            turn.leave()

    asyncio.run(main())
    assert starts == [100.0, 101.0, 109.0, 209.0]


def test_a_start_counts_from_when_the_request_is_sent() -> None:
    """One that was long in connecting is noted when it is sent, and waits where another one began meanwhile."""
    now = 100.0
    sent: list[tuple[str, float]] = []

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def main() -> None:
        nonlocal now
        gate = HostGate(patient_settings("", address_delay_s=1.0), lambda: now, sleep)
        now = 200.0
        slow, quick, last = (gate.turn(f"{name}.test", 0.1, ["192.0.2.1"]) for name in ("slow", "quick", "last"))
        await slow.take()
        await quick.take()
        sent.append(("quick", now))
        now = 201.5  # half a second after the other one: connected at last
        await slow.sent()
        sent.append(("slow", now))
        await last.take()
        sent.append(("last", now))

    asyncio.run(main())
    assert sent == [("quick", 201.0), ("slow", 202.0), ("last", 203.0)]


def test_slow_connections_do_not_push_requests_together(loopback: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests to one address arrive the delay apart, though the first of them took longer to connect."""
    delay_s = 0.2
    loopback.routes |= {f"{name}.test/": page("") for name in "ab"}

    async def main() -> list[FetchResult]:
        settings = settings_for(loopback.target, address_delay_s=delay_s)
        async with Fetcher(settings) as fetcher:
            connector = fetcher._connections._connector
            assert connector is not None
            connect = connector.connect

            async def slow(request: Any, *given: Any) -> Any:
                if request.host == "a.test":
                    await asyncio.sleep(1.5 * delay_s)
                return await connect(request, *given)

            monkeypatch.setattr(connector, "connect", slow)
            return list(
                await asyncio.gather(*(fetcher.fetch(job_for(f"http://{name}.test/", f"{name}.test")) for name in "ab"))
            )

    slow, quick = asyncio.run(main())
    assert slow.outcome is quick.outcome is FetchOutcome.FETCHED
    assert abs(slow.started_ms - quick.started_ms) >= 1000 * delay_s - 20


def test_no_socket_left_is_not_the_sites_fault(loopback: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file descriptor the job comes again, as if nothing had been asked; nobody is blamed."""

    async def main() -> FetchResult:
        async with Fetcher(settings_for(loopback.target)) as fetcher:
            connector = fetcher._connections._connector
            assert connector is not None

            def none_left(_: Any) -> Any:
                raise OSError(errno.EMFILE, "Too many open files")

            monkeypatch.setattr(connector, "_socket_factory", none_left)
            return await fetcher.fetch(job_for("http://a.test/"))

    answer = asyncio.run(main())
    assert answer.outcome is FetchOutcome.DEFERRED and answer.requests == [] and not answer.unreachable
    assert answer.not_before_ms > time.time() * 1000


def test_no_socket_left_for_dns_is_not_the_sites_fault() -> None:
    """Without a file descriptor for the look-up the job comes again as well."""

    class NoneLeft(AbstractResolver):
        async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
            raise OSError(errno.EMFILE, "Too many open files")

        async def close(self) -> None:
            return

    async def main() -> FetchResult:
        async with Fetcher(CrawlSettings(contact="https://example.org"), resolver=NoneLeft()) as fetcher:
            return await fetcher.fetch(job_for("http://a.test/"))

    answer = asyncio.run(main())
    assert answer.outcome is FetchOutcome.DEFERRED and answer.requests == [] and not answer.unreachable


@pytest.mark.parametrize("status", ["404 Not Found", "302 Found"])
def test_a_tap_does_not_change_an_outcome(status: str) -> None:
    """The body of an error that never ends is kept as far as it came in a short time; the answer stands."""
    taped: list[Capture] = []

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 99\r\nLocation: http://b.test/\r\n\r\nnot".encode())
        if path == b"/cut":
            writer.close()
        else:
            await reader.read()
            writer.close()

    async def main() -> list[FetchResult]:
        server = await asyncio.start_server(hang, "127.0.0.1", 0)
        target = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, Fetcher(settings_for(target, idle_timeout_s=0.1), tap=taped.append) as fetcher:
            return [await fetcher.fetch(job_for(f"http://a.test/{path}")) for path in ("hang", "cut")]

    reason = "http_404" if status.startswith("404") else "redirect_offsite"
    assert {answer.reason for answer in asyncio.run(main())} == {reason}
    assert [(capture.body, capture.truncated) for capture in taped] == [(b"not", "time"), (b"not", "disconnect")]


@pytest.mark.parametrize(
    "piece",
    [
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 2000,
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
    ids=["interim answers", "chunk extensions"],
)
def test_bytes_that_are_no_body_are_bounded(piece: bytes) -> None:
    """Endless interim answers, and chunks of one byte with long extensions, end after a few MiB, not after a minute."""
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(piece)
        more = piece if b"103" in piece else (b"1;" + b"x" * 2000 + b"\r\n \r\n") * 50
        try:
            while True:
                writer.write(more)
                sent += len(more)
                await writer.drain()
        except ConnectionError:
            writer.close()

    async def main() -> FetchResult:
        server = await asyncio.start_server(endless, "127.0.0.1", 0)
        target = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        settings = settings_for(target, body_bytes=100_000, total_timeout_s=20.0)
        async with server, Fetcher(settings) as fetcher:
            return await fetcher.fetch(job_for("http://a.test/"))

    answer = asyncio.run(main())
    assert (answer.outcome, answer.reason, answer.transient) == (FetchOutcome.FAILED, "bad_response", False)
    assert sent < 10_000_000 and answer.duration_ms < 15_000


def test_a_long_robots_header_keeps_its_end(loopback: Web) -> None:
    """An opt-out behind a thousand characters of an X-Robots-Tag counts, though the header is kept cut."""
    tags = f"otherbot: {'noarchive, ' * 200}\r\nX-Robots-Tag: noai"
    loopback.routes["a.test/"] = raw(
        f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Robots-Tag: {tags}\r\n\r\n<html>".encode()
    )
    (answer,) = fetch(loopback.target, job_for("http://a.test/"))
    assert answer.opt_out == ["header:noai"] and len(answer.headers["x-robots-tag"]) <= 1000


def test_the_thread_tells_how_many_wait(loopback: Web) -> None:
    """The stage reads from its own thread how many of its jobs have no request under way."""
    seen: set[int] = set()

    async def until_seen(request: web.Request) -> web.Response:
        while 0 not in seen:
            await asyncio.sleep(0.01)
        return web.Response(text="<html>", content_type="text/html")

    loopback.routes |= {"a.test/x": redirect("/y"), "a.test/y": until_seen}
    thread = FetchThread(Fetcher(settings_for(loopback.target)))
    try:
        thread.submit({1: job_for("http://a.test/x", delay_s=0.6)})
        ends = time.monotonic() + 10
        while not (done := thread.collect()) and time.monotonic() < ends:
            seen.add(thread.waiting)
            time.sleep(0.01)
        assert done[0].answer.outcome is FetchOutcome.FETCHED and seen == {0, 1}
    finally:
        thread.close()
