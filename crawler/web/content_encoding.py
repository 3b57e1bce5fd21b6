"""Decodes a Content-Encoding piece by piece, up to a cap: 1.3 MiB of gzip can hold 300 MiB of zeros."""

from __future__ import annotations

import zlib
from typing import Any

import brotli

ACCEPTED = "gzip, deflate, br"
_MEMBERS = 1000  # of a gzip file; each costs a decoder, and those of no length would never end


class BadEncoding(ValueError):
    """The body does not match its Content-Encoding, or that is not supported."""


class Inflater:
    """Decodes pieces of a body and keeps up to `cap` bytes. `full` is True if there are more."""

    def __init__(self, encoding: str, cap: int) -> None:
        """`encoding` is the value of a Content-Encoding header. Raises BadEncoding if it is unknown."""
        self._names = [n for n in (name.strip().lower() for name in encoding.split(",")) if n not in ("", "identity")]
        if len(self._names) > 1:
            raise BadEncoding(f"more than one content encoding: {encoding[:80]}")
        name = self._names[0] if self._names else "identity"
        if name not in ("identity", "gzip", "x-gzip", "deflate", "br"):
            raise BadEncoding(f"content encoding not accepted: {name[:40]}")
        self._name = name
        self._decoder: Any = brotli.Decompressor() if name == "br" else None
        self._left = cap
        self._pieces: list[bytes] = []
        self._members = 0
        self.full = False

    def feed(self, piece: bytes) -> None:
        """Decode the next piece. Raises BadEncoding if it is broken."""
        if self.full or not piece:
            return
        if self._name == "identity":
            self._keep(piece)
            return
        try:
            if self._name == "br":
                self._feed_brotli(piece)
            else:
                self._feed_zlib(piece)
        except (zlib.error, brotli.error) as error:
            raise BadEncoding(f"body is not {self._name}: {error}") from None

    def body(self) -> bytes:
        return b"".join(self._pieces)

    @property
    def cut_short(self) -> bool:
        """Whether the compressed stream was cut, by the cap or by its sender."""
        if self._decoder is None or self.full:
            return self.full
        return not (self._decoder.is_finished() if self._name == "br" else self._decoder.eof)

    def _keep(self, inflated: bytes) -> None:
        if len(inflated) > self._left:
            self.full = True
            inflated = inflated[: self._left]
        self._left -= len(inflated)
        if inflated:
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
                self.full = True
                return
            self._decoder = None

    def _feed_brotli(self, piece: bytes) -> None:
        self._keep(self._decoder.process(piece, output_buffer_limit=self._left + 1))
        while not self.full and not self._decoder.can_accept_more_data():
            self._keep(self._decoder.process(b"", output_buffer_limit=self._left + 1))


def _window_bits(name: str, piece: bytes) -> int:
    """zlib's window bits. Some servers send `deflate` without the zlib header of RFC 9110 section 8.4.1.2."""
    if name != "deflate":
        return 31
    has_header = piece[0] & 0x0F == 8 and (len(piece) < 2 or (piece[0] << 8 | piece[1]) % 31 == 0)
    return 15 if has_header else -15
