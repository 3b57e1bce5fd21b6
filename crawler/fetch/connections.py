"""The connections of the HTTP client. The only module that uses aiohttp's internals; test_connections names each.

aiohttp connects only to the pinned addresses of a request: at most one of each family, raced by RFC 8305. The address
guard checks each when its socket is created. With a proxy it connects through a tunnel instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import math
import resource
import socket
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import aiohttp
import structlog
import yarl
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError, RawResponseMessage

from crawler.errors import PrivateAddress
from crawler.fetch.address_guard import FixedResolver, guarded_sockets, is_permitted, resolved
from crawler.fetch.context import FetchContext
from crawler.fetch.dns_cache import DnsCache
from crawler.fetch.proxy import Proxy
from crawler.settings import CrawlSettings
from crawler.signing.request_signer import signer_of
from crawler.web.content_encoding import ACCEPTED
from crawler.web.response_head import HEAD_CAP_BYTES, begins_head, head_end, is_interim, plain_head

_DEAD_S = 600.0  # an unreachable address comes last for this time
_DEAD_HELD = 4096  # such addresses remembered
_LINE_BYTES = 64 * 1024  # of a status line, and of a header with its name
_HEADERS = 256  # of a response; more end it
_INTERIM = 20  # heads (1xx) before that of a response; more end it
_KEPT = 512  # connections kept open for later requests
_WATCH_S = 0.25  # longest time between two checks of timeouts
_OTHERS = 256  # open files for the log, the database, DNS, metrics

_log = structlog.get_logger()
Headers = Sequence[tuple[str, str]]


@dataclass(slots=True)
class Response:
    """The head of a response, and the stream of its body."""

    head: RawResponseMessage
    content: aiohttp.StreamReader
    sent: Headers  # with the request
    _connection: Connection

    def close(self) -> None:
        """Drop the body and the connection."""
        self._connection.close()

    def release(self) -> None:
        """Keep the connection if the body is complete."""
        self._connection.release()


class Connections(AbstractResolver):
    """Sends requests over kept connections. Lives on one event loop; `open` and `close` it.

    aiohttp resolves names by it, and so gets the pinned addresses of a request.
    """

    def __init__(
        self,
        settings: CrawlSettings,
        resolver: AbstractResolver | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`resolver` replaces DNS and its cache. Raises as DnsCache and `signer_of`."""
        self._settings = settings
        self._clock = clock
        fixed = FixedResolver(settings.resolve_to) if settings.resolve_to else None
        # These addresses and nothing else: this also applies to IP literals in URLs
        self._allowed = fixed.addresses if fixed else None if settings.allow_private else frozenset[str]()
        self._resolver = fixed or resolver or DnsCache(settings, clock)
        self._proxy = Proxy(settings.proxy) if settings.proxy else None
        self._pins: dict[str, Sequence[ResolveResult]] = {}  # by host
        self._dead: OrderedDict[str, float] = OrderedDict()
        self._connector: _Connector | None = None
        self._loop: asyncio.AbstractEventLoop
        self._headers: Headers = (
            ("User-Agent", settings.user_agent),
            ("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5"),
            ("Accept-Encoding", ACCEPTED),
        )
        self._signer = signer_of(settings)
        self._timeout = aiohttp.ClientTimeout(
            total=None, connect=settings.total_timeout_s, sock_connect=settings.connect_timeout_s
        )
        self._under_way: set[_Wire] = set()
        self._watch: asyncio.TimerHandle | None = None
        self._watch_s = min(_WATCH_S, settings.idle_timeout_s / 4, settings.total_timeout_s / 4)

    async def open(self) -> None:
        settings = self._settings
        room_for(2 * settings.max_in_flight + _KEPT)  # a connection to each family may be tried
        self._loop = asyncio.get_running_loop()
        self._connector = _Connector(
            self._proxy,
            limit=0,  # the gate bounds them
            use_dns_cache=False,
            socket_factory=guarded_sockets(self._allowed),
            resolver=self,
            keepalive_timeout=max(15.0, 2 * settings.delay_s),
        )

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        if self._connector is not None:
            await self._connector.close()
        await self._resolver.close()

    async def request(
        self,
        context: FetchContext,
        url: yarl.URL,
        conditions: dict[str, str],
        cap: int,
        on_connect: Callable[[], Awaitable[None]],
    ) -> Response:
        """Send a GET and wait for the head of its response; at most `cap` bytes of its body are wanted.

        It goes to one of the pins of `context`. `on_connect` is awaited between a new connection and the request. This
        takes the place of aiohttp's session, without retries, cookies and timers: one timer watches all responses.
        Raises as aiohttp does, TimeoutError, ProxyFailed, and ValueError for what is no HTTP.
        """
        authority = url.host_port_subcomponent or ""
        headers = [("Host", authority), *self._headers, *conditions.items()]
        if self._signer is not None:
            headers += self._signer.headers(authority)
        began = self._loop.time()
        connection = await self._connect(url, context.pins)
        try:
            wire = connection.protocol
            assert isinstance(wire, _Wire)
            context.kept = wire.address is not None
            if wire.address is None:
                peer = wire.transport.get_extra_info("peername") if wire.transport is not None else None
                wire.address = str(peer[0]) if peer and self._proxy is None else ""  # a proxy does not tell it
            context.address = wire.address
            left_s = self._settings.total_timeout_s
            if not context.kept:
                left_s -= self._loop.time() - began
                await on_connect()
            wire.heard = self._loop.time()
            wire.ends, wire.received, wire.most = wire.heard + left_s, 0, 2 * cap + HEAD_CAP_BYTES
            wire.head, wire.interim = bytearray(), 0
            self._under_way.add(wire)
            connection.add_callback(partial(self._under_way.discard, wire))
            if self._watch is None:
                self._watch = self._loop.call_later(self._watch_s, self._check_timeouts)
            wire.set_response_params(
                auto_decompress=False,
                read_until_eof=True,
                max_line_size=_LINE_BYTES,
                max_field_size=_LINE_BYTES,
                max_headers=_HEADERS,
            )
            wire.send(request_head(url.raw_path_qs, headers))
            head, content = await wire.read()
            while is_interim(head.code):
                head, content = await wire.read()
            return Response(head, content, headers, connection)
        except HttpProcessingError as error:
            connection.close()
            raise ValueError(f"no HTTP: {error}") from None
        except BaseException:
            connection.close()
            raise

    async def _connect(self, url: yarl.URL, pins: Sequence[ResolveResult]) -> Connection:
        """A kept connection, or a new one to one of the pins."""
        assert self._connector is not None, "use `async with`"
        host = url.raw_host or ""
        key = ConnectionKey(host, url.port, url.scheme == "https", True, None, None, None)
        if (kept := await self._connector.kept(key)) is not None:
            return kept
        self._pins[host] = pins
        try:
            request = aiohttp.ClientRequest("GET", url, loop=self._loop)
            return await self._connector.connect(request, [], self._timeout)
        finally:
            del self._pins[host]

    def _check_timeouts(self) -> None:
        now, idle_s = self._loop.time(), self._settings.idle_timeout_s
        late = [wire for wire in self._under_way if now >= wire.ends or now - wire.heard >= idle_s]
        for wire in late:
            if not wire.is_complete:
                wire.fail(TimeoutError("the response takes too long"))
        self._watch = self._loop.call_later(self._watch_s, self._check_timeouts) if self._under_way else None

    async def find(self, host: str, port: int) -> list[ResolveResult]:
        """The addresses that a request to the host may use: at most one of each family.

        A proxy chooses among all that it finds itself, so with one all must be public. Raises OSError, PrivateAddress.
        """
        results = await self._find(host, port)
        if self._proxy is not None:
            for result in results:
                if not is_permitted(result["host"], self._allowed):
                    raise PrivateAddress(f"{result['host']} is not a public address")
        if len(results) == 1:
            return results
        if self._dead:
            now = self._clock()
            results = sorted(results, key=lambda result: self._dead.get(result["host"], 0.0) > now)
        chosen: dict[int, ResolveResult] = {}
        for result in results:
            chosen.setdefault(result["family"], result)
        return list(chosen.values())

    async def _find(self, host: str, port: int) -> list[ResolveResult]:
        literal = host.strip("[]")
        if literal[-1:].isdigit() or ":" in literal:  # otherwise it is a name, as most are
            with contextlib.suppress(ValueError):
                ipaddress.ip_address(literal)
                return [resolved(host, literal, port)]
        return await self._resolver.resolve(host, port, socket.AF_UNSPEC)

    async def resolve(
        self,
        host: str,
        port: int = 0,  # noqa: ARG002  # pins have one
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002  # and one of each family
    ) -> list[ResolveResult]:
        if host not in self._pins:
            raise OSError(f"no address is pinned for {host}")
        return list(self._pins[host][: 1 if self._proxy else None])  # a tunnel is tried once

    def failed(self, addresses: Sequence[str]) -> None:
        """None of these addresses accepted a connection: prefer the host's other addresses for a while."""
        if self._proxy is not None:  # it was not we who tried
            return
        until = self._clock() + _DEAD_S
        for address in addresses:
            self._dead[address] = until
            self._dead.move_to_end(address)
        while len(self._dead) > _DEAD_HELD:
            self._dead.popitem(last=False)


class _Wire(ResponseHandler):
    """aiohttp's protocol, with heads as its parser takes them, and a count of the bytes received.

    The count bounds time and size of a response: the cap on all bytes also ends what the cap on the body misses,
    as chunks of one byte with long extensions.
    """

    address: str | None = None  # of the peer, after the first request
    ends = math.inf  # deadline of the response, on the loop's clock
    heard = 0.0  # time of the last bytes
    received = 0  # bytes of the response
    most = HEAD_CAP_BYTES  # limit of `received`
    head: bytearray | None = None  # the start of a head; None outside of heads
    interim = 0  # heads that another follows

    @property
    def is_complete(self) -> bool:
        """Whether all of a response is here."""
        return self.head is None and self._payload is not None and self._payload.is_eof()

    def send(self, request: bytes) -> None:
        """Send a request. Raises ClientConnectionResetError."""
        if self.transport is None or self.transport.is_closing():
            raise aiohttp.ClientConnectionResetError("the connection is closed")
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        """As aiohttp's, and counts the bytes. An error behind a complete body only closes the connection."""
        self.heard = self._loop.time()
        self.received += len(data)
        if self.received > self.most:
            self.fail(ValueError("more bytes than a response has"))
            return
        if self.head is not None:
            try:
                data = self.pass_heads(data)
            except ValueError as error:
                self.fail(error)
                return
            if not data:
                return
        before = self.exception()
        super().data_received(data)
        if self.exception() is not before and self._payload is not None and not self._payload.is_eof():
            self.fail(ValueError("the body of the response is no HTTP"))  # aiohttp leaves its reader waiting

    def pass_heads(self, data: bytes) -> bytes:
        """Pass whole heads on, and return what follows the last one. Raises ValueError.

        Each goes alone: the parser drops the message of a piece that has an error further on.
        """
        assert self.head is not None
        if self.head:
            looked_at = max(0, len(self.head) - 2)
            self.head += data
            if head_end(self.head, looked_at) is not None:
                data, self.head = bytes(self.head), bytearray()
        while not self.head:
            data = data.lstrip(b"\r\n")
            end = head_end(data)
            if end is None:
                self.head += data
                break
            head, data = plain_head(data[:end]), data[end:]
            if not head.is_as_sent:
                self.force_close()
            super().data_received(head.data)
            if not is_interim(head.status):
                self.head = None
                return data
            self.interim += 1
            if self.interim > _INTERIM:
                raise ValueError("too many interim responses")
        if not begins_head(self.head) or len(self.head) > HEAD_CAP_BYTES:
            raise ValueError("the response has no head")
        return b""

    def fail(self, error: Exception) -> None:
        payload = self._payload
        self.set_exception(error)
        if payload is not None:
            payload.set_exception(error)


class _Connector(aiohttp.TCPConnector):
    """aiohttp's connector with our protocol, a proxy, and a cap on the connections kept open."""

    def __init__(self, proxy: Proxy | None, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self._factory = cast("partial[ResponseHandler]", partial(_Wire, loop=self._loop))
        self._proxy = proxy

    async def _wrap_create_connection(
        self, *given: Any, req: aiohttp.ClientRequest, timeout: aiohttp.ClientTimeout, **named: Any
    ) -> tuple[asyncio.Transport, ResponseHandler]:
        """As aiohttp's, or through the proxy, which chooses the address."""
        if self._proxy is None:
            return await super()._wrap_create_connection(*given, req=req, timeout=timeout, **named)
        made = await self._proxy.tunnel(req.url, timeout.sock_connect or math.inf)
        try:
            del named["addr_infos"]
            return await self._wrap_existing_connection(*given, req=req, timeout=timeout, sock=made, **named)
        except BaseException:
            made.close()
            raise

    async def kept(self, key: ConnectionKey) -> Connection | None:
        """A connection kept open, on which nothing has come since its last response."""
        while (found := await self._get(key, [])) is not None and found.protocol is not None:
            if not found.protocol.should_close:
                return found
            found.close()
        return None

    def _release(self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        """As aiohttp's. Since a host keeps one connection, the hosts are counted."""
        super()._release(key, protocol, should_close=should_close or len(self._conns) >= _KEPT)


def request_head(target: str, headers: Headers) -> bytes:
    """The bytes of a GET. Raises ValueError for a character that ends a line."""
    lines = [f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    head = "\r\n".join(lines)
    if head.count("\r") != len(headers) or head.count("\n") != len(headers) or "\0" in head:
        raise ValueError("a header of the request has more than one line")
    return f"{head}\r\n\r\n".encode()


def room_for(connections: int) -> None:
    """Raise the process's limit of open files for so many connections, as allowed; warn if that is not enough."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHERS
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    if limit < wanted:
        _log.warning("few_open_files", limit=limit, wanted=wanted)
