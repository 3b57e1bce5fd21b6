"""The address guard: no request reaches a private address.

It works where sockets are created, below names and redirects. A check of host names or DNS answers misses IP literals
in URLs, and names whose answer changes between check and use. aiohttp calls `socket_factory` for every connection with
the address that it will connect to.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from crawler.errors import BadCrawlSettings, PrivateAddress

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")  # all IPv6 unicast that IANA assigns
# IANA's special-purpose networks that older versions of Python's ipaddress call public: protocol assignments (RFC 6890,
# 2928), 6to4 relays (RFC 7526), documentation (RFC 3849, 9637)
_SPECIAL = tuple(
    map(ipaddress.ip_network, ("192.0.0.0/24", "2001::/23", "192.88.99.0/24", "2001:db8::/32", "3fff::/20"))
)
_MARK = "is not a public address"
_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV

SocketFactory = Callable[[Any], socket.socket]


def is_public(address: str) -> bool:
    """Whether an IP address is globally reachable unicast. IPv4 inside IPv6 (mapped, 6to4, NAT64) is unwrapped."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour
        if inner is None and parsed in _NAT64:
            inner = ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if parsed not in _UNICAST_V6:
            return False
    if any(parsed in network for network in _SPECIAL):
        return False
    return parsed.is_global and not parsed.is_multicast and not parsed.is_reserved


def is_permitted(address: str, allowed: frozenset[str] | None) -> bool:
    """Whether an address is public, or one of the `allowed` ones if there are any; None: all are."""
    return allowed is None or (address in allowed if allowed else is_public(address))


def guarded_sockets(allowed: frozenset[str] | None = frozenset()) -> SocketFactory:
    """Sockets to public addresses only, or to the `allowed` ones (None: all); others raise PrivateAddress."""

    def make(info: Any) -> socket.socket:
        family, kind, protocol, _, target = info
        address = target[0]
        if not is_permitted(address, allowed):
            raise PrivateAddress(f"{address} {_MARK}")
        return socket.socket(family, kind, protocol)

    return make


def is_guard_error(error: BaseException | None) -> bool:
    """Whether the guard caused a connection error."""
    while error is not None:
        if isinstance(error, PrivateAddress) or (isinstance(error, OSError) and _MARK in str(error)):
            return True
        error = error.__cause__
    return False


class FixedResolver(AbstractResolver):
    """Resolves hosts from a table host -> "address:port" instead of DNS; "*" stands for all other hosts."""

    def __init__(self, table: Mapping[str, str]) -> None:
        """Raises BadCrawlSettings if a target is no address with a port."""
        self._table: dict[str, tuple[str, int]] = {}
        for host, text in table.items():
            target = endpoint(text)
            if target is None:
                raise BadCrawlSettings(
                    f"crawl.resolve_to[{host!r}] is {text!r}: write address:port, as in 127.0.0.1:8000"
                )
            self._table[host] = target

    @property
    def addresses(self) -> frozenset[str]:
        return frozenset(address for address, _ in self._table.values())

    async def resolve(
        self,
        host: str,
        port: int = 0,  # noqa: ARG002  # the table's port counts
        family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002  # the table's address has its own
    ) -> list[ResolveResult]:
        """The table's address and port for the host. Raises OSError for an unknown host, as DNS does."""
        target = self._table.get(host) or self._table.get("*")
        if target is None:
            raise OSError(f"no address for {host}")
        return [resolved(host, *target)]

    async def close(self) -> None:
        """Nothing to close."""


def resolved(host: str, address: str, port: int) -> ResolveResult:
    """An address of a host, as resolvers of aiohttp return it."""
    kind = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=kind, proto=0, flags=_NUMERIC)


def endpoint(text: str, port: int | None = None) -> tuple[str, int] | None:
    """The address and port of `address:port`; `port` is that of a bare address. None if the text is neither."""
    address, digits = text.strip(), "" if port is None else str(port)
    if port is None or address.count(":") == 1 or "]:" in address:
        address, _, digits = address.rpartition(":")
    address = address.strip("[]")
    try:
        ipaddress.ip_address(address)
        number = int(digits)
    except ValueError:
        return None
    return (address, number) if 0 < number < 65536 else None
