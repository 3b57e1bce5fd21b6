"""A web on loopback: any number of hosts behind one port, told apart by the Host header.

The crawler is sent here by a resolver override, so the pages keep their own host names. The server runs in a thread of
its own and writes down every request, so that a test can ask afterwards who asked for what, and when.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from aiohttp import web

HTML = {"Content-Type": "text/html; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class Response:
    """What a path answers. `body` goes out as it is: a Content-Encoding in `headers` must already be applied to it."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: HTML)
    body: bytes = b""
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ServedRequest:
    """One request as it was served. Times are those of the clock, `path` includes the query as it was sent."""

    started: float
    ended: float
    host: str
    path: str
    user_agent: str
    status: int


NOT_FOUND = Response(404, {"Content-Type": "text/plain"}, b"nothing here\n")


class LoopbackWeb:
    """Serves `hosts` (host → path → Response) on 127.0.0.1, as a context manager or by `start` and `stop`.

    Host names are lower case and without port. A path is looked up as it was sent, first with its query, then without;
    both mappings are only asked by `[]`, so they may make their answers when asked (KeyError = 404).
    """

    def __init__(
        self,
        hosts: Mapping[str, Mapping[str, Response]],
        *,
        port: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hosts = hosts
        self._port = port
        self._clock = clock
        self._requests: list[ServedRequest] = []
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._error: OSError | None = None

    @property
    def port(self) -> int:
        """The port that was asked for, or the one that the system chose; 0 before the start."""
        return self._port

    @property
    def address(self) -> str:
        """`127.0.0.1:port`, as the crawler's resolver override wants it."""
        return f"127.0.0.1:{self._port}"

    @property
    def requests(self) -> list[ServedRequest]:
        """All requests whose answer has been made, in the order in which that was done."""
        return list(self._requests)

    def start(self) -> None:
        """Listen; returns when requests are taken. Raises OSError when the port is taken."""
        if self._thread is not None:
            raise RuntimeError("this web is already up")
        self._error = None
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="loopback-web", daemon=True)
        self._thread.start()
        ready.wait()
        if self._error is not None:
            self._thread.join()
            self._thread = None
            raise self._error

    def stop(self) -> None:
        """Close the port and drop what is under way. Does nothing when the web is not up."""
        if self._thread is None:
            return
        assert self._loop is not None and self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, ready: threading.Event) -> None:
        asyncio.run(self._serve(ready))

    async def _serve(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        runner = web.ServerRunner(web.Server(self._answer, access_log=None), shutdown_timeout=0.1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", self._port)
            await site.start()
            self._port = int(runner.addresses[0][1])
        except OSError as error:
            self._error = error
            self._stop.set()
        ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        started = self._clock()
        host = host_name(request.headers.get("Host", ""))
        path = request.raw_path
        found = self._find(host, path)
        if found.delay_s > 0:
            await asyncio.sleep(found.delay_s)
        agent = request.headers.get("User-Agent", "")
        self._requests.append(ServedRequest(started, self._clock(), host, path, agent, found.status))
        return web.Response(status=found.status, headers=found.headers, body=found.body)

    def _find(self, host: str, path: str) -> Response:
        try:
            paths = self._hosts[host]
        except KeyError:
            return NOT_FOUND
        for candidate in (path, path.partition("?")[0]):
            try:
                return paths[candidate]
            except KeyError:
                continue
        return NOT_FOUND


def host_name(authority: str) -> str:
    """The host of a Host header: lower case, without port and final dot."""
    host, colon, port = authority.strip().rpartition(":")
    if not colon or not port.isdigit():
        host = authority.strip()
    return host.lower().rstrip(".")
