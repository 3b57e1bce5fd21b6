"""Spacing of requests to one registrable domain and to one IP address.

Both have clocks, and a request obeys those of its domain and of its host's addresses. A clock holds the start of its
last request, the latest promised start, and the end of its reserved places.

- On its first request a host gets the earliest time at which all its clocks are free, behind the reserved places. If
  that is within PATIENCE_S it continues; else it is deferred, and keeps the place. Only the clocks that caused the
  delay reserve the place: a domain with a thousand hosts must not block its neighbours at an address.
- A host at its place continues as soon as the promised starts allow. Earlier hosts may be late or come from another
  clock's queue; so it waits up to LATE_S and two delays. If that is too short it is deferred again, with a promised
  start of its own. So a punctual host is deferred once.
- A redirect hop has no place. It waits for the last start only, because its job is in flight.

In any case, `begin` enforces the last actual starts. An unseen clock counts as started when this object was created:
the process before may have been killed just after a request. A call costs the same for any number of hosts. Beyond ROOM
reserved places, further hosts are deferred behind them without a place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

PATIENCE_S = 0.25  # a closer place is waited for; a waiting job holds one of the requests in flight
LATE_S = 2.0  # longest wait of a host at its own place
FORGOTTEN_S = 600.0  # an unused place is dropped after this time
ROOM = 65_536  # places given away at once, about 15 MB
_EXACT_S = 1e-6  # sums of seconds are exact to less than this
_PRUNE_AT = 4096  # clocks held before past ones are dropped
_PRUNE_S = 60.0  # seconds between two prunings of places


class _Clock:
    __slots__ = ("began", "free", "promised")

    def __init__(self, began: float) -> None:
        self.began = self.promised = began
        self.free = -math.inf

    def after_promised(self, delay_s: float) -> float:
        """The earliest start after the last start and the last promise."""
        return max(self.began, self.promised) + delay_s

    def after_all(self, delay_s: float) -> float:
        """The earliest start after all reserved places."""
        return max(self.free, self.after_promised(delay_s))


class _Clocks:
    def __init__(self, delay_s: float, born: float) -> None:
        self.delay_s = delay_s
        self.clocks: dict[str, _Clock] = {}
        self._born = born
        self._prune_at = _PRUNE_AT

    def clock(self, name: str, now: float) -> _Clock:
        known = self.clocks.get(name)
        if known is None:
            if len(self.clocks) >= self._prune_at:
                at_rest = now - self.delay_s
                self.clocks = {
                    name: clock
                    for name, clock in self.clocks.items()
                    if max(clock.began, clock.promised) > at_rest or clock.free > now
                }
                self._prune_at = max(_PRUNE_AT, 2 * len(self.clocks))
            known = self.clocks[name] = _Clock(self._born)
        return known


class _Place(NamedTuple):
    """When a host comes back. A promised start was checked against all others, a place only against places."""

    at: float
    promised: bool


class Spacing:
    """The places of all hosts. Times are seconds of one monotonic clock, passed to each call."""

    def __init__(self, domain_delay_s: float, address_delay_s: float, now: float, *, room: int = ROOM) -> None:
        """All domains and addresses count as started `now`. A delay of 0 disables its spacing."""
        self._delays = (domain_delay_s, address_delay_s)
        self._domains = _Clocks(domain_delay_s, now)
        self._addresses = _Clocks(address_delay_s, now)
        self._places: dict[str, _Place] = {}
        self._room = room
        self._born = self._pruned = now

    def __len__(self) -> int:
        return len(self._domains.clocks) + len(self._addresses.clocks) + len(self._places)

    @property
    def spaced(self) -> bool:
        return self._domains.delay_s > 0 or self._addresses.delay_s > 0

    def share(self, fraction: float) -> None:
        """Set the share (above 0, at most 1) of all sites that this process has: delays are divided by it."""
        self._domains.delay_s, self._addresses.delay_s = (delay_s / fraction for delay_s in self._delays)

    def ask(self, host: str, domain: str, addresses: Sequence[str], now: float) -> float:
        """0 if the host may go on to `begin`, else the time at which to ask again."""
        clocks = self._clocks(domain, addresses, now)
        if not clocks:
            return 0.0
        place = self._places.get(host)
        if place is None:
            soonest = max(now, self._born + max(self._domains.delay_s, self._addresses.delay_s))
            at = max(soonest, max(clock.after_all(delay_s) for clock, delay_s in clocks))
            if at - now <= PATIENCE_S:
                _promise(clocks, at)
                return 0.0
            late = [(clock, delay_s) for clock, delay_s in clocks if clock.after_all(delay_s) >= at > soonest]
            self._give_away(host, late or clocks, at, now)
            return at
        if now < place.at - PATIENCE_S:
            return place.at
        del self._places[host]
        if place.promised and now <= place.at + PATIENCE_S:
            return 0.0
        at = max(now, place.at, max(clock.after_promised(delay_s) for clock, delay_s in clocks))
        if at - now <= max(PATIENCE_S, min(LATE_S, 2 * max(delay_s for _, delay_s in clocks))):
            _promise(clocks, at)
            return 0.0
        _promise([(clock, delay_s) for clock, delay_s in clocks if clock.after_promised(delay_s) >= at], at)
        self._places[host] = _Place(at, promised=True)
        return at

    def begin(self, domain: str, addresses: Sequence[str], now: float, own: float = -math.inf) -> float:
        """Seconds until the last starts allow a request; 0: it starts now, and that is recorded.

        Starts up to `own`, recorded earlier for this request, do not count.
        """
        clocks = self._clocks(domain, addresses, now)
        wait_s = max((clock.began + delay_s - now for clock, delay_s in clocks if clock.began > own), default=0.0)
        if wait_s > _EXACT_S:
            return wait_s
        for clock, _ in clocks:
            clock.began = now
        return 0.0

    def charge(self, address: str, now: float) -> None:
        """Record a request to another address than planned: its connection is older than a change in DNS."""
        if self._addresses.delay_s > 0:
            self._addresses.clock(address, now).began = now

    def _clocks(self, domain: str, addresses: Sequence[str], now: float) -> list[tuple[_Clock, float]]:
        clocks = []
        if self._domains.delay_s > 0:
            clocks.append((self._domains.clock(domain, now), self._domains.delay_s))
        if self._addresses.delay_s > 0:
            clocks += [(self._addresses.clock(address, now), self._addresses.delay_s) for address in addresses]
        return clocks

    def _give_away(self, host: str, clocks: list[tuple[_Clock, float]], at: float, now: float) -> None:
        if len(self._places) >= min(_PRUNE_AT, self._room) and now - self._pruned >= _PRUNE_S:
            self._pruned = now
            self._places = {host: place for host, place in self._places.items() if place.at > now - FORGOTTEN_S}
        if len(self._places) >= self._room:
            return
        for clock, delay_s in clocks:
            clock.free = at + delay_s
        self._places[host] = _Place(at, promised=False)


def _promise(clocks: list[tuple[_Clock, float]], at: float) -> None:
    for clock, _ in clocks:
        clock.promised = max(clock.promised, at)
