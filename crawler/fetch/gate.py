"""The politeness gate of a process: when a request may start, by host, registrable domain and address.

A host has one request at a time, at least a delay apart. The frontier spaces a site's requests; the gate also covers
redirects, and requests whose claim was rolled back while in flight. Shared limits, by domain and IP address, exist only
here (see crawler.fetch.spacing): a job asks for a place before it takes its turn.

All addresses that the request may use count. A host with both families counts for both: usually they are one machine,
and which family connects is known too late to wait.

A start is recorded when the turn is taken, and again when a new connection is open and the request goes out, so that
requests are spaced as the server sees them.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from crawler.fetch.spacing import Spacing
from crawler.settings import CrawlSettings
from stream.text.registrable_domain import registrable_domain

_PRUNE_AT = 4096  # hosts remembered before idle ones are dropped


class GateClosed(Exception):
    """Control flow: the crawl is paused, and no request starts."""


@dataclass(slots=True)
class _Host:
    """The state of a host: its lock, the last start, and the earliest next start."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    began: float = -math.inf
    next_start: float = -math.inf
    users: int = 0


@dataclass(slots=True)
class Turn:
    """One request's hold of a host: `take` it, and `leave` it when the request is over."""

    _gate: HostGate
    _name: str
    _host: _Host
    _delay_s: float
    _addresses: Sequence[str]

    async def take(self) -> None:
        """Wait for the turn: until the host is free, for a slot, and until the last starts allow the request.

        Raises GateClosed.
        """
        host, gate = self._host, self._gate
        host.users += 1
        try:
            await host.lock.acquire()
        except BaseException:
            host.users -= 1
            raise
        try:
            wait_s = max(host.next_start, host.began + self._delay_s) - gate.clock()
            while True:
                if wait_s > 0:
                    await gate.sleep(wait_s)
                await gate.slots.acquire()
                if gate.closed:
                    gate.slots.release()
                    raise GateClosed
                wait_s = self._stamp(-math.inf)
                if wait_s <= 0:
                    return
                gate.slots.release()
        except BaseException:
            self._release_host()
            raise

    async def sent(self) -> None:
        """A new connection is open and the request goes out: the spacing counts from now.

        If another request to the domain or the addresses started meanwhile, this one waits with its connection open.
        """
        gate = self._gate
        while (wait_s := self._stamp(self._host.began)) > 0:
            await gate.sleep(wait_s)

    def leave(self) -> None:
        """The request is over. A slow response extends the host's delay."""
        host, gate = self._host, self._gate
        settings = gate.settings
        slow_s = min(settings.delay_per_second * (gate.clock() - host.began), settings.delay_slow_cap_s)
        host.next_start = host.began + max(self._delay_s, slow_s)
        gate.slots.release()
        self._release_host()

    def _stamp(self, own: float) -> float:
        """Record a start and return 0, or return the seconds to wait. `own`: the start recorded for this turn."""
        gate, host = self._gate, self._host
        now = gate.clock()
        if gate.spacing.spaced and self._addresses:
            wait_s = gate.spacing.begin(registrable_domain(self._name), self._addresses, now, own)
            if wait_s > 0:
                return wait_s
        host.began = now
        host.next_start = now + self._delay_s
        return 0.0

    def _release_host(self) -> None:
        self._host.lock.release()
        self._host.users -= 1


class HostGate:
    """The turns of all hosts, and the places per domain and address. Lives on one event loop."""

    def __init__(
        self,
        settings: CrawlSettings,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Use `clock` (seconds, monotonic) and `sleep`. At most `max_in_flight` requests hold a turn."""
        self.settings = settings
        self.slots = asyncio.Semaphore(settings.max_in_flight)
        self.closed = False  # True: no turn is given
        self.clock = clock
        self.sleep = sleep
        self.spacing = Spacing(settings.domain_delay_s, settings.address_delay_s, clock())
        self._hosts: dict[str, _Host] = {}
        self._prune_at = _PRUNE_AT

    def deferral_s(self, host: str, addresses: Sequence[str]) -> float:
        """0 if a job may take the host's turn now, else the seconds after which to ask again."""
        if not self.spacing.spaced:
            return 0.0
        now = self.clock()
        at = self.spacing.ask(host, registrable_domain(host), addresses, now)
        return max(at - now, 0.0)

    def turn(self, host: str, delay_s: float, addresses: Sequence[str] = ()) -> Turn:
        """The turn of a request: it waits for the host's last request to end, and for the larger of both delays.

        With `addresses` it also waits for the last start at each of them, and of the host's domain.
        """
        place = self._hosts.get(host)
        if place is None:
            if len(self._hosts) >= self._prune_at:
                now = self.clock()
                self._hosts = {name: each for name, each in self._hosts.items() if each.users or each.next_start > now}
                self._prune_at = max(_PRUNE_AT, 2 * len(self._hosts))
            place = self._hosts[host] = _Host()
        return Turn(self, host, place, delay_s, addresses)
