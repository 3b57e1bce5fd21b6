"""A web on loopback that sends raw bytes and logs all requests.

A handler gets a `Visit` and writes any bytes to the socket, without a library in between: false headers, resets, a byte
every second.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from tests.support.web.server_thread import ServerThread

_HEAD_CAP = 65_536
_TICK_S = 0.004
_LONGEST_S = 60.0  # a handler gives up after this time


@dataclass(slots=True)
class Seen:
    """A request as the server saw it; times are monotonic seconds. `ended` is 0 while it is answered.

    It arrived between `earliest` and `began`, when it was read. On a busy machine these times may differ a lot.
    """

    host: str
    path: str
    headers: dict[str, str]
    address: str
    began: float
    ended: float = 0.0
    status: str = ""  # of the first line that was sent
    earliest: float = 0.0
    port: int = 0


@dataclass(slots=True)
class Visit:
    host: str
    path: str
    port: int
    headers: dict[str, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    other_port: int = 0  # the same web, too
    number: int = 1  # of this host's requests for this path
    keep: bool = False  # whether the connection stays open for the next request
    sent: bytearray = field(default_factory=bytearray)  # the first bytes

    async def send(self, data: bytes) -> None:
        """Write, and wait if the client reads slowly."""
        if len(self.sent) < 20:
            self.sent += data[:20]
        self.writer.write(data)
        await self.writer.drain()

    async def gone(self) -> None:
        """Wait until the client disconnects."""
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(_LONGEST_S):
                while await self.reader.read(65_536):
                    pass

    def reset(self) -> None:
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Handler = Callable[[Visit], Awaitable[None]]


def head(status: str = "200 OK", *lines: str, **fields: str) -> bytes:
    """A status line and headers: `content_type="text/html"` becomes Content-Type."""
    named = [f"{name.replace('_', '-').title()}: {value}" for name, value in fields.items()]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, *named, "", ""]).encode("latin-1", "surrogateescape")


def reply(body: bytes | str = b"", status: str = "200 OK", **fields: str) -> Handler:
    """A valid answer; the connection stays open."""
    data = body.encode() if isinstance(body, str) else body
    fields.setdefault("content_type", "text/html; charset=utf-8")
    wire = head(status, content_length=str(len(data)), **fields) + data

    async def send(visit: Visit) -> None:
        visit.keep = True
        await visit.send(wire)

    return send


class RawWeb(ServerThread):
    """Serves every host name on a port of each of `addresses`, and on another port of the first.

    Use as a context manager.
    """

    def __init__(self, answer: Handler, addresses: Sequence[str] = ("127.0.0.1",)) -> None:
        """`answer` handles each request, by host and path of its visit."""
        super().__init__()
        self._answer = answer
        self._addresses = addresses
        self.seen: list[Seen] = []
        self.port = 0
        self.other_port = 0
        self.longest_round_s = 0.0  # delay of the event loop on this machine
        self._ticks = [0.0, 0.0, 0.0]  # the loop's last checks for requests, oldest first
        self._counts: dict[tuple[str, str], int] = {}

    def listen(self, context: ssl.SSLContext, address: str = "127.0.0.1") -> int:
        return asyncio.run_coroutine_threadsafe(self._listen(address, 0, context), self.loop).result(10)

    def paths(self, host: str) -> list[str]:
        return [seen.path for seen in self.seen if seen.host == host]

    async def _listen(self, address: str, port: int, context: ssl.SSLContext | None = None) -> int:
        server = await asyncio.start_server(
            self._serve, address, port, ssl=context, limit=_HEAD_CAP, backlog=1024, reuse_address=True
        )
        return int(server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        unreadable = (asyncio.IncompleteReadError, asyncio.LimitOverrunError)
        with contextlib.suppress(OSError, ssl.SSLError, asyncio.CancelledError, *unreadable):
            try:
                while await self._one(reader, writer):
                    pass
            finally:
                writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        began = time.monotonic()
        first, *lines = text.split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        host = headers.get("host", "").rpartition(":")[0] or headers.get("host", "")
        path = [*first.split(" "), "", ""][1]
        address, port = writer.get_extra_info("sockname")[:2]
        seen = Seen(host, path, headers, address, began, earliest=self._ticks[0], port=port)
        self.seen.append(seen)
        number = self._counts[host, path] = self._counts.get((host, path), 0) + 1
        visit = Visit(host, path, port, headers, reader, writer, self.other_port, number)
        try:
            await self._answer(visit)
        finally:
            seen.ended = time.monotonic()
            seen.status = visit.sent.decode("latin-1").partition(" ")[2][:3]
        return visit.keep

    async def _tick(self) -> None:
        """Record the loop's rounds: bytes read now arrived after the round before the last one."""
        while True:
            now = time.monotonic()
            if self._ticks[-1]:
                self.longest_round_s = max(self.longest_round_s, now - self._ticks[-1])
            self._ticks = [*self._ticks[1:], now]
            await asyncio.sleep(_TICK_S)

    async def serve(self) -> None:
        self._ticking = self.loop.create_task(self._tick())
        self.port = await self._listen(self._addresses[0], 0)
        self.other_port = await self._listen(self._addresses[0], 0)
        for address in self._addresses[1:]:
            await self._listen(address, self.port)
