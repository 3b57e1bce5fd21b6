"""Reads the head of an HTTP/1 response as browsers and curl do: tolerant of what servers and archives really send.

| in a head | here |
|---|---|
| `HTTP/2 200`, `http/1.1 200 OK`, `ICY 200 OK`, no reason, more spaces | a status line |
| a line without a name, or with a character that no name has | skipped |
| spaces before the colon; a NUL or CR in a value | dropped; a space |
| the same Content-Length several times, in any digits | one; if they differ, an error |
| an empty Content-Length | skipped |
| Content-Length beside `Transfer-Encoding: chunked` | skipped (RFC 9112 section 6.3) |
| `Transfer-Encoding: identity`, `none` or empty | skipped: it says nothing |

Such a client makes one request at a time and closes the connection after a head that is not plain, so that a message
cannot be smuggled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

HEAD_CAP_BYTES = 1024 * 1024  # browsers and curl stop at about 300 KiB
_END = re.compile(rb"\n\r?\n")
_FOLD = re.compile(rb"\r?\n[ \t]+")
_STATUS = re.compile(rb"(HTTP(?:/\d{1,3}(?:\.\d{1,3})?)?|ICY)[ \t]+(\d{3})(?!\d)[ \t]*(.*)", re.IGNORECASE | re.DOTALL)
_NAME = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"  # a token of RFC 9110 section 5.6.2
_FIELD = re.compile(rb"(" + _NAME + rb")[ \t]*+:(.*)", re.DOTALL)
# A head that any parser takes
_PLAIN = re.compile(rb"HTTP/1\.[01] \d{3}(?: [^\0\r\n]*+)?\r\n(?:" + _NAME + rb":[^\0\r\n]*+\r\n)*+\r\n")
# Lines that say how long a body is; the group is empty if they are not plain
_FRAMING = re.compile(
    rb"\n(?:(content-length:[ \t]*\d+|transfer-encoding:[ \t]*chunked)[ \t]*\r|content-length:|transfer-encoding:)",
    re.IGNORECASE,
)
_BLANKS = bytes.maketrans(b"\r\0", b"  ")
_LENGTH, _CODING = b"content-length", b"transfer-encoding"
_NO_CODINGS = {b"identity", b"none"}


class ResponseHead(NamedTuple):
    """A status and its headers, as sent."""

    version: bytes
    status: int
    reason: bytes
    headers: list[tuple[bytes, bytes]]


class PlainHead(NamedTuple):
    """A head as any parser takes it."""

    data: bytes
    status: int
    is_as_sent: bool


def is_interim(status: int) -> bool:
    """Whether another head follows; 101 ends HTTP."""
    return 100 <= status < 200 and status != 101


def head_end(data: bytes | bytearray, start: int = 0) -> int | None:
    """Where the head at `start` ends, its blank line included; None if that is not in sight."""
    end = _END.search(data, start)
    return end.end() if end is not None else None


def begins_head(data: bytes | bytearray) -> bool:
    """Whether the bytes may be the start of a head."""
    start = bytes(data[:4]).upper()
    return b"HTTP".startswith(start) or b"ICY ".startswith(start)


def read_head(head: bytes) -> ResponseHead:
    """Read a head. Raises ValueError if it does not begin with a status line."""
    first, *lines = _FOLD.sub(b" ", head.lstrip(b"\r\n")).split(b"\n")
    status = _STATUS.fullmatch(first.rstrip())
    if status is None:
        raise ValueError("it does not begin with a status")
    fields = [
        (field[1], field[2].translate(_BLANKS).strip(b" \t"))
        for line in lines
        if (field := _FIELD.fullmatch(line)) is not None
    ]
    return ResponseHead(status[1].upper(), int(status[2]), status[3].translate(_BLANKS), fields)


def plain_head(head: bytes) -> PlainHead:
    """The head as any parser takes it. Raises ValueError as `read_head`, and for lengths that differ."""
    framing = _FRAMING.findall(head)
    if len(framing) <= 1 and all(framing) and _PLAIN.fullmatch(head):
        return PlainHead(head, int(head[9:12]), True)
    read = read_head(head)
    codings = {coding.lower() for coding in _values(read, _CODING)} - _NO_CODINGS
    lengths = {length.lstrip(b"0") or b"0" for length in _values(read, _LENGTH)}
    dropped = {_LENGTH} if codings else {_LENGTH, _CODING}
    lines = []
    if b"chunked" not in codings and lengths:
        if len(lengths) > 1:
            raise ValueError("its lengths differ")
        lines.append(b"Content-Length: " + lengths.pop())
    lines += [b"%b: %b" % field for field in read.headers if field[0].lower() not in dropped]
    version = b"HTTP/1.0" if read.version == b"HTTP/1.0" else b"HTTP/1.1"
    start = b"%b %d %b" % (version, read.status, read.reason)
    return PlainHead(b"\r\n".join([start, *lines, b"", b""]), read.status, False)


def _values(head: ResponseHead, name: bytes) -> Iterator[bytes]:
    for value in b",".join(value for field, value in head.headers if field.lower() == name).split(b","):
        if value.strip():
            yield value.strip()
