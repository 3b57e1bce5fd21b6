"""An HTTP proxy between the crawler and all sites: a tunnel to each (CONNECT, RFC 9110 section 9.3.6), for http too.

In a tunnel no answer of the proxy can be mistaken for one of the site, such as a 403 for its robots.txt.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import socket

import aiohttp
import yarl
from aiohappyeyeballs import start_connection

from crawler.fetch.context import STARVED

_HEAD_BYTES = 64 * 1024  # of its answer
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])[ \r]")
_SERVES_NOBODY = (405, 407)  # it makes no tunnels, or wants other credentials
_REFUSES_SITE = 403
_RACE_S = 0.25  # between addresses of its name (RFC 8305)


class ProxyFailed(Exception):
    """Control flow: the proxy was not reached, does not answer, or does not serve this crawler; no site is to blame."""


class SiteRefused(aiohttp.ClientConnectionError):
    """The proxy makes no tunnel to the host and port."""


class Proxy:
    """The proxy of crawl.proxy. Nothing shows its password."""

    def __init__(self, url: str) -> None:
        parsed = yarl.URL(url)
        self._host, self._port = parsed.raw_host or "", parsed.port or 0
        user = base64.b64encode(f"{parsed.user}:{parsed.password or ''}".encode()).decode()
        self._credentials = f"Proxy-Authorization: Basic {user}\r\n" if parsed.user else ""
        self._answers = False  # it answered the last request: then one that breaks off has not reached the site

    async def tunnel(self, url: yarl.URL, connect_s: float) -> socket.socket:
        """A connection to the host and port of a URL; the proxy itself must be reached in `connect_s`.

        Raises ProxyFailed, SiteRefused, ClientConnectionError if the proxy does not reach the site, and OSError.
        """
        made = await self._connect(connect_s)
        try:
            answer = await self._ask(made, f"{url.host_subcomponent}:{url.port}")
            found = _STATUS.match(answer)
            status = int(found[1]) if found else 0
            if not found or status in _SERVES_NOBODY:
                raise ProxyFailed(f"it answered {status}" if found else "its answer is no HTTP")
            if status == _REFUSES_SITE:
                raise SiteRefused
            if status // 100 != 2 or not answer.endswith(b"\r\n\r\n"):  # the site sends nothing before it is asked
                raise aiohttp.ClientConnectionError("the proxy does not reach the site")
        except BaseException:
            made.close()
            raise
        return made

    async def _connect(self, connect_s: float) -> socket.socket:
        """By the resolver of the system: the name may be known in this network only."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(connect_s):
                found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
                return await start_connection(found, happy_eyeballs_delay=_RACE_S)
        except OSError as error:  # TimeoutError included
            if error.errno in STARVED:
                raise
            raise ProxyFailed(os.strerror(error.errno) if error.errno else "no answer") from None

    async def _ask(self, made: socket.socket, target: str) -> bytes:
        """The answer up to the end of its head, with what came with it."""
        loop = asyncio.get_running_loop()
        asked = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{self._credentials}\r\n"
        answer = b""
        try:
            await loop.sock_sendall(made, asked.encode())
            while b"\r\n\r\n" not in answer and len(answer) < _HEAD_BYTES:
                piece = await loop.sock_recv(made, 4096)
                if not piece:
                    raise ConnectionResetError
                answer += piece
        except ConnectionError:
            answered, self._answers = self._answers, False
            if answered:
                raise aiohttp.ClientConnectionError("the proxy breaks off") from None
            raise ProxyFailed("it breaks off") from None
        self._answers = True
        return answer
