"""Connections on loopback: DNS, the race of address families, rebinding, and spacing by domain and address."""

from __future__ import annotations

import asyncio
import inspect
import resource
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import aiohttp
import pytest
import yarl
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from structlog.testing import capture_logs

from crawler.fetch.connections import Connections, room_for
from crawler.fetch.fetcher import Fetcher
from crawler.fetch.jobs import FetchResult
from crawler.fetch.thread import ClaimResult, FetchThread
from crawler.settings import CrawlSettings
from stream.schema.vocabulary import FetchOutcome
from tests.support.web.crawl_driver import settings_for
from tests.support.web.fetching import FixedDns, fetch, fetch_all, job_for
from tests.support.web.loopback import Web, page, redirect
from tests.support.web.loopback_dns import A, LoopbackDns, Zone

pytestmark = pytest.mark.slow

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
PUBLIC = ("aiohttp.abc", "aiohttp.http", "aiohttp.typedefs", "aiohttp.web")


def open_settings(**changes: Any) -> CrawlSettings:
    """Settings without a table of addresses, so that DNS is used."""
    return settings_for("127.0.0.1:1", resolve_to={}, **changes)


def test_names_are_found_by_the_nameserver(loopback: Web, dns: LoopbackDns) -> None:
    """A page is fetched from the address that the configured nameserver returns, with one query for two pages."""
    dns.put("a.test", "127.0.0.1")
    loopback.routes["a.test/x"] = page("here")
    url = f"http://a.test:{loopback.port}/x"
    answers = fetch_all(open_settings(nameservers=[dns.nameserver]), url, url)
    assert [(answer.outcome, answer.address) for answer in answers] == [(FetchOutcome.FETCHED, "127.0.0.1")] * 2
    assert dns.count("a.test") == 2


def test_what_was_let_through_is_what_is_connected_to(loopback: Web, dns: LoopbackDns) -> None:
    """A name whose answers change with each query (DNS rebinding) is looked up once per request."""
    dns.names["a.test"] = [Zone(("127.0.0.1",), ttl=0), Zone(("127.0.0.9",), ttl=0)]
    loopback.routes["a.test/x"] = page("here")
    url = f"http://a.test:{loopback.port}/x"
    (answer,) = fetch_all(open_settings(nameservers=[dns.nameserver], dns_least_s=0.001, dns_most_s=0.002), url)
    assert answer.address == "127.0.0.1" and dns.asked.count(("a.test", A)) == 1


def test_a_dead_address_of_one_family_costs_little(loopback: Web) -> None:
    """If ::1 refuses, the page comes from 127.0.0.1, and the answer names that address. The name is looked up once."""
    loopback.routes["a.test/x"] = page("here")
    url = f"http://a.test:{loopback.port}/x"
    for addresses in (("::1", "127.0.0.1"), ("127.0.0.1", "::1")):
        names = FixedDns(*addresses)
        (answer,) = fetch_all(open_settings(), url, resolver=names)
        assert (answer.outcome, answer.address, names.asked) == (FetchOutcome.FETCHED, "127.0.0.1", 1)


def test_a_silent_address_is_overtaken() -> None:
    """If an address does not accept connections, the address of the other family is used."""

    async def main() -> FetchResult:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>")

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        full = socket.socket(socket.AF_INET6)
        fillers = [socket.socket(socket.AF_INET6) for _ in range(4)]
        try:
            full.bind(("::1", port))
            full.listen(0)
            for filler in fillers:  # its backlog is full: further connections hang
                filler.setblocking(False)
                filler.connect_ex(("::1", port))
            async with server, Fetcher(open_settings(), resolver=FixedDns("::1", "127.0.0.1")) as fetcher:
                return await fetcher.fetch(job_for(f"http://a.test:{port}/x"))
        finally:
            for one in (full, *fillers):
                one.close()

    try:
        answer = asyncio.run(main())
    except OSError as error:
        pytest.skip(f"no IPv6 on loopback: {error}")
    assert (answer.outcome, answer.address) == (FetchOutcome.FETCHED, "127.0.0.1") and answer.duration_ms < 2000


def test_one_address_of_each_family_is_asked_for() -> None:
    """Only the first address of each family is tried; addresses that refused a connection come last for a while."""
    now = 1000.0
    many = FixedDns("192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2")

    async def main() -> None:
        nonlocal now
        connections = Connections(open_settings(), many, lambda: now)

        async def found(host: str = "a.test") -> list[str]:
            return [result["host"] for result in await connections.find(host, 80)]

        assert await found() == ["192.0.2.1", "2001:db8::1"]
        connections.failed(await found())
        assert await found() == ["192.0.2.2", "2001:db8::2"]
        now += 601
        assert await found() == ["192.0.2.1", "2001:db8::1"]
        assert await found("[2001:db8::7]") == ["2001:db8::7"] and await found("192.0.2.9") == ["192.0.2.9"]

    asyncio.run(main())


def test_the_hop_of_a_redirect_is_spaced_too(loopback: Web) -> None:
    """A redirect within the site waits for the delay of its address, without a place in the queue."""
    loopback.routes |= {"a.test/": redirect("/end"), "a.test/end": page("x")}
    answer = fetch(loopback.target, "http://a.test/", address_delay_s=0.3)
    assert answer.outcome is FetchOutcome.FETCHED and loopback.gaps("a.test")[0] > 0.27


# Each private or undocumented part of aiohttp that crawler/fetch/connections.py uses
INTERNALS: list[tuple[Callable[..., object], set[str]]] = [
    (ResponseHandler.set_response_params, {"auto_decompress", "read_until_eof", "max_line_size", "max_headers"}),
    (ResponseHandler.set_response_params, {"max_field_size"}),
    (ResponseHandler.set_exception, {"exc"}),
    (aiohttp.TCPConnector.connect, {"req", "traces", "timeout"}),
    (aiohttp.TCPConnector._release, {"key", "protocol", "should_close"}),
    (aiohttp.TCPConnector._get, {"key", "traces"}),
    (aiohttp.ClientRequest.__init__, {"method", "url", "loop"}),
    (aiohttp.TCPConnector._wrap_create_connection, {"args", "addr_infos", "req", "timeout"}),
    (aiohttp.TCPConnector._wrap_existing_connection, {"args", "req", "timeout"}),
    (aiohttp.connector.Connection.add_callback, {"callback"}),
]
PRIVATE = {"_loop", "_payload", "_factory", "_conns", "_get", "_release"}


def test_the_internals_of_aiohttp_that_we_use_are_there() -> None:
    """aiohttp still has the private names that the crawler uses; a new version may move them."""

    async def main() -> None:
        protocol = ResponseHandler(loop=asyncio.get_running_loop())
        assert {"_payload", "_loop", "transport", "data_received", "read"} <= set(dir(protocol))
        async with aiohttp.TCPConnector() as connector:
            assert isinstance(connector._factory, partial) and connector._factory.func is ResponseHandler
            assert connector._conns == {} and connector._loop is protocol._loop
            assert inspect.isdatadescriptor(aiohttp.connector.Connection.protocol)
        request = aiohttp.ClientRequest("GET", yarl.URL("https://a.test:8/"), loop=protocol._loop)
        assert request.connection_key == ConnectionKey("a.test", 8, True, True, None, None, None)

    asyncio.run(main())
    for function, names in INTERNALS:
        assert names <= set(inspect.signature(function).parameters), function


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "set_to", "enough"),
    [
        (4096, 4096, 1000, None, True),
        (256, 4096, 1000, 1256, True),
        (256, resource.RLIM_INFINITY, 1000, 1256, True),
        (256, 1024, 1000, 1024, False),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, 1000, None, True),
    ],
)
def test_the_limit_is_raised_as_far_as_it_goes(
    soft: int, hard: int, wanted: int, set_to: int | None, enough: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The soft limit of open files is raised as needed, up to the hard limit; a limit that is too low is logged."""
    done: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: done.append(limits))
    with capture_logs() as logs:
        room_for(wanted)
    assert [entry["event"] for entry in logs] == ([] if enough else ["few_open_files"])
    assert done == ([] if set_to is None else [(set_to, hard)])


def test_why_a_name_leads_nowhere(dns: LoopbackDns) -> None:
    """Unknown name, no address and no answer have different reasons; each of them may be retried."""
    dns.names |= {"empty.test": [Zone()], "silent.test": [Zone(silent=True)]}
    settings = open_settings(nameservers=[dns.nameserver], connect_timeout_s=0.3)
    answers = fetch_all(settings, "http://nobody.test/", "http://empty.test/", "http://silent.test/")
    assert [answer.reason for answer in answers] == ["dns_no_name", "dns_no_address", "dns"]
    assert all(answer.unreachable and answer.transient and len(answer.requests) == 1 for answer in answers)


def test_the_thread_hands_on_its_share(loopback: Web) -> None:
    """A thread with a quarter of the sites keeps four times the delay, and its jobs are deferred."""
    loopback.routes["a.test/"] = page("x")
    thread = FetchThread(Fetcher(settings_for(loopback.target, address_delay_s=10.0)))
    try:
        thread.share(0.25)
        thread.submit({1: job_for("http://a.test/")})
        done: list[ClaimResult] = []
        while not done:
            done = thread.collect()
        answer = done[0].answer
    finally:
        thread.close()
    assert answer.outcome is FetchOutcome.DEFERRED and answer.not_before_ms - answer.started_ms > 39_000


@pytest.mark.parametrize(
    "late", [HEAD % 50, HEAD % 5 + b"STALE", 2**20 * b"x"], ids=["a head", "a whole response", "a flood"]
)
def test_what_comes_between_two_requests_answers_none(late: bytes) -> None:
    """A connection on which a server wrote after its response is not used again: the next page is fetched as it is."""
    connections = 0
    answered, written = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
            writer.write(HEAD % 2 + path)
            if path == b"/1":
                await answered.wait()
                writer.write(late)
                written.set()

    async def main() -> list[FetchResult]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        settings = settings_for(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        async with server, Fetcher(settings) as fetcher:
            first = await fetcher.fetch(job_for("http://a.test/1"))
            answered.set()
            await written.wait()
            return [first, await asyncio.wait_for(fetcher.fetch(job_for("http://a.test/2")), 60)]

    answers = asyncio.run(main())
    assert [answer.body for answer in answers] == [b"/1", b"/2"] and connections == 2
