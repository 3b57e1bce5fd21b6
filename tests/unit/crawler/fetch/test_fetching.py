"""One job, one answer, over real HTTP on loopback."""

from __future__ import annotations

import asyncio
import gzip
import socket
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import zstandard
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from crawler.errors import NoContact
from crawler.fetch.fetcher import Fetcher
from crawler.fetch.jobs import FetchOutcome, FetchResult, Job, RequestKind
from crawler.robots.rules import RobotsRules
from crawler.settings import CrawlSettings
from crawler.web.urls import host_of
from tests.support.crawl_driver import settings_for
from tests.support.loopback import Reply, Web, page, raw, redirect

HTML = {"Content-Type": "text/html"}
OPEN = RobotsRules(b"User-agent: *\nDisallow: /private", "farmwatch")


@pytest.fixture
def loopback() -> Iterator[Web]:
    """A web on loopback."""
    with Web() as served:
        yield served


def fetch(loopback: Web, url: str, kind: RequestKind = RequestKind.PAGE, **changes: Any) -> FetchResult:
    """Fetch one URL."""
    return fetch_with(settings_for(loopback.target, **changes), url, kind)


def fetch_with(
    settings: CrawlSettings, url: str, kind: RequestKind = RequestKind.PAGE, resolver: AbstractResolver | None = None
) -> FetchResult:
    """Fetch one URL with these settings."""

    async def main() -> FetchResult:
        async with Fetcher(settings, resolver=resolver) as fetcher:
            return await fetcher.fetch(Job(kind, host_of(url), url, settings.delay_s, OPEN))

    return asyncio.run(main())


def test_a_page_as_sent(loopback: Web) -> None:
    """A fetched page has the inflated bytes packed, the charset, the headers that are kept, and our name was told."""
    body = "<html><p>Größe".encode()
    loopback.routes["a.test/x"] = Reply(
        gzip.compress(body),
        headers={"Content-Type": "Text/HTML", "Content-Encoding": "gzip", "ETag": '"1"', "Set-Cookie": "a=b"},
    )
    answer = fetch(loopback, "https://a.test/x")
    assert (answer.outcome, answer.status, answer.content_type) == (FetchOutcome.FETCHED, 200, "text/html")
    assert zstandard.ZstdDecompressor().decompress(answer.packed) == body == answer.body
    assert (answer.encoding, answer.truncated, answer.final_url) == ("utf-8", False, "https://a.test/x")
    assert answer.headers["etag"] == '"1"' and "set-cookie" not in answer.headers
    sent = loopback.seen[0].headers
    assert sent["User-Agent"].startswith("farmwatch/") and "(+https://crawler.example/about)" in sent["User-Agent"]
    assert sent["Host"] == "a.test" and "Cookie" not in sent and "Referer" not in sent


def test_a_gzip_bomb_is_cut_at_the_cap(loopback: Web) -> None:
    """1.3 MiB that inflate to 300 MiB give a page of 2 MiB, flagged."""
    pack = zlib.compressobj(1, zlib.DEFLATED, 31)
    bomb = b"".join(pack.compress(b"<html>" + b" " * 1024 * 1024) for _ in range(300)) + pack.flush()
    assert len(bomb) < 2_000_000
    loopback.routes["a.test/bomb"] = Reply(bomb, headers=HTML | {"Content-Encoding": "gzip"})
    answer = fetch(loopback, "http://a.test/bomb", total_timeout_s=30.0)
    assert (answer.outcome, answer.truncated, len(answer.body)) == (FetchOutcome.FETCHED, True, 2 * 1024 * 1024)


def test_an_endless_body_is_cut_at_the_cap(loopback: Web) -> None:
    """A body without an end is read up to the cap and no further."""

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/html"})
        await response.prepare(request)
        while True:
            await response.write(b"<p>more</p>" * 1000)

    loopback.routes["a.test/endless"] = endless
    answer = fetch(loopback, "http://a.test/endless")
    assert (answer.outcome, answer.truncated, len(answer.body)) == (FetchOutcome.FETCHED, True, 2 * 1024 * 1024)


@pytest.mark.parametrize(("pause_s", "limits"), [(5.0, {"idle_timeout_s": 0.1}), (0.02, {"total_timeout_s": 0.3})])
def test_slow_bodies_time_out(loopback: Web, pause_s: float, limits: dict[str, Any]) -> None:
    """A body that falls silent, and one that drips for ever, end in a timeout that may be tried again."""

    async def slow(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/html"})
        await response.prepare(request)
        while True:
            await response.write(b"<")
            await asyncio.sleep(pause_s)

    loopback.routes["a.test/slow"] = slow
    answer = fetch(loopback, "http://a.test/slow", **limits)
    assert (answer.outcome, answer.reason, answer.transient, answer.body) == (FetchOutcome.FAILED, "timeout", True, b"")


def test_a_silent_server_times_out_as_unreachable(loopback: Web) -> None:
    """A server that takes the connection and says nothing counts as a connection failure."""

    async def silent(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(10)
        return web.Response()

    loopback.routes["a.test/silent"] = silent
    answer = fetch(loopback, "http://a.test/silent", idle_timeout_s=0.1)
    assert (answer.reason, answer.unreachable, answer.status) == ("timeout", True, 0)


def test_redirects_of_the_site_are_followed(loopback: Web) -> None:
    """Redirects on the same host are followed, relative ones too, with the delay kept between the hops."""
    loopback.routes |= {
        "a.test/1": redirect("/2"),
        "a.test/2": redirect("https://a.test/3#x", 301),
        "a.test/3": page("end"),
    }
    answer = fetch(loopback, "http://a.test/1", delay_s=0.1)
    assert (answer.outcome, answer.final_url) == (FetchOutcome.FETCHED, "https://a.test/3")
    assert loopback.paths("a.test") == ["/1", "/2", "/3"] and not loopback.overlaps("a.test")
    assert all(gap > 0.05 for gap in loopback.gaps("a.test"))


def test_redirect_loops_end(loopback: Web) -> None:
    """A loop ends after the limit of hops."""
    loopback.routes["a.test/loop"] = redirect("/loop")
    answer = fetch(loopback, "http://a.test/loop", delay_s=0.001)
    assert (answer.outcome, answer.reason) == (FetchOutcome.FAILED, "too_many_redirects")
    assert len(loopback.seen) == 11


@pytest.mark.parametrize(
    ("location", "outcome", "reason"),
    [
        ("http://other.test/", FetchOutcome.REFUSED, "redirect_offsite"),
        ("/private/x", FetchOutcome.REFUSED, "robots"),
        ("ftp://a.test/", FetchOutcome.FAILED, "bad_redirect"),
        ("http://[bad", FetchOutcome.FAILED, "bad_redirect"),
    ],
)
def test_redirects_that_are_not_followed(loopback: Web, location: str, outcome: FetchOutcome, reason: str) -> None:
    """Another site's page, a disallowed one, and what is no web URL are not requested."""
    loopback.routes |= {"a.test/go": redirect(location), "other.test/": page("x"), "a.test/private/x": page("x")}
    answer = fetch(loopback, "http://a.test/go")
    assert (answer.outcome, answer.reason) == (outcome, reason)
    assert [seen.path for seen in loopback.seen] == ["/go"]


def test_the_www_twin_is_followed_under_its_own_robots(loopback: Web) -> None:
    """A redirect to the same name with www is followed if that host's robots.txt, asked once, allows it."""
    loopback.routes |= {
        "a.test/yes": redirect("https://www.a.test/yes"),
        "a.test/no": redirect("https://www.a.test/no"),
        "www.a.test/yes": page("here"),
        "www.a.test/no": page("never"),
        "www.a.test/robots.txt": Reply(b"User-agent: *\nDisallow: /no"),
    }

    async def main() -> list[FetchResult]:
        settings = settings_for(loopback.target)
        async with Fetcher(settings) as fetcher:
            jobs = [
                Job(RequestKind.PAGE, "a.test", f"https://a.test/{path}", 0.01, OPEN) for path in ("yes", "no", "yes")
            ]
            return [await fetcher.fetch(job) for job in jobs]

    yes, no, _ = asyncio.run(main())
    assert (yes.outcome, yes.final_url) == (FetchOutcome.FETCHED, "https://www.a.test/yes")
    assert (no.outcome, no.reason) == (FetchOutcome.REFUSED, "robots")
    assert loopback.paths("www.a.test") == ["/robots.txt", "/yes", "/yes"]


def test_the_twins_crawl_delay_is_kept(loopback: Web) -> None:
    """The hop to the www twin waits the larger of both delays since its robots.txt; beyond the cap it is not made."""
    loopback.routes |= {
        "a.test/x": redirect("https://www.a.test/x"),
        "www.a.test/x": page("here"),
        "www.a.test/robots.txt": Reply(b"User-agent: *\nCrawl-delay: 0.3"),
        "b.test/x": redirect("https://www.b.test/x"),
        "www.b.test/robots.txt": Reply(b"User-agent: *\nCrawl-delay: 121"),
    }
    assert fetch(loopback, "https://a.test/x").outcome is FetchOutcome.FETCHED
    assert loopback.paths("www.a.test") == ["/robots.txt", "/x"] and loopback.gaps("www.a.test")[0] > 0.2
    answer = fetch(loopback, "https://b.test/x")
    assert (answer.outcome, answer.reason) == (FetchOutcome.REFUSED, "crawl_delay")
    assert loopback.paths("www.b.test") == ["/robots.txt"]


def test_every_request_is_told(loopback: Web) -> None:
    """An answer names each HTTP request that was made for it with its outcome: hops, and the twin's robots.txt."""
    loopback.routes |= {
        "a.test/1": redirect("/2"),
        "a.test/2": redirect("https://www.a.test/3"),
        "www.a.test/3": page("end"),
        "a.test/off": redirect("http://other.test/"),
        "a.test/loop": redirect("/loop"),
    }

    def told(answer: FetchResult) -> list[tuple[str, str]]:
        return [(request.kind.value, request.outcome) for request in answer.requests]

    answer = fetch(loopback, "https://a.test/1")
    assert told(answer) == [("page", "redirected")] * 2 + [("robots", "failed"), ("page", "fetched")]
    assert answer.requests[-1].body_bytes == len(answer.body) and all(r.duration_s > 0 for r in answer.requests)
    assert told(fetch(loopback, "http://a.test/off")) == [("page", "redirected")]
    assert told(fetch(loopback, "http://a.test/gone")) == [("page", "failed")]
    assert told(fetch(loopback, "http://a.test/loop", delay_s=0.001)) == [("page", "redirected")] * 11


def test_the_duration_is_that_of_the_requests(loopback: Web) -> None:
    """Waiting for a host's turn between hops is not counted as slowness of the host."""
    loopback.routes |= {"a.test/1": redirect("/2"), "a.test/2": page("end")}
    answer = fetch(loopback, "http://a.test/1", delay_s=0.5)
    assert answer.duration_ms < 500 and loopback.gaps("a.test")[0] > 0.4


def test_headers_are_cleaned(loopback: Web) -> None:
    """Header bytes that are no UTF-8, and control characters, reach neither the record nor the charset."""
    loopback.routes["a.test/x"] = raw(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\xe9; charset=\xe9\r\nServer: caf\xe9\r\nETag: \xc3\xa4\xff\r\n"
        b"X-Robots-Tag: noai, \xe9\r\nRetry-After: \xe9\r\nContent-Length: 9\r\nConnection: close\r\n\r\n<html><p>"
    )
    answer = fetch(loopback, "http://a.test/x")
    told = [*answer.headers.values(), answer.content_type, answer.encoding, answer.final_url, *answer.opt_out]
    assert all(text.encode().decode() == text and text.isprintable() for text in told)
    assert answer.headers["server"] == "café"


@pytest.mark.parametrize("location", [b"/caf\xe9", b"/caf\xc3\xa9"])
def test_locations_with_raw_bytes_are_followed(loopback: Web, location: bytes) -> None:
    """A Location in bytes beyond ASCII leads to the URL that it means."""
    loopback.routes["a.test/go"] = raw(
        b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n"
    )
    assert fetch(loopback, "http://a.test/go").final_url == "http://a.test/caf%C3%A9"


def test_a_location_that_is_too_long_is_not_cut(loopback: Web) -> None:
    """A redirect beyond the length of a URL ends as a bad redirect; one below it is followed whole."""
    long = "/" + "x" * 1500
    loopback.routes |= {
        "a.test/long": redirect(long),
        f"a.test{long}": page("end"),
        "a.test/longer": redirect("/" + "x" * 3000),
    }
    assert fetch(loopback, "http://a.test/long").final_url == f"http://a.test{long}"
    assert fetch(loopback, "http://a.test/longer").reason == "bad_redirect"


def test_robots_txt_redirects_anywhere_five_times(loopback: Web) -> None:
    """robots.txt may lead to another host; after five redirects it counts as unavailable."""
    loopback.routes |= {
        "a.test/robots.txt": redirect("http://b.test/r"),
        "b.test/r": Reply(b"User-agent: *\nDisallow: /", headers={"Content-Type": "text/plain"}),
        "c.test/robots.txt": redirect("/robots.txt"),
    }
    assert fetch(loopback, "http://a.test/robots.txt", RequestKind.ROBOTS).body.endswith(b"Disallow: /")
    answer = fetch(loopback, "http://c.test/robots.txt", RequestKind.ROBOTS)
    assert (answer.reason, answer.status) == ("too_many_redirects", 302)
    assert len(loopback.paths("c.test")) == 6


@pytest.mark.parametrize(("address", "host"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_allow_private_lifts_the_guard_for_both_families(address: str, host: str) -> None:
    """Without the guard, loopback is fetched over IPv4 and IPv6 alike; with it, neither is."""

    async def main() -> list[FetchResult]:
        async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>")
            writer.close()

        try:
            server = await asyncio.start_server(reply, address, 0)
        except OSError:
            pytest.skip(f"this machine has no {address}")
        url = f"http://{host}:{server.sockets[0].getsockname()[1]}/"
        results = []
        async with server:
            for allow_private in (True, False):
                settings = settings_for("", resolve_to={}, allow_private=allow_private)
                async with Fetcher(settings) as fetcher:
                    results.append(await fetcher.fetch(Job(RequestKind.PAGE, host, url, 0.01, OPEN)))
        return results

    reached, refused = asyncio.run(main())
    assert (reached.outcome, reached.address) == (FetchOutcome.FETCHED, address)
    assert (refused.outcome, refused.reason) == (FetchOutcome.REFUSED, "private_address")


class Poisoned(AbstractResolver):
    """DNS that answers with loopback."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        kind = socket.AF_INET
        return [ResolveResult(hostname=host, host="127.0.0.1", port=self._port, family=kind, proto=0, flags=0)]

    async def close(self) -> None:
        """Nothing."""


def test_private_addresses_are_refused_by_literal_and_by_dns(loopback: Web) -> None:
    """Neither an IP literal nor a DNS answer nor IPv6 wrapping leads to a private address; nothing is connected."""
    settings = CrawlSettings(contact="a@example.org", delay_s=0.01, domain_delay_s=0, address_delay_s=0)
    for url in (
        f"http://127.0.0.1:{loopback.port}/",
        f"http://0x7f000001:{loopback.port}/",
        f"http://[::ffff:127.0.0.1]:{loopback.port}/",
        "http://169.254.169.254/latest/meta-data/",
        "http://host.test/",
    ):
        answer = fetch_with(settings, url, resolver=Poisoned(loopback.port))
        assert (answer.outcome, answer.reason) == (FetchOutcome.REFUSED, "private_address"), url
    assert loopback.seen == []


def test_private_addresses_are_refused_on_a_redirect(loopback: Web) -> None:
    """A public page (here, the one allowed address) that leads to a private one gets nothing there."""
    loopback.routes["a.test/robots.txt"] = redirect("http://169.254.169.254/latest/meta-data/")
    answer = fetch(loopback, "http://a.test/robots.txt", RequestKind.ROBOTS)
    assert (answer.outcome, answer.reason) == (FetchOutcome.REFUSED, "private_address")


@pytest.mark.parametrize(
    ("reply", "outcome", "reason", "transient"),
    [
        (Reply(b"x", 404), FetchOutcome.FAILED, "http_404", False),
        (Reply(b"x", 500), FetchOutcome.FAILED, "http_500", True),
        (Reply(b"x", 429, {"Retry-After": "7"}), FetchOutcome.FAILED, "http_429", True),
        (Reply(b"x", 304), FetchOutcome.FAILED, "http_304", False),
        (Reply(b"%PDF-1.4", headers={"Content-Type": "application/pdf"}), FetchOutcome.REFUSED, "content_type", False),
        (Reply(b"\0\1\2\3" * 300, headers={"Content-Type": "text/html"}), FetchOutcome.REFUSED, "content_type", False),
        (Reply(b"x" * 50, headers=HTML | {"Content-Encoding": "gzip"}), FetchOutcome.FAILED, "bad_encoding", False),
        (Reply(b"x", headers=HTML | {"Content-Encoding": "zstd"}), FetchOutcome.FAILED, "bad_encoding", False),
        (Reply(b""), FetchOutcome.FETCHED, "", False),
    ],
)  # fmt: skip
def test_statuses_and_types(loopback: Web, reply: Reply, outcome: FetchOutcome, reason: str, transient: bool) -> None:
    """Each kind of response has its outcome and reason; only overload and server errors are tried again."""
    loopback.routes["a.test/x"] = reply
    answer = fetch(loopback, "http://a.test/x")
    assert (answer.outcome, answer.reason, answer.transient) == (outcome, reason, transient)
    assert answer.retry_after_s == (7.0 if reply.status == 429 else None)
    assert answer.body == b"" and not answer.unreachable


def test_broken_http(loopback: Web) -> None:
    """Connections that break, short bodies, nonsense and unknown hosts are failures with a reason, not exceptions."""

    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/html", "Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"<html>")
        assert request.transport is not None
        request.transport.close()
        return response

    async def nonsense(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.write(b"HTTP/1.1 banana\r\n" + b"x" * 100 + b"\r\n\r\n")
        request.transport.close()
        return web.Response()

    loopback.routes |= {"a.test/cut": cut, "a.test/nonsense": nonsense}
    answer = fetch(loopback, "http://a.test/cut")
    assert (answer.outcome, answer.reason, answer.transient) == (FetchOutcome.FAILED, "connection", True)
    assert fetch(loopback, "http://a.test/nonsense").outcome is FetchOutcome.FAILED
    settings = settings_for(loopback.target, resolve_to={"a.test": loopback.target})
    assert (fetch_with(settings, "http://unknown.test/").reason) == "dns"
    settings = settings_for(loopback.target, resolve_to={"*": "127.0.0.1:1"})
    answer = fetch_with(settings, "http://a.test/")
    assert (answer.reason, answer.unreachable) == ("connection", True)


def test_opt_outs_are_recorded_and_obeyed_on_request(loopback: Web) -> None:
    """A page that opts out is fetched with its signals, or refused without a body where the policy says so."""
    headers = {"Content-Type": "text/html", "X-Robots-Tag": "noai"}
    loopback.routes["a.test/x"] = Reply(b"<html><meta name=robots content=nofollow>", headers=headers)
    answer = fetch(loopback, "http://a.test/x")
    assert (answer.outcome, answer.opt_out) == (FetchOutcome.FETCHED, ["header:noai", "meta:nofollow"])
    answer = fetch(loopback, "http://a.test/x", obey_opt_out=True)
    assert (answer.outcome, answer.reason, answer.packed, answer.body) == (FetchOutcome.REFUSED, "opt_out", b"", b"")
    assert answer.opt_out == ["header:noai", "meta:nofollow"]


def test_a_body_that_ends_early_is_flagged(loopback: Web) -> None:
    """A compressed body whose stream stops before its end is kept as far as it goes, and flagged as truncated."""
    sent = gzip.compress(b"<html>" + bytes(range(32, 127)) * 20)[:-20]
    loopback.routes["a.test/x"] = Reply(sent, headers=HTML | {"Content-Encoding": "gzip"})
    answer = fetch(loopback, "http://a.test/x")
    assert (answer.outcome, answer.truncated) == (FetchOutcome.FETCHED, True)
    assert answer.body.startswith(b"<html>")


def test_no_fetcher_without_a_contact() -> None:
    """The fetcher refuses to be made without a contact."""
    with pytest.raises(NoContact):
        Fetcher(CrawlSettings())
