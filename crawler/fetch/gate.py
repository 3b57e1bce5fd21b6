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
from types import TracebackType

from crawler.fetch.spacing import Spacing
from stream.text.registrable_domain import registrable_domain

_PRUNE_AT = 4096  # hosts remembered before those at rest are dropped


class _Host:
    """The state of a host: its lock, the last start, and the earliest next start."""

    __slots__ = ("began", "lock", "next_start", "users")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.began = -math.inf
        self.next_start = -math.inf
        self.users = 0


class Turn:
    """One request's hold of a host, as an async context manager."""

    __slots__ = ("_addresses", "_delay_s", "_gate", "_holds_slot", "_host", "_name")

    def __init__(self, gate: HostGate, name: str, host: _Host, delay_s: float, addresses: Sequence[str]) -> None:
        self._gate, self._name, self._host = gate, name, host
        self._delay_s, self._addresses = delay_s, addresses
        self._holds_slot = False

    async def __aenter__(self) -> None:
        await self.take()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    async def take(self) -> None:
        """Wait for the turn; `leave` ends it."""
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
            await self._begin()
        except BaseException:
            self._release()
            raise

    def is_free(self) -> bool:
        """Whether `take` would not wait."""
        host, gate = self._host, self._gate
        return (
            not gate.spacing.spaced
            and not host.lock.locked()
            and not gate.slots.locked()
            and max(host.next_start, host.began + self._delay_s) <= gate.clock()
        )

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
        if gate.rest > 0:
            rest_s = min(gate.rest * (gate.clock() - host.began), gate.rest_cap_s)
            host.next_start = host.began + max(self._delay_s, rest_s)
        self._release()

    async def _begin(self) -> None:
        """Wait for a slot, and until the last starts allow the request."""
        gate = self._gate
        while True:
            await gate.slots.acquire()
            self._holds_slot = True
            wait_s = self._stamp(-math.inf)
            if wait_s <= 0:
                return
            gate.slots.release()
            self._holds_slot = False
            await gate.sleep(wait_s)

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

    def _release(self) -> None:
        if self._holds_slot:
            self._gate.slots.release()
            self._holds_slot = False
        self._host.lock.release()
        self._host.users -= 1


class HostGate:
    """PacedClient per host, and places per domain and address. Lives on one event loop."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        *,
        domain_delay_s: float = 0.0,
        address_delay_s: float = 0.0,
        rest: float = 0.0,
        rest_cap_s: float = 60.0,
        slots: int = 1_000_000,
    ) -> None:
        """Use `clock` (seconds, monotonic) and `sleep`. A delay of 0 disables its spacing.

        A host rests for at least `rest` times the duration of its last response, at most `rest_cap_s`. Requests in
        flight hold at most `slots` turns.
        """
        self.rest = rest
        self.rest_cap_s = rest_cap_s
        self.slots = asyncio.Semaphore(slots)
        self.clock = clock
        self.sleep = sleep
        self.spacing = Spacing(domain_delay_s, address_delay_s, clock())
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
                self._prune()
            place = self._hosts[host] = _Host()
        return Turn(self, host, place, delay_s, addresses)

    def _prune(self) -> None:
        now = self.clock()
        self._hosts = {name: host for name, host in self._hosts.items() if host.users or host.next_start > now}
        self._prune_at = max(_PRUNE_AT, 2 * len(self._hosts))
