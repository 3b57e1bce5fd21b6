"""Reads line files of users, plain or compressed as .zst or .gz, with a cap on the length of lines."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

LINE_CAP_BYTES = 64 * 1024 * 1024  # of a line of JSON; a page of 2 MiB escaped as JSON is far below
_WINDOW_BYTES = 2**27  # the window of `zstd --long`; a file that needs more memory is refused
_SUFFIXES = (".zst", ".gz")
_PIECE_BYTES = 2**17
_ZST_PIECE_BYTES = 2**10  # inflates to 32 MiB at most


class DamagedFile(ValueError):
    """A compressed file is truncated, corrupt, or of another format. The user compresses it again."""


@contextmanager
def open_packed(file: Path) -> Iterator[BinaryIO]:
    """The bytes, inflated by the name's .zst or .gz; no line of a damaged file. Raises OSError, DamagedFile."""
    packing = file.suffix.lower()
    with file.open("rb") as raw:
        try:
            if packing == ".zst" and raw.seekable():
                _check_zst(raw)
            elif packing == ".gz" and raw.seekable():
                inflated = _inflated(raw, packing)
                while inflated.read(_PIECE_BYTES):
                    pass
            if packing in _SUFFIXES and raw.seekable():
                raw.seek(0)
            yield _inflated(raw, packing)
        except zstandard.ZstdError as error:
            raise DamagedFile(f"{file}: no zstd file, or a damaged one: {error}") from error
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DamagedFile(f"{file}: no gzip file, or a damaged one: {error}") from error


def _inflated(raw: BinaryIO, packing: str) -> BinaryIO:
    if packing == ".zst":
        return io.BufferedReader(_decompressor().stream_reader(raw, read_across_frames=True, closefd=False))
    return cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if packing == ".gz" else raw


def unpacked_name(file: Path) -> str:
    """The file's name without its compression suffix."""
    return file.stem if file.suffix.lower() in _SUFFIXES else file.name


def _decompressor() -> zstandard.ZstdDecompressor:
    return zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)


def _check_zst(raw: BinaryIO) -> None:
    """Raise ZstdError if the file is damaged or its last frame is cut, which the stream reader accepts."""
    inflate = None
    while piece := raw.read(_ZST_PIECE_BYTES):
        while piece:
            if inflate is None or inflate.eof:
                inflate = _decompressor().decompressobj()
            inflate.decompress(piece)
            piece = inflate.unused_data
    if inflate is not None and not inflate.eof:
        raise zstandard.ZstdError("it is cut short")


def bounded_lines(stream: BinaryIO, cap_bytes: int = LINE_CAP_BYTES) -> Iterator[bytes]:
    """The lines of a stream, without the byte order mark of UTF-8 that Windows editors write.

    A longer line is cut to `cap_bytes` + 1 bytes, without loading the rest.
    """
    mark = codecs.BOM_UTF8
    while line := stream.readline(cap_bytes + 1):
        if len(line) > cap_bytes and not line.endswith(b"\n"):
            while (rest := stream.readline(cap_bytes)) and not rest.endswith(b"\n"):
                pass
        yield line.removeprefix(mark)
        mark = b""
