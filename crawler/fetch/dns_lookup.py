"""One DNS lookup by c-ares, on its own channel.

Lookups on one channel share its sockets. When c-ares cannot parse an answer, it closes the socket and repeats every
query on it, each at the cost of one try. So a few bad answers fail all lookups in flight. With one channel per lookup,
they fail only their own name. A channel takes about 0.3 ms of CPU. The event loop drives it, because a channel with its
own thread also needs an inotify instance.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

import pycares

_TRY_S, _TRIES = 2.0, 3  # the first try of a nameserver, seconds; each further one takes longer
_FLAGS = pycares.ARES_FLAG_NOSEARCH | pycares.ARES_FLAG_EDNS
_NONE = pycares.ARES_SOCKET_BAD

Found = pycares.AddrInfoResult


class Nameservers:
    """The nameservers in order. One that does not answer in time moves to the end."""

    def __init__(self, addresses: Sequence[str] = ()) -> None:
        """`addresses` are in the format of c-ares (address:port). Empty: the system's, read for each lookup."""
        self._addresses = addresses
        self._turned = 0

    async def look_up(self, host: str, timeout_s: float) -> Found:
        """Addresses of both families. Raises AresError, UnicodeError, TimeoutError; OSError without a socket left."""
        loop = asyncio.get_running_loop()
        began, first_s, turned = loop.time(), min(_TRY_S, timeout_s / 2), self._turned
        try:
            look_up = _LookUp(loop, first_s, self._addresses, turned)
            try:
                async with asyncio.timeout(timeout_s):
                    answer = await look_up.ask(host)
            finally:
                look_up.close()
        except pycares.AresError:
            # c-ares does not report that this machine has no socket left: this raises then
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
            raise
        if loop.time() - began >= first_s and turned == self._turned:
            self._turned += 1
        return answer


class _LookUp:
    """A c-ares channel on the event loop's sockets and timer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, first_s: float, addresses: Sequence[str], turned: int) -> None:
        """Ask the nameservers (none: the system's) in order, the first `turned` of them last."""
        self._loop = loop
        self._watched: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._found: asyncio.Future[Found] = loop.create_future()
        self._channel = pycares.Channel(flags=_FLAGS, timeout=first_s, tries=_TRIES, sock_state_cb=self._watch)
        if turned:
            addresses = addresses or self._channel.servers
            turned %= len(addresses)
            addresses = [*addresses[turned:], *addresses[:turned]]
        if addresses:
            self._channel.servers = addresses

    async def ask(self, host: str) -> Found:
        self._channel.getaddrinfo(host, None, family=socket.AF_UNSPEC, type=socket.SOCK_STREAM, callback=self._on_end)
        self._set_timer()
        return await self._found

    def close(self) -> None:
        """Cancel the lookup. A thread of pycares closes the channel and may still call `_watch`."""
        self._found.cancel()
        self._channel.cancel()
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for descriptor in self._watched:
            self._loop.remove_reader(descriptor)
            self._loop.remove_writer(descriptor)
        self._channel.close()

    def _on_end(self, answer: Found | None, error: int | None) -> None:
        if self._found.done():
            return
        if answer is not None and error is None:
            self._found.set_result(answer)
        else:
            number = error or pycares.errno.ARES_ENODATA
            self._found.set_exception(pycares.AresError(number, pycares.errno.strerror(number)))

    def _watch(self, descriptor: int, readable: bool, writable: bool) -> None:
        if self._closed:
            return
        if readable or writable:
            self._watched.add(descriptor)
        else:
            self._watched.discard(descriptor)  # it closes next, and its number may be reused
        if readable:
            self._loop.add_reader(descriptor, self._process, descriptor, _NONE)
        else:
            self._loop.remove_reader(descriptor)
        if writable:
            self._loop.add_writer(descriptor, self._process, _NONE, descriptor)
        else:
            self._loop.remove_writer(descriptor)

    def _process(self, readable: int = _NONE, writable: int = _NONE) -> None:
        self._channel.process_fd(readable, writable)
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._found.done():
            due_s = self._channel.timeout()  # type: ignore[no-untyped-call]
            self._timer = self._loop.call_later(due_s or 0.001, self._process)
