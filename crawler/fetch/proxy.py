"""An HTTP proxy between the crawler and all sites: CONNECT for https, the whole URL for http (RFC 9110, 9112)."""

from __future__ import annotations

import base64
import socket
from typing import Any

import yarl
from aiohttp.abc import ResolveResult
from aiohttp.resolver import ThreadedResolver

from crawler.errors import PrivateAddress


class ProxyFailed(Exception):
    """Control flow: the proxy was not reached, or wants other credentials; no site is to blame."""


class Proxy:
    """The proxy of crawl.proxy. Its password is in `headers` only."""

    def __init__(self, url: str) -> None:
        parsed = yarl.URL(url)
        self.url = parsed.with_user(None).with_path("")
        user = f"{parsed.user}:{parsed.password or ''}".encode()
        # aiohttp sends it as Proxy-Authorization, with CONNECT or with the request
        self.headers = {"Authorization": f"Basic {base64.b64encode(user).decode()}"} if parsed.user else None
        self.host = parsed.raw_host or ""
        self._addresses = {self.host}  # if it is none but a name, `find` replaces it
        self._resolver: ThreadedResolver | None = None

    async def find(self, port: int) -> list[ResolveResult]:
        """The addresses of its name, by the resolver of the system: it may be known in this network only.

        Raises OSError.
        """
        if self._resolver is None:
            self._resolver = ThreadedResolver()
        results = await self._resolver.resolve(self.host, port, socket.AF_UNSPEC)
        self._addresses = {result["host"] for result in results}
        return results

    def make_socket(self, info: Any) -> socket.socket:
        """A socket to the proxy, and to nothing else."""
        family, kind, protocol, _, target = info
        if target[0] not in self._addresses:
            raise PrivateAddress(f"{target[0]} is not an address of the proxy")
        return socket.socket(family, kind, protocol)
