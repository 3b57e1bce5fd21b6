"""The last line of politeness inside a process: one request at a time per host, starts at least a delay apart.

The frontier spaces a site's requests already; the gate also covers what it cannot see: the hops of redirects, and a
request that is still under way when its claim was rolled back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

_PRUNE_AT = 4096  # hosts remembered before those at rest are dropped


class _Turn:
    __slots__ = ("lock", "next_start", "users")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.next_start = 0.0
        self.users = 0


class HostGate:
    """Turns per host. Lives on one event loop."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Use `clock` (seconds, monotonic) and `sleep`."""
        self._clock = clock
        self._sleep = sleep
        self._turns: dict[str, _Turn] = {}

    @asynccontextmanager
    async def turn(self, host: str, delay_s: float) -> AsyncIterator[None]:
        """Hold the host: waits for its last request to end, and for `delay_s` to have passed since that began."""
        if len(self._turns) > _PRUNE_AT:
            self._prune()
        turn = self._turns.setdefault(host, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                wait_s = turn.next_start - self._clock()
                if wait_s > 0:
                    await self._sleep(wait_s)
                turn.next_start = self._clock() + delay_s
                yield
        finally:
            turn.users -= 1

    def _prune(self) -> None:
        now = self._clock()
        self._turns = {host: turn for host, turn in self._turns.items() if turn.users or turn.next_start > now}
