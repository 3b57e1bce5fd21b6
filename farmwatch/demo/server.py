"""A web on loopback: any number of hosts on one port, distinguished by the Host header.

A resolver override sends the crawler here, so pages keep their host names. Requests are recorded for tests.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from aiohttp import web

_PORT = re.compile(r":\d*$")
HTML = {"Content-Type": "text/html; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class Response:
    """The response of a path. `body` is sent unchanged: a Content-Encoding in `headers` must already be applied."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: HTML)
    body: bytes = b""
    delay_s: float = 0.0


class ServedRequest(NamedTuple):
    """A served request; `started` is in monotonic seconds."""

    started: float
    host: str
    path: str  # as sent, with its query


NOT_FOUND = Response(404, {"Content-Type": "text/plain"}, b"nothing here\n")


class LoopbackWeb:
    """A context manager that serves `hosts` (host → path → Response) on a free port of 127.0.0.1.

    Host names are in lower case, without port. A path is looked up as sent, first with its query, then without. Both
    mappings are used only by `[]`, so they may build their responses on demand (KeyError = 404).
    """

    def __init__(self, hosts: Mapping[str, Mapping[str, Response]]) -> None:
        self._hosts = hosts
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="loopback-web", daemon=True)
        self.requests: list[ServedRequest] = []  # in the order of the responses
        self.port = 0

    @property
    def address(self) -> str:
        """`127.0.0.1:port`, for the resolver override of the crawler."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        runner = web.ServerRunner(web.Server(self._answer, access_log=None), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = int(runner.addresses[0][1])
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        started = time.monotonic()
        host = _PORT.sub("", request.headers.get("Host", "")).lower().rstrip(".")
        response = NOT_FOUND
        for path in (request.raw_path, request.raw_path.partition("?")[0]):
            with suppress(KeyError):
                response = self._hosts[host][path]
                break
        if response.delay_s > 0:
            await asyncio.sleep(response.delay_s)
        self.requests.append(ServedRequest(started, host, request.raw_path))
        return web.Response(status=response.status, headers=response.headers, body=response.body)
