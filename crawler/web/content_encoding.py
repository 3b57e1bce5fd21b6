"""Decodes a Content-Encoding piece by piece, up to a cap: 1.3 MiB of gzip can hold 300 MiB of zeros.

The header is often wrong. A word that is no coding (`utf-8`, `none`) is skipped, unless the body is a packed or another
known file. A body that is not encoded as it says, because a proxy or an archive has decoded it, and that is text as
sent, is taken as sent.
"""

from __future__ import annotations

import zlib
from typing import Any

import brotli

from crawler.web.content_type import MAGIC, SNIFFED_BYTES, is_text

ACCEPTED = "gzip, deflate, br"
_CODINGS = frozenset({"gzip", "x-gzip", "deflate", "br"})
_UNSUPPORTED = frozenset(  # the rest of IANA's HTTP Content Coding Registry, but for `identity`
    {"aes128gcm", "compress", "x-compress", "dcb", "dcz", "exi", "pack200-gzip", "zstd"}
)
_CODINGS_CAP = 5  # of one body; each costs a decoder
_MEMBERS = 1000  # of a gzip file; each costs a decoder, and those of no length would never end
_SLACK_BYTES = 64 * 1024  # of headers and framing: a body is hardly larger encoded than decoded


class BadEncoding(ValueError):
    """The body does not match its Content-Encoding, or that is not supported."""


class Inflater:
    """Decodes pieces of a body and keeps up to `cap` bytes. `full` is True if there are more.

    Of several codings the last one is undone here, and the others by a second inflater behind it.
    """

    def __init__(self, encoding: str, cap: int) -> None:
        """`encoding` is the value of a Content-Encoding header. Raises BadEncoding if it names too many codings."""
        words = [word for word in map(str.strip, encoding.lower().split(",")) if word not in ("", "identity")]
        names = [word for word in words if word in _CODINGS | _UNSUPPORTED]
        self._words = "" if names else ", ".join(words)
        if len(names) > _CODINGS_CAP:
            raise BadEncoding(f"more than {_CODINGS_CAP} content encodings: {encoding[:80]}")
        *others, self._name = names or ["identity"]
        self._others = ", ".join(others)
        self._cap = cap
        self._fault = f"unsupported content encoding: {self._name}" if self._name in _UNSUPPORTED else ""
        self._sent: bytearray | None = bytearray()  # the body as sent, as long as it may be text
        self._members = 0
        self._decoder: Any = brotli.Decompressor() if self._name == "br" else None
        self._begin()

    def _begin(self) -> None:
        self._next = Inflater(self._others, self._cap) if self._others else None
        self._left = self._cap + (_SLACK_BYTES if self._next else 0)
        self._pieces: list[bytes] = []
        self._is_full = False

    @property
    def full(self) -> bool:
        return self._is_full or (self._next is not None and self._next.full)

    def feed(self, piece: bytes) -> None:
        if self.full or not piece:
            return
        if self._name == "identity":
            self._keep(piece)
            return
        if self._sent is not None:
            self._sent += piece
            if not is_text(self._sent):
                self._sent = None
        if not self._fault:
            try:
                if self._name == "br":
                    self._keep(self._decoder.process(piece, output_buffer_limit=self._left + 1))
                    while not self.full and not self._decoder.can_accept_more_data():
                        self._keep(self._decoder.process(b"", output_buffer_limit=self._left + 1))
                else:
                    self._feed_zlib(piece)
            except (zlib.error, brotli.error, BadEncoding) as error:
                self._fault, self._decoder = f"body is not {self._name}: {error}", None
        if self._fault and (self._sent is None or len(self._sent) >= SNIFFED_BYTES):
            self._take_as_sent()

    def body(self) -> bytes:
        self._end()
        body = self._next.body() if self._next is not None else b"".join(self._pieces)
        if self._words and body.startswith(MAGIC):
            raise BadEncoding(f"unknown content encoding: {self._words[:40]}")
        return body

    @property
    def cut_short(self) -> bool:
        """Whether the compressed stream was cut, by the cap or by its sender. Raises BadEncoding."""
        self._end()
        if self.full or (self._next is not None and self._next.cut_short):
            return True
        return self._decoder is not None and not self._is_over

    @property
    def _is_over(self) -> bool:
        if self._decoder is None:
            return False
        return bool(self._decoder.is_finished() if self._name == "br" else self._decoder.eof)

    def _end(self) -> None:
        """No piece follows. Text that is no complete stream, and nothing behind it, was not encoded."""
        if self._name == "identity" or self.full:
            return
        is_whole = self._is_over and not getattr(self._decoder, "unused_data", b"")
        if self._fault or (self._sent is not None and not is_whole):
            self._take_as_sent()

    def _take_as_sent(self) -> None:
        """The body is not encoded in the last coding. Raises BadEncoding if it is no text."""
        if self._sent is None:
            raise BadEncoding(self._fault)
        sent, self._sent = bytes(self._sent), None
        self._name, self._decoder, self._fault = "identity", None, ""
        self._begin()
        self._keep(sent)

    def _keep(self, inflated: bytes) -> None:
        if len(inflated) > self._left:
            self._is_full = True
            inflated = inflated[: self._left]
        self._left -= len(inflated)
        if self._next is not None:
            self._next.feed(inflated)
        elif inflated:
            self._pieces.append(inflated)

    def _feed_zlib(self, piece: bytes) -> None:
        while piece and not self.full:
            if self._decoder is None:
                self._decoder = zlib.decompressobj(_window_bits(self._name, piece))
            self._keep(self._decoder.decompress(piece, self._left + 1))
            if not self._decoder.eof:
                piece = self._decoder.unconsumed_tail
                continue
            piece = self._decoder.unused_data if self._name != "deflate" else b""
            if not piece.startswith(b"\x1f\x8b"):  # another gzip member may follow, or padding
                return
            self._members += 1
            if self._members >= _MEMBERS:
                self._is_full = True
                return
            self._decoder = None


def _window_bits(name: str, piece: bytes) -> int:
    """zlib's window bits. Some servers send `deflate` without the zlib header of RFC 9110 section 8.4.1.2."""
    if name != "deflate":
        return 31
    has_header = piece[0] & 0x0F == 8 and (len(piece) < 2 or (piece[0] << 8 | piece[1]) % 31 == 0)
    return 15 if has_header else -15
