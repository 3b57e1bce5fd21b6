"""A DNS cache: addresses of hosts, kept as long as the answers allow, within bounds.

c-ares makes the queries (both families at once, /etc/hosts first, no search domains). An answer is kept for the
shortest TTL of its records, CNAMEs included, but at least `dns_least_s`, so that a name with a TTL of 0 costs no query
per request, and at most `dns_most_s`, so that a moved site is found. A failure is kept for at most FAILURE_S, and less
than the wait before a retry. Concurrent lookups of a host share one query.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import pycares
from aiohttp.abc import AbstractResolver, ResolveResult

from crawler.errors import BadCrawlSettings, UnresolvedHost
from crawler.fetch.address_guard import endpoint, resolved
from crawler.fetch.dns_lookup import Nameservers
from crawler.settings import CrawlSettings

FAILURE_S = 15.0  # longest time that a failed lookup is cached
HOSTS = 20_000  # answers held, about 10 MB; the least recently used goes first
ADDRESSES = 8  # kept of one answer
_NO_NAME = frozenset({pycares.errno.ARES_ENOTFOUND, pycares.errno.ARES_EBADNAME, pycares.errno.ARES_ENONAME})


class _Known(NamedTuple):
    """The addresses of a host, or why there are none."""

    until: float
    addresses: tuple[str, ...]
    failure: str = ""
    reason: str = ""


class DnsCache(AbstractResolver):
    """A resolver for aiohttp. Lives on the event loop that first uses it."""

    def __init__(
        self, settings: CrawlSettings, clock: Callable[[], float] = time.monotonic, hosts: int = HOSTS
    ) -> None:
        """Keep up to `hosts` answers. Raises BadCrawlSettings for a bad nameserver."""
        self._settings = settings
        self._nameservers = Nameservers([_nameserver(text) for text in settings.nameservers])
        self._failure_s = min(settings.retry_s / 2, FAILURE_S)
        self._clock = clock
        self._room = hosts
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._under_way: dict[str, asyncio.Task[_Known]] = {}

    async def addresses(self, host: str) -> tuple[str, ...]:
        """The addresses of a host, in the order to try them. Raises UnresolvedHost."""
        known = self._known.get(host)
        if known is None or known.until <= self._clock():
            task = self._under_way.get(host)
            if task is None:
                task = self._under_way[host] = asyncio.get_running_loop().create_task(self._look_up(host))
            known = await asyncio.shield(task)  # others may wait for it too
        else:
            self._known.move_to_end(host)
        if not known.addresses:
            raise UnresolvedHost(known.failure, reason=known.reason)
        return known.addresses

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002  # always both
    ) -> list[ResolveResult]:
        return [resolved(host, address, port) for address in await self.addresses(host)]

    async def close(self) -> None:
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look_up(self, host: str) -> _Known:
        try:
            known = await self._ask(host)
            self._known[host] = known
            self._known.move_to_end(host)
            if len(self._known) > self._room:
                self._known.popitem(last=False)
            return known
        finally:
            del self._under_way[host]

    async def _ask(self, host: str) -> _Known:
        settings = self._settings
        try:
            answer = await self._nameservers.look_up(host, settings.connect_timeout_s)
        except TimeoutError:
            return self._failed(f"no nameserver answered for {host} within {settings.connect_timeout_s} s", "dns")
        except (pycares.AresError, UnicodeError) as error:
            code = error.args[0] if isinstance(error, pycares.AresError) and error.args else None
            if code in _NO_NAME or isinstance(error, UnicodeError):
                return self._failed(f"there is no host {host}", "dns_no_name")
            if code == pycares.errno.ARES_ENODATA:
                return self._failed(f"{host} has no address", "dns_no_address")
            what = str(error.args[-1]) if error.args else type(error).__name__
            return self._failed(f"no answer for {host}: {what}", "dns")
        ttl_s = min([node.ttl for node in answer.nodes] + [alias.ttl for alias in answer.cnames], default=0)
        kept_s = min(max(ttl_s, settings.dns_least_s), settings.dns_most_s)
        addresses = tuple(dict.fromkeys(node.addr[0].decode("ascii") for node in answer.nodes))[:ADDRESSES]
        if not addresses:
            return self._failed(f"{host} has no address", "dns_no_address")
        return _Known(self._clock() + kept_s, addresses)

    def _failed(self, failure: str, reason: str) -> _Known:
        return _Known(self._clock() + self._failure_s, (), failure, reason)


def _nameserver(text: str) -> str:
    parsed = endpoint(text, 53)
    if parsed is None:
        raise BadCrawlSettings(
            f"crawl.nameservers has {text!r}: write an address or address:port, as in 9.9.9.9 or [2620:fe::fe]:53"
        )
    address, port = parsed
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
