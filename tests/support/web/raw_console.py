"""A console on loopback as `farmwatch up` serves it, and raw requests to it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from aiohttp import web

from farmwatch.config.config import load
from farmwatch.config.opening import opened
from farmwatch.console.access import Access
from farmwatch.console.app import application
from farmwatch.console.serving import runner_of
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
        loop, request = (
            asyncio.get_running_loop(),
            sent._replace(headers={**sent.headers, "Connection": b"keep-alive"}).encoded(),
        )
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
