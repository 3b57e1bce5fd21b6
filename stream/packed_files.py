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


class DamagedFile(ValueError):
    """A file is not packed as its name says, or it is cut short. The user packs it anew; what was read stays read."""


@contextmanager
def open_packed(file: Path) -> Iterator[BinaryIO]:
    """The file's bytes, inflated where its name ends in .zst or .gz, several frames or members one after another.

    Raises OSError, and DamagedFile also while the bytes are read.
    """
    with file.open("rb") as raw:
        try:
            if file.suffix == ".zst":
                inflate = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)
                yield io.BufferedReader(inflate.stream_reader(raw, read_across_frames=True))
            elif file.suffix == ".gz":
                yield cast("BinaryIO", gzip.GzipFile(fileobj=raw))
            else:
                yield raw
        except zstandard.ZstdError as error:
            raise DamagedFile(f"{file}: no zstd file, or a damaged one") from error
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DamagedFile(f"{file}: no gzip file, or a damaged one: {error}") from error


def unpacked_name(file: Path) -> str:
    """The file's name without what says how it is packed."""
    return file.stem if file.suffix in _SUFFIXES else file.name


def bounded_lines(stream: BinaryIO, cap_bytes: int) -> Iterator[bytes]:
    """The lines of a stream; of one longer than `cap_bytes` its first `cap_bytes` + 1, without the end of a line.

    So a packed file that inflates to a line without end costs time and no memory.
    """
    while line := stream.readline(cap_bytes + 1):
        if len(line) > cap_bytes and not line.endswith(b"\n"):
            while (rest := stream.readline(cap_bytes)) and not rest.endswith(b"\n"):
                pass
        yield line
