"""The HTTP client's connections: where they may lead, which addresses they are made to, and to which one they were.

aiohttp connects to the addresses that a request was let through for and to no others: at most one of each family,
between which it chooses by racing them (RFC 8305). The guard sits below, where the socket is made.
"""

from __future__ import annotations

import ipaddress
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from crawler.dns_cache import DnsCache
from crawler.guard import FixedResolver, guarded_sockets
from crawler.inflating import ACCEPTED
from crawler.settings import CrawlSettings

_DEAD_S = 600.0  # an address that took no connection comes last for this time
_DEAD_HELD = 4096  # such addresses remembered
_LINE_BYTES = 8190  # of a status line, and of a header with its name; as aiohttp has it
_HEADERS = 256  # of a response; more end it


class Connections:
    """A client session and what is known of its connections. Lives on one event loop; `open` and `close` it."""

    def __init__(
        self,
        settings: CrawlSettings,
        resolver: AbstractResolver | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`resolver` stands in for DNS and for the cache of it. Raises BadCrawlSettings for a bad nameserver."""
        self._settings = settings
        self._clock = clock
        self.fixed = FixedResolver(settings.resolve_to) if settings.resolve_to else None
        self._resolver: AbstractResolver = (
            self.fixed
            or resolver
            or DnsCache(
                nameservers=settings.nameservers,
                least_s=settings.dns_least_s,
                most_s=settings.dns_most_s,
                timeout_s=settings.connect_timeout_s,
                clock=clock,
            )
        )
        self._pins = _Pins(self._resolver)
        self._dead: OrderedDict[str, float] = OrderedDict()
        self._connector: _Connector | None = None
        self.session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Open the session."""
        settings = self._settings
        if self.fixed is not None:
            # These addresses and nothing else: IP literals in URLs are kept in, too
            allowed: frozenset[str] | None = self.fixed.addresses
        else:
            allowed = None if settings.allow_private else frozenset()
        self._connector = _Connector(
            limit=settings.max_in_flight,
            use_dns_cache=False,
            socket_factory=guarded_sockets(allowed),
            resolver=self._pins,
            keepalive_timeout=max(15.0, 2 * settings.delay_s),
        )
        self.session = aiohttp.ClientSession(
            connector=self._connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(
                total=settings.total_timeout_s,
                sock_connect=settings.connect_timeout_s,
                sock_read=settings.idle_timeout_s,
            ),
            headers={
                "User-Agent": settings.user_agent,
                "Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5",
                "Accept-Encoding": ACCEPTED,
            },
            max_line_size=_LINE_BYTES,
            max_field_size=_LINE_BYTES,
            max_headers=_HEADERS,
        )
        # aiohttp would repeat a request at once when a kept connection turns out to be closed. The server may have
        # seen the first, so ours waits for its turn (see Fetcher).
        self.session._retry_connection = False

    async def close(self) -> None:
        """Close every connection, and end what asks DNS."""
        if self.session is not None:
            await self.session.close()
        await self._resolver.close()

    async def find(self, host: str, port: int) -> list[ResolveResult]:
        """The addresses that a request to the host may be sent to: at most one of each family. Raises OSError."""
        literal = host.strip("[]")
        if literal[-1:].isdigit() or ":" in literal:
            try:
                ipaddress.ip_address(literal)
            except ValueError:
                pass
            else:
                kind = socket.AF_INET6 if ":" in literal else socket.AF_INET
                return [ResolveResult(hostname=host, host=literal, port=port, family=kind, proto=0, flags=0)]
        results = await self._resolver.resolve(host, port, socket.AF_UNSPEC)
        if len(results) == 1:
            return results
        if self._dead:
            results = sorted(results, key=lambda result: self._is_dead(result["host"]))
        chosen: dict[int, ResolveResult] = {}
        for result in results:
            chosen.setdefault(result["family"], result)
        return list(chosen.values())

    def pin(self, host: str, addresses: list[ResolveResult]) -> None:
        """The next connection to the host goes to one of these."""
        self._pins.table[host] = addresses

    def unpin(self, host: str) -> tuple[str, bool]:
        """End of a request: the address that it went to ("": to none), and whether its connection was used before."""
        self._pins.table.pop(host, None)
        assert self._connector is not None
        return self._connector.peers.pop(host, ("", False))

    def failed(self, addresses: Sequence[str]) -> None:
        """None of these took a connection: where a host has others, they come first for a while."""
        until = self._clock() + _DEAD_S
        for address in addresses:
            self._dead[address] = until
            self._dead.move_to_end(address)
        while len(self._dead) > _DEAD_HELD:
            self._dead.popitem(last=False)

    def _is_dead(self, address: str) -> bool:
        return self._dead.get(address, 0.0) > self._clock()


class _Pins(AbstractResolver):
    """What aiohttp is told of a host: the addresses that its request was let through for."""

    def __init__(self, resolver: AbstractResolver) -> None:
        self.table: dict[str, list[ResolveResult]] = {}
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The pinned addresses."""
        return self.table.get(host) or await self._resolver.resolve(host, port, family)

    async def close(self) -> None:
        """Nothing: whoever made the resolver closes it."""


class _Connector(aiohttp.TCPConnector):
    """Notes where each connection leads. A host has one request at a time, so its name is enough to tell them apart."""

    def __init__(self, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.peers: dict[str, tuple[str, bool]] = {}

    async def connect(self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout) -> Connection:
        """As aiohttp's, with the peer noted."""
        connection = await super().connect(req, traces, timeout)
        protocol = connection.protocol
        if protocol is not None:
            address: str | None = getattr(protocol, "peer_address", None)
            used_before = address is not None
            if address is None:
                peer = connection.transport.get_extra_info("peername") if connection.transport is not None else None
                address = str(peer[0]) if peer else ""
                protocol.peer_address = address  # type: ignore[attr-defined]  # ours: it lives as long as the connection
            self.peers[req.url.raw_host or ""] = (address, used_before)
        return connection
