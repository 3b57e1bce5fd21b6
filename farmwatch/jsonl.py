"""JSON lines in and out, as a stream: order kept, a bad line reported with its number and skipped."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

import msgspec

from farmwatch.errors import Exit
from farmwatch.hits import binary_input
from farmwatch.messages import message
from farmwatch.progress import Advance, reading

LINE_CAP_BYTES = 64 * 1024 * 1024  # of one line; a page of 2 MiB escaped as JSON is far below

T = TypeVar("T")


class JsonLines(Generic[T]):
    """The objects of some files, each of `kind`; keys that `kind` does not have are passed over.

    What is wrong with a line goes to stderr as `line N: reason`; `exit` says whether any was skipped.
    """

    def __init__(self, files: Sequence[Path], kind: type[T], *, bar: bool = False) -> None:
        """Read `files` in order; `-` is standard input, and so is none at all. `bar` is for work that takes long."""
        self._bar = bar
        self._files = list(files) or [Path("-")]
        self._decoder = msgspec.json.Decoder(kind)
        self.skipped = 0

    def __iter__(self) -> Iterator[tuple[str, T]]:
        """(place, object); the place names the line, and the file where there are several, for `bad`.

        Raises FarmwatchError when a file cannot be read.
        """
        with reading(self._files, shown=self._bar) as advance:
            for file in self._files:
                with binary_input(file) as stream:
                    yield from self._objects(stream, f"{file}: " if len(self._files) > 1 else "", advance)

    def bad(self, place: str, reason: object) -> None:
        """Report a line that could not be used."""
        self.skipped += 1
        message(f"{place}: {' '.join(str(reason).split())}")

    @property
    def exit(self) -> Exit:
        """PROBLEM when a line was skipped."""
        return Exit.PROBLEM if self.skipped else Exit.OK

    def _objects(self, stream: BinaryIO, where: str, advance: Advance) -> Iterator[tuple[str, T]]:
        number = 0
        while line := stream.readline(LINE_CAP_BYTES + 1):
            number += 1
            place = f"{where}line {number}"
            advance(len(line))
            if len(line) > LINE_CAP_BYTES and not line.endswith(b"\n"):
                _skip_rest(stream)
                self.bad(place, f"longer than {LINE_CAP_BYTES // 1024**2} MiB")
                continue
            if not line.strip():
                continue
            try:
                value = self._decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                self.bad(place, error)
                continue
            yield place, value


def _skip_rest(stream: BinaryIO) -> None:
    while (part := stream.readline(LINE_CAP_BYTES)) and not part.endswith(b"\n"):
        pass


def write_line(value: object) -> None:
    """One object as a line of JSON on standard output; numbers that JSON cannot say become null."""
    write_bytes(msgspec.json.encode(value) + b"\n")


def encode_lines(values: Iterable[object]) -> bytes:
    """Objects as lines of JSON, for `write_bytes`."""
    return b"".join(msgspec.json.encode(value) + b"\n" for value in values)


def write_bytes(lines: bytes) -> None:
    """Whole lines to standard output."""
    sys.stdout.buffer.write(lines)


def batches(placed: Iterable[tuple[str, T]], size: int) -> Iterator[list[tuple[str, T]]]:
    """Runs of up to `size`, in order."""
    source = iter(placed)
    while batch := list(itertools.islice(source, size)):
        yield batch
