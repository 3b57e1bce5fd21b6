"""The last line of politeness inside a process: one request at a time per host, starts at least a delay apart.

The frontier spaces a site's requests already; the gate also covers what it cannot see: the hops of redirects, and a
request that is still under way when its claim was rolled back.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from types import TracebackType

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

    __slots__ = ("_delay_s", "_gate", "_host")

    def __init__(self, gate: HostGate, host: _Host, delay_s: float) -> None:
        self._gate, self._host, self._delay_s = gate, host, delay_s

    async def __aenter__(self) -> None:
        host = self._host
        host.users += 1
        try:
            await host.lock.acquire()
        except BaseException:
            host.users -= 1
            raise
        try:
            wait_s = max(host.next_start, host.began + self._delay_s) - self._gate.clock()
            if wait_s > 0:
                await self._gate.sleep(wait_s)
        except BaseException:
            self._leave()
            raise
        host.began = self._gate.clock()
        host.next_start = host.began + self._delay_s

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        self._host.lock.release()
        self._host.users -= 1


class HostGate:
    """Turns per host. Lives on one event loop."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Use `clock` (seconds, monotonic) and `sleep`."""
        self.clock = clock
        self.sleep = sleep
        self._hosts: dict[str, _Host] = {}

    def turn(self, host: str, delay_s: float) -> _Turn:
        """Hold the host: waits for its last request to end, and for the larger of both delays since that began."""
        place = self._hosts.get(host)
        if place is None:
            if len(self._hosts) > _PRUNE_AT:
                self._prune()
            place = self._hosts[host] = _Host()
        return _Turn(self, place, delay_s)

    def _prune(self) -> None:
        now = self.clock()
        self._hosts = {name: host for name, host in self._hosts.items() if host.users or host.next_start > now}
