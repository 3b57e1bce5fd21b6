"""Requests through an HTTP proxy on loopback: what it and the sites see, what is refused, and a proxy that is down."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from crawler.errors import BadCrawlSettings
from crawler.fetch.fetcher import Fetcher
from crawler.fetch.jobs import Capture, FetchResult, RequestKind
from crawler.reasons import what_ends_stop
from crawler.robots.rules import RobotsAnswer, meaning_of
from crawler.settings import CrawlSettings
from stream.schema.vocabulary import FetchOutcome
from tests.hostile.internet import Certificates
from tests.support.web.crawl_driver import crawl, hits_of, settings_for
from tests.support.web.fetching import FixedDns, fetch_all, job_for
from tests.support.web.forward_proxy import ForwardProxy
from tests.support.web.loopback import Reply, Web, page, redirect
from tests.support.web.signed import signature_settings, verified_request

BASIC = "Basic YW5uOmhAc2g="  # ann:h@sh


def through(proxy: ForwardProxy, **changes: object) -> CrawlSettings:
    """Settings with the proxy, and with DNS."""
    url = f"http://ann:h%40sh@127.0.0.1:{proxy.port}"
    return settings_for("", resolve_to={}, proxy=url, **changes)


def test_http_goes_through_a_tunnel_too(loopback: Web, tmp_path: Path) -> None:
    """The site sees a signed request for its host; the password goes to the proxy, and into no archive."""
    loopback.routes["a.test/x"] = page("here")
    signature, key = signature_settings(tmp_path)
    captured: list[Capture] = []
    with ForwardProxy(loopback.target) as proxy:
        settings = through(proxy, signature=signature)
        (answer,) = fetch_all(settings, "http://a.test/x", resolver=FixedDns("192.0.2.1"), tap=captured.append)
    assert (answer.outcome, b"here" in answer.body, answer.address) == (FetchOutcome.FETCHED, True, "")
    assert proxy.asked == ["CONNECT a.test:80 HTTP/1.1"]
    assert proxy.headers[0]["Proxy-Authorization"] == BASIC
    (seen,) = loopback.seen
    assert seen.host == "a.test" and seen.path == "/x" and "Proxy-Authorization" not in seen.headers
    assert verified_request("http://a.test/x", seen.headers, key.jwk)
    sent = dict(captured[0].request_headers)
    assert b"Proxy-Authorization" not in sent and sent[b"Host"] == b"a.test"


def test_a_crawl_asks_for_nothing_beside_the_proxy(loopback: Web) -> None:
    """robots.txt, redirects to the twin, sitemaps and pages all go through it, under the same rules."""
    loopback.routes |= {
        "a.test/robots.txt": Reply(b"User-agent: *\nDisallow: /no\n"),
        "a.test/1": redirect("http://www.a.test/2"),
        "www.a.test/2": page("x"),
    }
    with ForwardProxy(loopback.target) as proxy:
        settings = settings_for("127.0.0.1:9", proxy=f"http://127.0.0.1:{proxy.port}")
        pages = crawl(settings, hits_of("http://a.test/1", "http://a.test/no"))
    assert [(each.outcome, each.reason) for each in pages if each.hits] == [("fetched", ""), ("refused", "robots")]
    assert set(proxy.asked) == {"CONNECT a.test:80 HTTP/1.1", "CONNECT www.a.test:80 HTTP/1.1"}
    assert len(loopback.seen) >= 5


def _behind_tls(context: ssl.SSLContext, *urls: str) -> tuple[list[FetchResult], list[str]]:
    """Fetch from a server with TLS behind a proxy; also the lines that the proxy read."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>")

    async def main() -> tuple[list[FetchResult], list[str]]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        with ForwardProxy(f"127.0.0.1:{server.sockets[0].getsockname()[1]}") as proxy:
            async with server:
                work = asyncio.to_thread(fetch_all, through(proxy), *urls, resolver=FixedDns("192.0.2.1"))
                return await work, proxy.asked

    return asyncio.run(main())


@pytest.mark.parametrize("is_trusted", [True, False])
def test_https_goes_through_a_tunnel(tmp_path: Path, is_trusted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """TLS is with the site, by its name and certificate; the proxy sees host and port only. A tunnel is kept."""
    certificates = Certificates(tmp_path / "tls")
    context = certificates.server({"a.test": "good"})
    if is_trusted:
        trusting = ssl.create_default_context(cafile=str(certificates.authority))
        monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", trusting)
    answers, asked = _behind_tls(context, "https://a.test/1", "https://a.test/2")
    if is_trusted:
        assert [answer.outcome for answer in answers] == [FetchOutcome.FETCHED] * 2
        assert asked == ["CONNECT a.test:443 HTTP/1.1"]
    else:
        assert [(answer.reason, answer.unreachable) for answer in answers] == [("tls_untrusted", True)] * 2


@pytest.mark.parametrize("addresses", [["10.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["8.8.8.8", "fd00::1"]])
def test_a_private_target_is_refused_before_the_proxy_is_asked(loopback: Web, addresses: list[str]) -> None:
    """One private address of a name is enough, for the proxy chooses; a literal one is refused too."""
    with ForwardProxy(loopback.target) as proxy:
        settings = through(proxy, allow_private=False)
        urls = ("http://a.test/x", "https://a.test/", f"http://127.0.0.1:{loopback.port}/", "http://[::1]/")
        answers = fetch_all(settings, *urls, resolver=FixedDns(*addresses))
        assert {(answer.outcome, answer.reason) for answer in answers} == {(FetchOutcome.REFUSED, "private_address")}
        assert proxy.asked == [] and loopback.seen == []
        (answer,) = fetch_all(settings, "http://a.test/x", resolver=FixedDns("8.8.8.8"))
        assert answer.status == 404


@pytest.mark.parametrize("url", ["http://a.test/", "https://a.test/"])
def test_a_proxy_that_is_down_is_no_failure_of_a_site(url: str) -> None:
    """The job comes again later as if it was never tried; the log says so and why once, without the password."""
    settings = settings_for("", resolve_to={}, proxy="http://ann:hush@127.0.0.1:9", retry_s=30.0)
    with capture_logs() as logs:
        robots = job_for("http://b.test/robots.txt", RequestKind.ROBOTS)
        answers = fetch_all(settings, url, robots, resolver=FixedDns("192.0.2.1"))
    for answer in answers:
        assert answer.outcome is FetchOutcome.DEFERRED and answer.requests == [] and not answer.unreachable
        assert answer.not_before_ms - answer.started_ms >= 30_000
    assert [(entry["event"], entry["why"]) for entry in logs] == [("proxy_failed", "Connection refused")]
    assert "hush" not in str(logs)


def test_a_proxy_that_stays_down_is_asked_more_rarely() -> None:
    """The wait is a quarter of the time for which it has been down, an hour at most."""
    now = 1.8e9

    async def main() -> list[float]:
        nonlocal now
        settings = settings_for("", resolve_to={}, proxy="http://127.0.0.1:9", retry_s=30.0)
        waits = []
        async with Fetcher(settings, resolver=FixedDns("192.0.2.1"), clock=lambda: now) as fetcher:
            for passed_s in (0, 400, 100_000):
                now += passed_s
                waits.append((await fetcher.fetch(job_for("http://a.test/"))).not_before_ms / 1000 - now)
        return waits

    assert asyncio.run(main()) == [30, 100, 3600]


REFUSED = (FetchOutcome.FAILED, "proxy_refused", True)
FAILED, DEFERRED = (FetchOutcome.FAILED, "connection", True), (FetchOutcome.DEFERRED, "", False)


@pytest.mark.parametrize("path", ["/", "/robots.txt"])
@pytest.mark.parametrize(
    ("scheme", "status", "end"),
    [
        ("https", 407, DEFERRED),
        ("https", 403, REFUSED),
        ("https", 502, FAILED),
        ("http", 407, DEFERRED),
        ("http", 403, REFUSED),
        ("http", 405, DEFERRED),
        ("https", 405, DEFERRED),
        ("http", 502, FAILED),
    ],
)
def test_what_the_proxy_says_is_no_answer_of_the_site(
    loopback: Web, scheme: str, status: int, path: str, end: tuple[FetchOutcome, str, bool]
) -> None:
    """Credentials concern all sites; a site that the proxy refuses or does not reach has failed itself.

    For robots.txt a status of the proxy, taken as the site's, would allow everything.
    """
    kind = RequestKind.ROBOTS if path == "/robots.txt" else RequestKind.PAGE
    with ForwardProxy(loopback.target, refuses=status) as proxy:
        job = job_for(f"{scheme}://a.test{path}", kind)
        (answer,) = fetch_all(through(proxy), job, resolver=FixedDns("192.0.2.1", "2001:db8::1"))
    assert (answer.outcome, answer.reason, answer.unreachable) == end
    assert answer.transient == answer.unreachable and answer.status == 0 and len(proxy.asked) == 1
    assert meaning_of(answer.status, complete=False) is RobotsAnswer.UNREACHABLE


def test_a_site_that_the_proxy_refuses_is_left_after_the_usual_attempts(loopback: Web) -> None:
    """It has the reason, after as many attempts as one without an answer; other sites are crawled, and none waits."""
    loopback.routes |= {"a.test/1": page("x"), "b.test/1": page("x")}
    with ForwardProxy(loopback.target, refuses=403, host="b.test") as proxy:
        settings = settings_for("127.0.0.1:9", proxy=f"http://127.0.0.1:{proxy.port}", use_sitemaps=False)
        pages = crawl(settings, hits_of("http://b.test/1", "http://a.test/1"))
    assert {(each.site, each.outcome, each.reason) for each in pages} == {
        ("a.test", "fetched", ""),
        ("b.test", "refused", "proxy_refused"),
    }
    assert proxy.asked.count("CONNECT b.test:80 HTTP/1.1") == settings.robots_tries
    assert not loopback.paths("b.test") and what_ends_stop("proxy_refused").startswith("a new hit")


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", FetchOutcome.DEFERRED),
        (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n<html>", FetchOutcome.FAILED),
        (b"HTTP/1.1 200 OK\r\nVia: " + 2**16 * b"x", FetchOutcome.FAILED),
        (b"", FetchOutcome.DEFERRED),
        (b"HTTP/1.1 200 OK\r\nVia: ", FetchOutcome.DEFERRED),
        (None, FetchOutcome.DEFERRED),
    ],
    ids=["no proxy", "speaks before it is asked", "endless head", "closes", "closes in its head", "resets"],
)
def test_a_proxy_that_speaks_no_http(said: bytes | None, outcome: FetchOutcome) -> None:
    """Nothing that it says becomes a page, and its head has an end; one that breaks off is no failure of the site."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if said is None:
            at_once = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        writer.write(said or b"")
        writer.close()

    async def main() -> FetchResult:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        proxy = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        settings = settings_for("", resolve_to={}, proxy=proxy)
        async with server, Fetcher(settings, resolver=FixedDns("192.0.2.1")) as fetcher:
            return await fetcher.fetch(job_for("http://a.test/"))

    answer = asyncio.run(main())
    assert (answer.outcome, answer.status, answer.body) == (outcome, 0, b"")


def test_a_site_at_which_the_proxy_breaks_off_has_failed_itself() -> None:
    """While it answers for others, a broken connection means that it does not reach the site, which is given up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"" if b"dead.test" in asked else b"HTTP/1.1 403 Forbidden\r\n\r\n")
        writer.close()

    async def main() -> list[FetchResult]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        proxy = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        settings = settings_for("", resolve_to={}, proxy=proxy)
        async with server, Fetcher(settings, resolver=FixedDns("192.0.2.1")) as fetcher:
            urls = [f"http://{host}.test/" for host in ("dead", "good", "dead", "dead")]
            return [await fetcher.fetch(job_for(url)) for url in urls]

    before, _, after, alone = asyncio.run(main())
    assert (before.outcome, alone.outcome) == (FetchOutcome.DEFERRED, FetchOutcome.DEFERRED)
    assert (after.outcome, after.reason, after.unreachable) == (FetchOutcome.FAILED, "connection", True)


def test_each_lookup_of_the_proxy_counts(loopback: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with several addresses, which change from one lookup to the next, is reached at one that answers."""
    addresses = iter([["127.0.0.1", "::1"], ["127.0.0.2", "127.0.0.1"]] * 2)

    async def main(port: int) -> list[FetchResult]:
        async def look_up(host: str, port: int, *, type: int) -> list[object]:
            assert host == "proxy.example"
            await asyncio.sleep(0.01)
            found = [await known(address, port, type=type) for address in next(addresses)]
            return [info for infos in found for info in infos]

        known = asyncio.get_running_loop().getaddrinfo
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
        settings = settings_for("", resolve_to={}, proxy=f"http://proxy.example:{port}")
        async with Fetcher(settings, resolver=FixedDns("192.0.2.1")) as fetcher:
            jobs = (fetcher.fetch(job_for(f"http://{name}.test/")) for name in "abcd")
            return await asyncio.gather(*jobs)

    loopback.routes |= {f"{name}.test/": page("x") for name in "abcd"}
    with ForwardProxy(loopback.target) as proxy:
        answers = asyncio.run(main(proxy.port))
    assert [answer.outcome for answer in answers] == [FetchOutcome.FETCHED] * 4


@pytest.mark.parametrize(
    ("proxy", "is_right"),
    [
        ("http://proxy.example:3128", True),
        ("http://ann:h%40sh@[2001:db8::1]:3128/", True),
        ("https://proxy.example:3128", False),
        ("socks5://proxy.example:3128", False),
        ("proxy.example:3128", False),
        ("http://ann:hush/@proxy.example:3128", False),
        ("http://proxy.example", False),
        ("http://proxy.example:0", False),
        ("http://proxy.example:65535", True),
        ("http://proxy.example:65536", False),
        ("http://proxy..example:3128", False),
        (f"http://{64 * 'p'}.example:3128", False),
    ],
)
def test_other_proxies_are_refused(proxy: str, is_right: bool) -> None:
    """The error says how to write one, and repeats none of it."""
    settings = CrawlSettings(contact="a@b.example", proxy=proxy)
    if is_right:
        settings.check()
        return
    with pytest.raises(BadCrawlSettings) as raised:
        settings.check()
    assert "hush" not in str(raised.value) and "crawl.proxy" in str(raised.value)
