"""The web for the crawlers' benchmark: a separate, cheap process that counts the pages it serves.

Every host has the pages /p/0 … /p/39, each with links to all of them, and no robots.txt. The hosts are addresses of
127.0.0.0/8 on one port, so that crawlers need no resolver; any name that resolves to `target` works as well.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import urllib.request
from multiprocessing.connection import Connection
from types import TracebackType

PER_SITE = 40
_WORDS = "the measured share of pages that a language model wrote depends on what was asked and when it was asked "
_COUNTS = "/counts"


class Answering(asyncio.Protocol):
    """One page for every path; requests are small and arrive whole."""

    missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

    def __init__(self, page: bytes, served: dict[bytes, list[bytes]]) -> None:
        self.page, self.served = page, served

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert isinstance(self.transport, asyncio.Transport)
        for request in data.split(b"\r\n\r\n")[:-1]:
            path = request.split(b" ", 2)[1]
            if path.startswith(b"/p/"):
                self.served.setdefault(_host(request), []).append(path)
                self.transport.write(self.page)
            elif path == _COUNTS.encode():
                told = {host.decode(): [len(paths), len(set(paths))] for host, paths in self.served.items()}
                self.served.clear()
                self.transport.write(answer_of(json.dumps(told).encode()))
            else:
                self.transport.write(self.missing)


class Server:
    """The server process, as a context manager. `target` is its address on 127.0.0.1."""

    def __init__(self, sites: int) -> None:
        self._sites = sites
        self._process: multiprocessing.process.BaseProcess | None = None

    def __enter__(self) -> Server:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._sites), daemon=True)
        self._process.start()
        self.target = f"127.0.0.1:{ours.recv()}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.join()

    def counts(self) -> dict[str, tuple[int, int]]:
        """Host -> number of pages served since the last call, and of different ones among them."""
        with urllib.request.urlopen(f"http://{self.target}{_COUNTS}") as response:
            return {host: (pages, different) for host, (pages, different) in json.loads(response.read()).items()}


def page() -> bytes:
    links = "".join(f'<li><a href="/p/{n}" class="item">Entry number {n}</a></li>' for n in range(PER_SITE))
    paragraphs = "".join(f"<p>{n}: {_WORDS * 6}</p>\n" for n in range(18))
    head = "<!doctype html><html><head><title>x</title></head>"
    return f"{head}<body><ul>{links}</ul>{paragraphs}</body></html>".encode()


def answer_of(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def address(site: int) -> str:
    return f"127.0.{1 + site // 250}.{1 + site % 250}"


def _host(request: bytes) -> bytes:
    for line in request.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"host":
            return value.strip().partition(b":")[0]
    return b""


def _serve(ready: Connection, sites: int) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with socket.socket() as probe:  # a port that is free on one of these addresses is free on all
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        hosts = ["127.0.0.1", *(address(site) for site in range(sites))]
        found, served = answer_of(page()), dict[bytes, list[bytes]]()
        server = await loop.create_server(lambda: Answering(found, served), hosts, port)
        ready.send(port)
        await server.serve_forever()

    asyncio.run(main())
