"""The last line of politeness inside a process: when a request may begin, by its host, its domain and its address.

A host has one request at a time, and starts at least a delay apart. The frontier spaces a site's requests already; the
gate also covers what it cannot see: the hops of redirects, and a request that is still under way when its claim was
rolled back. What hosts share, a registrable domain and IP addresses, is spaced here alone (see crawler.places): a job
asks for a place before it takes its turn.

The addresses that count are those that the request may be sent to. A host with addresses of both families heeds both,
because they are one machine as a rule, and which of them answers first is known too late to wait.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType

from crawler.places import Places
from crawler.registrable import registrable_domain

_PRUNE_AT = 4096  # hosts remembered before those at rest are dropped


class _Host:
    """A host's place: who holds it, when its last request began, and when the next may, by what the last one asked."""

    __slots__ = ("began", "lock", "next_start", "users")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.began = -math.inf
        self.next_start = -math.inf
        self.users = 0


class _Turn:
    """One request's hold of a host, as an async context manager."""

    __slots__ = ("_addresses", "_delay_s", "_gate", "_host", "_name")

    def __init__(self, gate: HostGate, name: str, host: _Host, delay_s: float, addresses: Sequence[str]) -> None:
        self._gate, self._name, self._host = gate, name, host
        self._delay_s, self._addresses = delay_s, addresses

    async def __aenter__(self) -> None:
        host, gate = self._host, self._gate
        host.users += 1
        try:
            await host.lock.acquire()
        except BaseException:
            host.users -= 1
            raise
        try:
            wait_s = max(host.next_start, host.began + self._delay_s) - gate.clock()
            if wait_s > 0:
                await gate.sleep(wait_s)
            if gate.places.spaced and self._addresses:
                await self._begin()
        except BaseException:
            self._leave()
            raise
        host.began = gate.clock()
        host.next_start = host.began + self._delay_s

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    async def _begin(self) -> None:
        """Wait until the last starts of the domain and of the addresses allow it. Others may begin in between."""
        gate, domain = self._gate, registrable_domain(self._name)
        while (wait_s := gate.places.begin(domain, self._addresses, gate.clock())) > 0:
            await gate.sleep(wait_s)

    def _leave(self) -> None:
        self._host.lock.release()
        self._host.users -= 1


class HostGate:
    """Turns per host, and places per domain and address. Lives on one event loop."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        *,
        domain_delay_s: float = 0.0,
        address_delay_s: float = 0.0,
    ) -> None:
        """Use `clock` (seconds, monotonic) and `sleep`. A delay of 0 spaces nothing of its kind."""
        self.clock = clock
        self.sleep = sleep
        self.places = Places(domain_delay_s, address_delay_s, clock())
        self._hosts: dict[str, _Host] = {}
        self._prune_at = _PRUNE_AT

    def sent_away_s(self, host: str, addresses: Sequence[str]) -> float:
        """0 where a job may take the host's turn now, else the seconds after which it is to come back and ask again."""
        if not self.places.spaced:
            return 0.0
        now = self.clock()
        at = self.places.ask(host, registrable_domain(host), addresses, now)
        return max(at - now, 0.0)

    def turn(self, host: str, delay_s: float, addresses: Sequence[str] = ()) -> _Turn:
        """Hold the host: waits for its last request to end, and for the larger of both delays since that began.

        With `addresses` it also waits for the last start at each of them, and of the host's domain.
        """
        place = self._hosts.get(host)
        if place is None:
            if len(self._hosts) >= self._prune_at:
                self._prune()
            place = self._hosts[host] = _Host()
        return _Turn(self, host, place, delay_s, addresses)

    def _prune(self) -> None:
        now = self.clock()
        self._hosts = {name: host for name, host in self._hosts.items() if host.users or host.next_start > now}
        self._prune_at = max(_PRUNE_AT, 2 * len(self._hosts))
