"""Unusable answers of a nameserver, by kind, as broken, hostile or overloaded servers send them."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from tests.support.web.loopback_dns import A, Spoil, Zone

_ADDRESS = ("192.0.2.9",)
_FLAGS = 0x8180
_TRUNCATED = 0x8380
_FORMERR, _SERVFAIL, _NOTIMP, _REFUSED = 1, 2, 4, 5


def _question(answer: bytes) -> bytes:
    return answer[12 : answer.index(b"\0", 12) + 5]


def _head(answer: bytes, flags: int = _FLAGS, questions: int = 1, answers: int = 0) -> bytes:
    return answer[:2] + struct.pack("!HHHHH", flags, questions, answers, 0, 0)


def truncated(answer: bytes) -> bytes:
    """An answer that asks for a retry over TCP."""
    return _head(answer, _TRUNCATED) + _question(answer)


def _cut(answer: bytes) -> bytes:
    """An answer that ends in the middle of a record."""
    return _head(answer, answers=1) + _question(answer) + b"\xc0\x0c\x00\x01\x00\x01"


def _rdata(answer: bytes) -> bytes:
    """An address record whose length is beyond the end of the packet."""
    return (
        _head(answer, answers=1) + _question(answer) + b"\xc0\x0c" + struct.pack("!HHIH", A, 1, 60, 4000) + b"\xff" * 9
    )


def _loop(answer: bytes) -> bytes:
    """A record whose owner is a compression pointer to itself."""
    at = 12 + len(_question(answer))
    return _head(answer, answers=1) + _question(answer) + struct.pack("!HHHIH", 0xC000 | at, A, 1, 60, 4) + b"\1\1\1\1"


def _other_id(answer: bytes) -> bytes:
    return bytes((answer[0] ^ 0xFF, answer[1] ^ 0xFF)) + answer[2:]


def _other_question(answer: bytes) -> bytes:
    return _head(answer) + b"\x05other\x04test\0" + struct.pack("!HH", A, 1)


def _promised(answer: bytes) -> bytes:
    """A header that announces a thousand records, without any of them."""
    return _head(answer, answers=1000) + _question(answer)


def _huge(answer: bytes) -> bytes:
    """As many bytes of records as fit in a datagram; the header counts none."""
    return _head(answer) + _question(answer) + b"\xff" * 60_000


def _spoilt(udp: Spoil, tcp: Spoil | None = None) -> Zone:
    return Zone(_ADDRESS, udp=udp, tcp=tcp)


FAULTS: Mapping[str, Zone] = {
    "silent": Zone(silent=True),
    "servfail": Zone(rcode=_SERVFAIL),
    "refused": Zone(rcode=_REFUSED),
    "formerr": Zone(rcode=_FORMERR),
    "notimp": Zone(rcode=_NOTIMP),
    "unknown rcode": Zone(rcode=15),
    "no answers": Zone(),
    "alias to itself": Zone(cname="bad.test"),
    "short header": _spoilt(lambda answer: answer[:7]),
    "header only": _spoilt(lambda answer: _head(answer, questions=0)),
    "header without its question": _spoilt(lambda answer: _head(answer)),
    "one byte": _spoilt(lambda answer: b"\0"),
    "noise": _spoilt(lambda answer: answer[:2] + b"\xa5" * 60),
    "a question": _spoilt(lambda answer: _head(answer, 0x0100) + _question(answer)),
    "cut": _spoilt(_cut),
    "bad rdata": _spoilt(_rdata),
    "compression loop": _spoilt(_loop),
    "other id": _spoilt(_other_id),
    "other question": _spoilt(_other_question),
    "promises": _spoilt(_promised),
    "huge": _spoilt(_huge),
    "truncated, no tcp": _spoilt(truncated),
    "truncated, tcp hangs": _spoilt(truncated, lambda _: None),
    "truncated, tcp closes": _spoilt(truncated, lambda _: b""),
    "truncated, tcp noise": _spoilt(truncated, lambda _: b"\0\x40" + b"\xa5" * 64),
    "truncated, tcp cut": _spoilt(truncated, lambda sent: sent[:-3]),
    "truncated, tcp truncated": _spoilt(truncated, lambda sent: sent[:2] + truncated(sent[2:])),
}
