"""Whatever a client sends or fails to send: at most a 4xx, no traceback in the log, and an end in time."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_from_bytes

import pytest
import structlog
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farmwatch.config.config import load
from farmwatch.config.opening import opened
from farmwatch.console.access import Access
from farmwatch.console.actions import ACTIONS
from farmwatch.console.app import application
from farmwatch.console.serving import runner_of
from farmwatch.console.state_pages import StatePages
from stream.opening import open_log
from stream.schema.orders import Orders
from tests.support.front_door import PARTITIONS
from tests.support.web.console_browser import TOKEN, console_of

_READ_S = 30.0  # most time for an answer


class Sent(NamedTuple):
    """A request; header values are bytes, as strangers send them."""

    method: str
    target: bytes
    headers: Mapping[str, bytes]
    body: bytes = b""
    leaves: bool = False  # closes the connection without an answer

    def encoded(self) -> bytes:
        """The request on the wire."""
        lines = [self.method.encode() + b" " + self.target + b" HTTP/1.1"]
        lines += [name.encode() + b": " + value for name, value in self.headers.items()]
        return b"\r\n".join([*lines, b"", self.body])


class RawConsole:
    """A console that answers at `port`."""

    def __init__(self, port: int, server: web.Server) -> None:
        self.port, self._server = port, server
        access = Access(TOKEN, "127.0.0.1", port, ())
        ((name, morsel),) = access.let_in().cookies.items()
        self.form_token = access.form_token
        self.headers = {
            "Host": f"127.0.0.1:{port}".encode(),
            "Origin": f"http://127.0.0.1:{port}".encode(),
            "Cookie": f"{name}={morsel.value}".encode(),
            "Connection": b"close",
        }

    async def status(self, sent: Sent) -> int:
        """The status of the answer; 0 for a client that leaves."""
        before = self._server.requests_count
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(sent.encoded())
            await writer.drain()
            if sent.leaves:
                await self._until(lambda: self._server.requests_count > before)
                writer.close()
                await self._until(lambda: not self._server.connections)
                return 0
            line = await asyncio.wait_for(reader.readline(), _READ_S)
            await asyncio.wait_for(reader.read(), _READ_S)  # the whole answer
            return int(line.split()[1])
        finally:
            writer.close()

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(_READ_S):
            while not holds():
                await asyncio.sleep(0.001)

    async def ended(self, start: bytes) -> int:
        """The bytes that come until the console closes a connection on which only `start` is sent."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(start)
            return len(await asyncio.wait_for(reader.read(), _READ_S))
        finally:
            writer.close()

    async def never_reads(self, sent: Sent) -> None:
        """Send a request again and again, without reading an answer, until the console ends the connection."""
        loop = asyncio.get_running_loop()
        request = sent._replace(headers={**sent.headers, "Connection": b"keep-alive"}).encoded()
        with socket.socket() as client:
            client.setblocking(False)
            await loop.sock_connect(client, ("127.0.0.1", self.port))
            async with asyncio.timeout(_READ_S):
                with suppress(ConnectionError):
                    while True:
                        await loop.sock_sendall(client, request)


@asynccontextmanager
async def raw_console(
    url: str, folder: Path, request_s: float = 60.0, idle_s: float = 60.0
) -> AsyncIterator[RawConsole]:
    """Serve the console of the log at `url`, with these limits of a request and of a connection."""
    config = load(flags=[f"log.url={url}", f"log.partitions={PARTITIONS}"], environment={}).config
    with opened(config) as log:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        console, _ = console_of(log, config, folder, port)
        runner = runner_of(application(console, Access(TOKEN, "127.0.0.1", port, ()), request_s), idle_s)
        await runner.setup()
        await web.SockSite(runner, listener).start()
        try:
            assert runner.server is not None
            yield RawConsole(port, runner.server)
        finally:
            await runner.cleanup()


PAGES = (
    *("answer", "flow", "sites", "site", "page", "networks", "crawl", "frontier", "runs", "compare", "label"),
    *("rulesets", "letters", "letter", "health"),
)
FIELDS = (
    *("a", "after", "already", "answer", "at", "by", "doctor", "fetch_id", "id", "least", "ruleset", "said", "search"),
    *("settled", "site", "sort", "source", "token", "url", "verdict"),
)
FORM_FIELDS = (
    *("again", "called", "form_token", "host", "id", "name", "number", "order", "reason", "ruleset", "run", "stage"),
    *("text", "token", "where", "why", "a", "b", "after", "answer", "fetch_id", "said"),
)
HEADERS = (
    *("Accept", "Accept-Encoding", "Cookie", "Host", "If-Modified-Since", "If-None-Match", "Origin", "Range"),
    *("Referer", "User-Agent", "X-Forwarded-For", "Upgrade", "Expect", "Content-Type", "Transfer-Encoding"),
)
SPECIAL = [
    *(b"http://[::1", b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"=\x80;", b"9" * 400, b"https://kept.example/garden"),
    *(b"multipart/form-data; boundary=b", b"application/x-www-form-urlencoded; charset=unicode_escape", b"chunked"),
    *(b"pause", b"drop", b"../../etc/passwd", b"live", b"default", b"-1", b"a b", b"%", b"[", b"//", b"gzip", b"first"),
]
VALUES = st.sampled_from(SPECIAL) | st.binary(max_size=40) | st.text(max_size=20).map(lambda of: of.encode())
LINES = VALUES.map(lambda value: bytes(byte for byte in value if byte >= 32))  # others do not pass the parser


@pytest.fixture(autouse=True)
def _no_error_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """By either library, until the console has ended."""
    with structlog.testing.capture_logs() as captured:
        yield
    found = [str(entry) for entry in captured if entry["log_level"] in ("error", "critical")]
    found += [record.getMessage() for record in caplog.get_records("call") if record.levelname in ("ERROR", "CRITICAL")]
    assert found == []


def encoded(fields: dict[str, bytes]) -> bytes:
    return b"&".join(name.encode() + b"=" + quote_from_bytes(value).encode() for name, value in fields.items())


@st.composite
def requests(draw: st.DrawFn, console: RawConsole) -> Sent:
    """A request with the token of the console, of which some values are any bytes."""
    headers = {**console.headers, **draw(st.dictionaries(st.sampled_from(HEADERS), LINES, max_size=3))}
    query = encoded(draw(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4)))
    if draw(st.booleans()):
        page = st.sampled_from(PAGES).map(lambda name: name.encode()) | LINES.map(lambda line: line.replace(b" ", b""))
        path = b"/" + draw(page) + draw(st.sampled_from([b"", b".json"]))
        return Sent(draw(st.sampled_from(["GET", "HEAD"])), path + b"?" + query, headers)
    form = {"form_token": console.form_token.encode(), **draw(st.dictionaries(st.sampled_from(FORM_FIELDS), VALUES))}
    body = encoded(form) if draw(st.booleans()) else draw(VALUES)
    missing = draw(st.sampled_from([0, 0, 5]))
    headers = {"Content-Type": b"application/x-www-form-urlencoded", **headers}
    headers["Content-Length"] = str(len(body) + missing).encode()
    path = draw(st.sampled_from(["/token", *ACTIONS])).encode()
    return Sent("POST", path + b"?" + query, headers, body, leaves=missing > 0)


def test_no_value_is_the_fault_of_the_console(finished: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any bytes in headers, query and form: the answer is below 500, and nothing is logged as an error."""
    monkeypatch.setattr("farmwatch.upkeep.forgetting._SETTLED_S", 0.0)
    with asyncio.Runner() as loop:
        serving = raw_console(finished, tmp_path)
        console = loop.run(serving.__aenter__())

        @settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
        @given(sent=requests(console))
        def ask(sent: Sent) -> None:
            assert loop.run(console.status(sent)) < 500

        try:
            ask()
        finally:
            loop.run(serving.__aexit__(None, None, None))


@pytest.mark.parametrize(
    "target", [b"/sites?search=" + b"a" * 9000, b"/sites\xff?search=\xfe", b"/no/such/page", b"http://[::1", b"*"]
)
@pytest.mark.parametrize(
    "more",
    [{}, {"Referer": b"http://[::1"}, {"Referer": b"\xff"}, {"Expect": b"\xff"}, {"X": b"a" * 9000}, {"Bad name": b""}],
    ids=["plain", "referer", "bytes", "expect", "long", "name"],
)
def test_a_wrong_request_is_answered_without_a_log_line(
    finished: str, tmp_path: Path, target: bytes, more: dict[str, bytes]
) -> None:
    """Addresses and headers that are too long, no text or no HTTP get a 4xx of their own."""

    async def visit() -> int:
        async with raw_console(finished, tmp_path) as console:
            return await console.status(Sent("GET", target, {**console.headers, **more}))

    assert 400 <= asyncio.run(visit()) < 500


FORM_TYPES = ["application/x-www-form-urlencoded", "multipart/form-data; boundary=b"]


@pytest.mark.parametrize("path", ["/token", "/crawl/pause"])
@pytest.mark.parametrize("kind", FORM_TYPES)
def test_a_client_that_leaves_within_a_form_is_no_error(finished: str, tmp_path: Path, path: str, kind: str) -> None:
    """A form whose rest never comes changes nothing and is not logged."""

    async def visit() -> None:
        async with raw_console(finished, tmp_path) as console:
            headers = {**console.headers, "Content-Type": kind.encode(), "Content-Length": b"1000"}
            body = f"form_token={console.form_token}&order=pause".encode()
            await console.status(Sent("POST", path.encode(), headers, body, leaves=True))

    asyncio.run(visit())
    with closing(open_log(finished)) as log:
        assert not Orders(log).pause.on


def test_a_form_that_does_not_come_whole_gets_an_answer(finished: str, tmp_path: Path) -> None:
    """A client that stops within its form is answered after the time of a request."""

    async def visit() -> list[int]:
        async with raw_console(finished, tmp_path, request_s=0.2) as console:
            headers = {**console.headers, "Content-Length": b"1000"}
            sent = [Sent("POST", b"/token", {**headers, "Content-Type": kind.encode()}, b"--b") for kind in FORM_TYPES]
            return [await console.status(one) for one in sent]

    assert asyncio.run(visit()) == [408, 408]


def test_a_request_that_does_not_come_is_closed(finished: str, tmp_path: Path) -> None:
    """A connection is closed without an answer if its headers do not come whole, or nothing comes."""

    async def visit() -> list[int]:
        async with raw_console(finished, tmp_path, idle_s=0.2) as console:
            return [await console.ended(start) for start in (b"", b"GET /answer HTTP/1.1\r\nHost: a")]

    assert asyncio.run(visit()) == [0, 0]


def test_an_answer_that_nobody_reads_ends(finished: str, tmp_path: Path) -> None:
    """A client that sends requests and never reads loses its connection, and the console ends at once."""

    async def visit() -> None:
        async with raw_console(finished, tmp_path, request_s=0.2) as console:
            await console.never_reads(Sent("GET", b"/static/console.css", {**console.headers}))

    asyncio.run(visit())


def test_a_page_that_takes_too_long_says_so(finished: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser gets an answer while the work goes on."""
    end = threading.Event()
    monkeypatch.setattr(StatePages, "flow", lambda *_: end.wait(30))

    async def visit() -> int:
        async with raw_console(finished, tmp_path, request_s=0.2) as console:
            try:
                return await console.status(Sent("GET", b"/flow", console.headers))
            finally:
                end.set()

    assert asyncio.run(visit()) == 503
