"""A web on loopback for tests: any host name, one port, and a log of all requests."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.web.server_thread import ServerThread

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class Seen:
    """A request as the server saw it; times are monotonic seconds."""

    host: str
    path: str
    headers: dict[str, str]
    began: float
    ended: float = 0.0


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a path."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/html; charset=utf-8"})

    def response(self) -> web.Response:
        return web.Response(body=self.body, status=self.status, headers=self.headers)


def page(text: str = "", *links: str) -> Reply:
    anchors = "".join(f'<a href="{link}">{link}</a>' for link in links)
    return Reply(f"<!doctype html><html><body><p>{text}</p>{anchors}</body></html>".encode())


def redirect(to: str, status: int = 302) -> Reply:
    return Reply(status=status, headers={"Location": to})


def raw(reply: bytes) -> Handler:
    """Send the bytes unchanged, then close the connection."""

    async def send(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.write(reply)
        request.transport.close()
        return web.Response()

    return send


def held(reply: Reply, until: threading.Event) -> Handler:
    """The reply, not before the event."""

    async def send(_: web.Request) -> web.StreamResponse:
        while not until.is_set():
            await asyncio.sleep(0.005)
        return reply.response()

    return send


class Web(ServerThread):
    """`routes` maps "host/path" to a reply, a handler or HTML; all else is 404. Use as a context manager."""

    def __init__(self) -> None:
        super().__init__()
        self.routes: dict[str, Reply | Handler | str] = {}
        self.seen: list[Seen] = []
        self.port = 0

    @property
    def target(self) -> str:
        """For `CrawlSettings.resolve_to`."""
        return f"127.0.0.1:{self.port}"

    def paths(self, host: str) -> list[str]:
        return [seen.path for seen in self.seen if seen.host == host]

    def gaps(self, host: str) -> list[float]:
        starts = [seen.began for seen in self.seen if seen.host == host]
        return [later - earlier for earlier, later in itertools.pairwise(starts)]

    def overlaps(self, host: str) -> bool:
        """Whether two requests to a host were ever in flight at once."""
        visits = [seen for seen in self.seen if seen.host == host]
        return any(later.began < (earlier.ended or 1e18) for earlier, later in itertools.pairwise(visits))

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        host = request.headers.get("Host", "").partition(":")[0]
        seen = Seen(host, request.path_qs, dict(request.headers), time.monotonic())
        self.seen.append(seen)
        try:
            route = self.routes.get(host + request.path_qs)
            if callable(route):
                return await route(request)  # type: ignore[arg-type]
            if isinstance(route, str):
                route = page(route)
            if route is None:
                return web.Response(status=404)
            return route.response()
        finally:
            seen.ended = time.monotonic()

    async def serve(self) -> None:
        runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
