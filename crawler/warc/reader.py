"""A bounded reader of WARC files: it uses bounded memory and reports faults by offset.

warcio has no bound on a line, a header or a chunk, and stops at the first broken gzip member. This reader reports a
broken record and continues at the next line that begins one: in the same gzip member, which may hold a whole file, or
in the uncompressed file. Behind a broken member it continues at the next one that begins a record. A record whose
Content-Length reaches over others costs these too.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

BLOCK_CAP_BYTES = 8 * 1024 * 1024  # read of one record; the rest is skipped
_HEAD_CAP_BYTES = 64 * 1024  # header lines of a record
_PIECE_BYTES = 64 * 1024
_FOLD = re.compile(rb"\r?\n[ \t]+")  # a header's value that continues in the next line
_BLANK = b"\r\n\r\n"  # after a block
_MAGIC = b"\x1f\x8b\x08"  # gzip (RFC 1952) with deflate, its only method
_LOOK_BACK_BYTES = 65_540  # a stored block of deflate: a cut member swallows this much of the next
_VERSIONS = (b"WARC/1.0", b"WARC/1.1")


@dataclass(frozen=True, slots=True)
class WarcRecord:
    """A record. `headers` have lower-case names; `block` is cut at BLOCK_CAP_BYTES, and empty for unwanted types."""

    offset: int  # in the file: where its gzip member, or its first line, begins
    headers: dict[str, str]
    block: bytes
    cut: bool

    @property
    def kind(self) -> str:
        return self.headers.get("warc-type", "")

    @property
    def url(self) -> str:
        """WARC-Target-URI, without the brackets that wget 1.19 adds."""
        return self.headers.get("warc-target-uri", "").removeprefix("<").removesuffix(">")


@dataclass(frozen=True, slots=True)
class WarcFault:
    """An unreadable part, and its offset."""

    offset: int
    reason: str


class _Broken(Exception):
    """The current record is unreadable."""


def records_of(stream: BinaryIO, wanted: Collection[str], *, offset: int = 0) -> Iterator[WarcRecord | WarcFault]:
    """The records in order, with the blocks of the `wanted` types; `offset` is the stream's start. Raises OSError."""
    bytes_ = _Bytes(stream, offset)
    while bytes_.begin():
        start = bytes_.record_offset
        try:
            record = _read(bytes_, start, wanted)
        except _Broken as error:
            yield WarcFault(start, str(error))
            bytes_.resume()
            continue
        yield record


def _read(bytes_: _Bytes, start: int, wanted: Collection[str]) -> WarcRecord:
    lines = _FOLD.sub(b" ", bytes_.head()).split(b"\n")
    if lines[0].strip() not in _VERSIONS:
        raise _Broken("no WARC 1.0 or 1.1 record begins here")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.decode("utf-8", "replace").partition(":")
        if colon:
            headers.setdefault(name.strip().lower(), value.strip())
    length = headers.get("content-length", "")
    if not (length.isascii() and length.isdigit() and len(length) <= 18):
        raise _Broken("a record without a usable Content-Length")
    is_wanted = headers.get("warc-type", "") in wanted
    kept: list[bytes] = []
    room = BLOCK_CAP_BYTES if is_wanted else 0
    left = int(length)
    while left:
        piece = bytes_.take(min(left, _PIECE_BYTES))
        if not piece:
            raise _Broken(f"the record ends {left} bytes before its Content-Length")
        left -= len(piece)
        if room:
            kept.append(piece[:room])
            room -= len(kept[-1])
    bytes_.end_record()
    return WarcRecord(start, headers, b"".join(kept), is_wanted and int(length) > BLOCK_CAP_BYTES)


class _Bytes:
    """The inflated bytes of a stream, with record offsets and recovery after a broken record."""

    def __init__(self, stream: BinaryIO, offset: int) -> None:
        self._stream = stream
        self._raw = b""  # read of the stream and not inflated yet
        self._at = offset  # of the first byte of `_raw`
        self._ready = b""  # inflated and not taken yet
        self._inflate: Any = None  # None between members, and for a stream that is not compressed
        self._is_gzip: bool | None = None
        self._past = b""  # last inflated input of the current gzip member
        self._damage = ""  # its fault
        self._searched_to = offset  # where members were searched for after the last damage
        self.record_offset = offset

    def begin(self) -> bool:
        """Whether another record follows; skips the blank lines before it."""
        while not self._ready:
            if self._inflate is None:
                self.record_offset = self._at
                if not self._raw and not self._read():
                    return False
            try:
                self._fill()
            except _Broken:
                return True  # `head` says so
            self._ready = self._ready.lstrip(b"\r\n")
        if not self._is_gzip:
            self.record_offset = self._at - len(self._ready)
        return True

    def head(self) -> bytes:
        if self._damage:
            raise _Broken(self._damage)
        while True:
            ends = [
                (end, len(blank))
                for blank in (_BLANK, b"\n\n")
                if (end := self._ready.find(blank, 0, _HEAD_CAP_BYTES)) >= 0
            ]
            if ends:
                end, blank_bytes = min(ends)
                head, self._ready = self._ready[:end], self._ready[end + blank_bytes :]
                return head
            if len(self._ready) >= _HEAD_CAP_BYTES or not self._more():
                self._ready = self._ready[1:]  # the search for the next record passes this one
                raise _Broken("no WARC 1.0 or 1.1 record begins here, or its headers have no end")

    def take(self, count: int) -> bytes:
        """Up to `count` bytes of the record; empty at the end of its gzip member or file. Raises _Broken."""
        while not self._ready:
            if not self._more():
                return b""
        piece, self._ready = self._ready[:count], self._ready[count:]
        return piece

    def end_record(self) -> None:
        """Skip the blank lines after a block, and check the checksum of its gzip member. Raises _Broken."""
        while len(self._ready) <= len(_BLANK) and self._more():
            pass
        if self._ready and not self._ready.startswith((b"\r", b"\n", b"WARC/1.")):
            raise _Broken("the record continues behind its Content-Length")
        self._ready = self._ready.lstrip(b"\r\n")

    def resume(self) -> None:
        """Skip a broken record: to the next line or member that begins one, or to the end of the stream."""
        with suppress(_Broken):
            if not self._damage:
                self._next_line()
        if self._damage:
            self._ready = b""
            self._next_member()

    def _more(self) -> bool:
        """Read more bytes of the same member, or file; False at its end. Raises _Broken."""
        if self._is_gzip:
            if self._inflate is None:
                return False
        elif not self._raw and not self._read():
            return False
        self._fill()
        return True

    def _fill(self) -> None:
        """Make a piece ready, which may be empty at the end of a member. Raises _Broken."""
        if not self._raw and not self._read():
            self._break("the file ends within a gzip member")
        if self._is_gzip is None:
            self._is_gzip = self._raw.startswith(_MAGIC[:2])
        if not self._is_gzip:
            self._ready += self._raw
            self._skip(len(self._raw))
            return
        if self._inflate is None:
            self._inflate = zlib.decompressobj(31)
            self._past = b""
        try:
            self._ready += self._inflate.decompress(self._raw, _PIECE_BYTES)
        except zlib.error as error:
            self._break(f"a broken gzip member: {error}")
        is_over = self._inflate.eof
        over = self._inflate.unused_data if is_over else self._inflate.unconsumed_tail
        used = len(self._raw) - len(over)
        self._past = (self._past + self._raw[:used])[-_LOOK_BACK_BYTES:]
        self._skip(used)
        if is_over:
            self._inflate = None

    def _break(self, damage: str) -> NoReturn:
        self._inflate = None
        self._damage = damage
        raise _Broken(damage)

    def _next_member(self) -> None:
        self._damage = ""
        known_to = max(self.record_offset + 1, self._searched_to)  # no byte is searched twice
        self._searched_to = self._at
        self._raw, self._at = self._past + self._raw, self._at - len(self._past)
        self._past = b""
        self._skip(max(0, known_to - self._at))
        while True:
            at = self._raw.find(_MAGIC)
            if at < 0:
                self._skip(max(0, len(self._raw) - len(_MAGIC) + 1))
                if not self._read():
                    self._skip(len(self._raw))
                    return
                continue
            self._skip(at)
            while len(self._raw) < _PIECE_BYTES and self._read():
                pass
            try:
                start = zlib.decompressobj(31).decompress(self._raw, len(b"WARC/1."))
            except zlib.error:
                start = b""
            if start == b"WARC/1.":
                return
            self._skip(1)

    def _next_line(self) -> None:
        """Go to the next line that begins a record, or to the end of the member or file. Raises _Broken."""
        mark = b"\nWARC/1."
        self._ready = b"\n" + self._ready  # the record may have been read to its end
        while True:
            at = self._ready.find(mark)
            if at >= 0:
                self._ready = self._ready[at + 1 :]
                return
            self._ready = self._ready[1 - len(mark) :]
            if not self._more():
                self._ready = b""
                return

    def _read(self) -> bool:
        piece = self._stream.read(_PIECE_BYTES)
        self._raw += piece
        return bool(piece)

    def _skip(self, count: int) -> None:
        self._raw = self._raw[count:]
        self._at += count
