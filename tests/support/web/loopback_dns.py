"""A DNS server on loopback for tests: UDP and TCP, a table of names, and a log of queries (RFC 1035, 3596).

A name outside the table does not exist (NXDOMAIN). Each name has answers in turn, and the last one repeats, so that an
address can change between its check and its use.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import socketserver
import struct
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

A, CNAME, AAAA = 1, 5, 28
NXDOMAIN, SERVFAIL = 3, 2

Spoil = Callable[[bytes], bytes | None]  # good answer -> bytes to send; None: no bytes, and a TCP connection stays open


@dataclass(frozen=True, slots=True)
class Zone:
    """The answer for a name: addresses of both families, `cname` (another name of the table), or `silent`.

    `udp` and `tcp` damage the good answer. An answer over TCP begins with its length.
    """

    addresses: tuple[str, ...] = ()
    ttl: int = 300
    cname: str = ""
    rcode: int = 0
    silent: bool = False
    udp: Spoil | None = None
    tcp: Spoil | None = None


class LoopbackDns:
    """`names` maps a name (or "*") to its zones, given in turn per query type. Use as a context manager.

    TCP connections are refused unless `tcp`.
    """

    def __init__(self, *, tcp: bool = False) -> None:
        self.names: dict[str, list[Zone]] = {}
        self.asked: list[tuple[str, int]] = []  # name and type of each query, in order
        self._turns: Counter[tuple[str, int]] = Counter()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._tcp = _TcpServer(self._reply) if tcp else None
        self._socket.bind(("127.0.0.1", self._tcp.server_address[1] if self._tcp else 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> LoopbackDns:
        self._thread.start()
        if self._tcp is not None:
            threading.Thread(target=self._tcp.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.sendto(b"", self._socket.getsockname())  # wakes the thread, which then ends
        self._thread.join(5)
        self._socket.close()
        if self._tcp is not None:
            self._tcp.shutdown()
            self._tcp.server_close()

    @property
    def nameserver(self) -> str:
        """For `CrawlSettings.nameservers`."""
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    def put(self, name: str, *addresses: str, ttl: int = 300) -> None:
        self.names[name] = [Zone(addresses, ttl)]

    def count(self, name: str) -> int:
        """The number of queries for a name, of any type: a look-up asks for A and AAAA."""
        return sum(asked == name for asked, _ in self.asked)

    def _serve(self) -> None:
        while True:
            packet, peer = self._socket.recvfrom(4096)
            if not packet:
                return
            reply, zone = self._reply(packet)
            if zone.udp is not None:
                reply = zone.udp(reply) or b""
            if reply:
                self._socket.sendto(reply, peer)

    def _reply(self, packet: bytes) -> tuple[bytes, Zone]:
        """A good answer, empty from a silent zone, and the zone of the name."""
        end = packet.index(b"\0", 12) + 5
        name, kind = _name_at(packet, 12), struct.unpack_from("!H", packet, end - 4)[0]
        self.asked.append((name, kind))
        zone = asked = self._zone(name, kind)
        if zone.silent:
            return b"", zone
        records = []
        owner, seen = name, 0
        while zone.cname and seen < 8:
            records.append(_record(owner, CNAME, zone.ttl, _wire_name(zone.cname)))
            owner, seen = zone.cname, seen + 1
            zone = self._zone(owner, kind)
        for text in zone.addresses:
            address = ipaddress.ip_address(text)
            if kind == (A if address.version == 4 else AAAA):
                records.append(_record(owner, kind, zone.ttl, address.packed))
        head = packet[:2] + struct.pack("!HHHHH", 0x8180 | zone.rcode, 1, len(records), 0, 0)
        return head + packet[12:end] + b"".join(records), asked

    def _zone(self, name: str, kind: int) -> Zone:
        zones = self.names.get(name) or self.names.get("*") or [Zone(rcode=NXDOMAIN)]
        turn = self._turns[name, kind]
        self._turns[name, kind] += 1
        return zones[min(turn, len(zones) - 1)]


class _TcpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, reply: Callable[[bytes], tuple[bytes, Zone]]) -> None:
        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):
                    while len(length := self.rfile.read(2)) == 2:
                        answer, zone = reply(self.rfile.read(int.from_bytes(length)))
                        sent = len(answer).to_bytes(2) + answer
                        if zone.tcp is None:
                            self.wfile.write(sent)
                        elif (spoilt := zone.tcp(sent)) is not None:
                            self.wfile.write(spoilt)
                            return

        super().__init__(("127.0.0.1", 0), Handler)


def _name_at(packet: bytes, at: int) -> str:
    labels = []
    while packet[at]:
        labels.append(packet[at + 1 : at + 1 + packet[at]].decode("ascii"))
        at += 1 + packet[at]
    return ".".join(labels).lower()


def _wire_name(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def _record(owner: str, kind: int, ttl: int, value: bytes) -> bytes:
    return _wire_name(owner) + struct.pack("!HHIH", kind, 1, ttl, len(value)) + value
