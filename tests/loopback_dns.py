"""A DNS server on loopback for tests: UDP, a table of names, and a log of what was asked (RFC 1035, RFC 3596).

A name outside of the table does not exist (NXDOMAIN). Each name has answers that are given in turn, the last one for
good: so an address can change between the check of it and its use.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading
from collections import Counter
from dataclasses import dataclass
from types import TracebackType

A, CNAME, AAAA = 1, 5, 28
NXDOMAIN, SERVFAIL, REFUSED = 3, 2, 5


@dataclass(frozen=True, slots=True)
class Zone:
    """What a name answers: its addresses of both families, or `cname`, another name of the table. `silent`: nothing."""

    addresses: tuple[str, ...] = ()
    ttl: int = 300
    cname: str = ""
    rcode: int = 0
    silent: bool = False


class LoopbackDns:
    """`names` maps a name (or "*") to its zones, given in turn per type of question. Use as a context manager."""

    def __init__(self) -> None:
        self.names: dict[str, list[Zone]] = {}
        self.asked: list[tuple[str, int]] = []  # name and type of each question, in order
        self._turns: Counter[tuple[str, int]] = Counter()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> LoopbackDns:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.sendto(b"", self._socket.getsockname())  # wakes the thread, which takes it for the end
        self._thread.join(5)
        self._socket.close()

    @property
    def nameserver(self) -> str:
        """For `CrawlSettings.nameservers`."""
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    def put(self, name: str, *addresses: str, ttl: int = 300) -> None:
        """Answer `name` with these addresses."""
        self.names[name] = [Zone(addresses, ttl)]

    def count(self, name: str) -> int:
        """How often a name was asked for, whatever the type: a look-up asks for A and for AAAA."""
        return sum(asked == name for asked, _ in self.asked)

    def _serve(self) -> None:
        while True:
            packet, peer = self._socket.recvfrom(4096)
            if not packet:
                return
            reply = self._reply(packet)
            if reply:
                self._socket.sendto(reply, peer)

    def _reply(self, packet: bytes) -> bytes:
        end = packet.index(b"\0", 12) + 5
        name, kind = _name_at(packet, 12), struct.unpack_from("!H", packet, end - 4)[0]
        self.asked.append((name, kind))
        zone = self._zone(name, kind)
        if zone.silent:
            return b""
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
        return head + packet[12:end] + b"".join(records)

    def _zone(self, name: str, kind: int) -> Zone:
        zones = self.names.get(name) or self.names.get("*") or [Zone(rcode=NXDOMAIN)]
        turn = self._turns[name, kind]
        self._turns[name, kind] += 1
        return zones[min(turn, len(zones) - 1)]


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
