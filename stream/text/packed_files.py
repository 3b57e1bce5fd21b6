"""Files of lines as users have them: plain, or packed as .zst or .gz; and their lines, none longer than a cap."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

_WINDOW_BYTES = 2**27  # what `zstd --long` makes; a file that wants more memory is refused
_SUFFIXES = (".zst", ".gz")
_PIECE_BYTES = 2**17
_FRAME_HEAD_BYTES = 18  # at most
_RUN = 1  # type of a block that holds one byte, to be repeated


class DamagedFile(ValueError):
    """A file is not packed as its name says, is cut short, or fails its checksum. The user packs it anew."""


@contextmanager
def open_packed(file: Path) -> Iterator[BinaryIO]:
    """The file's bytes, inflated where its name ends in .zst or .gz, several frames or members one after another.

    A packed file is read twice: no line of a damaged one is given, for a wrong byte may look like another URL. A pipe
    is read once. Raises OSError and DamagedFile, of a pipe also while the bytes are read.
    """
    packing = _packing(file)
    with file.open("rb") as raw:
        try:
            if packing in _SUFFIXES and raw.seekable():
                if packing == ".zst":
                    _require_whole(raw)
                inflated = _inflated(raw, packing)
                while inflated.read(_PIECE_BYTES):
                    pass
                raw.seek(0)
            yield _inflated(raw, packing)
        except zstandard.ZstdError as error:
            raise DamagedFile(f"{file}: no zstd file, or a damaged one: {error}") from error
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DamagedFile(f"{file}: no gzip file, or a damaged one: {error}") from error


def _inflated(raw: BinaryIO, packing: str) -> BinaryIO:
    if packing == ".zst":
        inflate = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)
        return io.BufferedReader(inflate.stream_reader(raw, read_across_frames=True, closefd=False))
    return cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if packing == ".gz" else raw


def unpacked_name(file: Path) -> str:
    """The file's name without what says how it is packed."""
    return file.stem if _packing(file) in _SUFFIXES else file.name


def _packing(file: Path) -> str:
    return file.suffix.lower()


def _require_whole(raw: BinaryIO) -> None:
    """Raise ZstdError where the last frame is cut short, which zstandard's reader takes for the end of the file.

    It looks at the headers of frames and blocks only (RFC 8878, section 3.1).
    """
    size_bytes = raw.seek(0, io.SEEK_END)
    raw.seek(0)
    while head := raw.read(_FRAME_HEAD_BYTES):
        start = raw.tell() - len(head)
        if head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5:  # a skippable frame
            raw.seek(start + 8 + int.from_bytes(head[4:8], "little"))
        else:
            frame = zstandard.get_frame_parameters(head)
            raw.seek(start + zstandard.frame_header_size(head))
            is_last = False
            while not is_last and len(block := raw.read(3)) == 3:
                number = int.from_bytes(block, "little")
                is_last = bool(number & 1)
                raw.seek(1 if number >> 1 & 3 == _RUN else number >> 3, io.SEEK_CUR)
            if not is_last:
                raise zstandard.ZstdError("it is cut short")
            raw.seek(4 if frame.has_checksum else 0, io.SEEK_CUR)
        if raw.tell() > size_bytes:
            raise zstandard.ZstdError("it is cut short")
    raw.seek(0)


def bounded_lines(stream: BinaryIO, cap_bytes: int) -> Iterator[bytes]:
    """The lines of a stream; of one longer than `cap_bytes` its first `cap_bytes` + 1, without the end of a line.

    So a packed file that inflates to a line without end costs time and no memory.
    """
    while line := stream.readline(cap_bytes + 1):
        if len(line) > cap_bytes and not line.endswith(b"\n"):
            while (rest := stream.readline(cap_bytes)) and not rest.endswith(b"\n"):
                pass
        yield line
