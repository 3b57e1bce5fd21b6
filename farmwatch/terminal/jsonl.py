"""JSON lines in and out, in order. Bad lines are reported by number and skipped; many of one kind are counted."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

import msgspec

from farmwatch.terminal.messages import Advance, counting, message
from stream.text.packed_files import LINE_CAP_BYTES, DamagedFile, bounded_lines, open_packed
from stream.text.user_errors import Exit, FarmwatchError
from stream.text.wording import counted, one_line

ALIKE_SHOWN = 20  # bad lines of one kind that are reported one by one
STDIN = ("-", "/dev/stdin")
_PLACE_IN_LIST = re.compile(r"\[\d+\]")

T = TypeVar("T")


class JsonLines(Generic[T]):
    """The objects of some files, each of `kind`. Bad lines are reported on stderr. Call `end` when all is done."""

    def __init__(
        self,
        files: Sequence[Path],
        kind: type[T],
        command: str,
        *,
        bar: bool = False,
        on_bad: Callable[[str], None] = message,
        cap_bytes: int = LINE_CAP_BYTES,
    ) -> None:
        """Read `files` in order for `command`; `-`, or no file, is standard input.

        `bar` shows progress. `on_bad` gets the report of a bad line. A line has at most `cap_bytes`.
        """
        self._cap_bytes = cap_bytes
        self._on_bad = on_bad
        self._bar = bar
        self._command = command
        self._files = list(files) or [Path("-")]
        self._decoder = msgspec.json.Decoder(kind)
        self._bad: dict[str, tuple[int, str]] = {}  # kind of a bad line -> number, and the report of the first

    def __iter__(self) -> Iterator[tuple[str, T]]:
        """(place, object); the place names the line, and the file if there are several, for `bad`.

        Raises FarmwatchError if a file cannot be read.
        """
        is_shown = self._bar and not sys.stdout.isatty()
        is_known = all(file.is_file() for file in self._files)  # the end of a pipe is unknown
        size = sum(file.stat().st_size for file in self._files) if is_known else None
        with counting(size, "of the input") if is_shown else nullcontext(lambda _: None) as advance:
            for file in self._files:
                with binary_input(file) as stream:
                    yield from self._objects(stream, f"{file}: " if len(self._files) > 1 else "", advance)

    def bad(self, place: str, reason: object, kind: str = "") -> None:
        """Report an unusable line; lines of one `kind`, by default of one reason, are counted together."""
        said = " ".join(str(reason).split())
        kind = kind or said
        count, first = self._bad.get(kind, (0, said))
        self._bad[kind] = count + 1, first
        if count < ALIKE_SHOWN:
            self._on_bad(one_line(f"{place}: {said}"))

    @property
    def skipped(self) -> int:
        """Number of lines skipped so far."""
        return sum(count for count, _ in self._bad.values())

    def end(self) -> Exit:
        """Report the lines that were only counted; PROBLEM if any was skipped."""
        for count, first in self._bad.values():
            if count > ALIKE_SHOWN:
                self._on_bad(one_line(f"{counted(count - ALIKE_SHOWN, 'more line')} skipped like these: {first}"))
        return Exit.PROBLEM if self._bad else Exit.OK

    def _objects(self, stream: BinaryIO, where: str, advance: Advance) -> Iterator[tuple[str, T]]:
        for number, line in enumerate(bounded_lines(stream, self._cap_bytes), 1):
            place = f"{where}line {number}"
            advance(len(line))
            if len(line) > self._cap_bytes and not line.endswith(b"\n"):
                self.bad(place, f"longer than {self._cap_bytes // 1024**2} MiB")
                continue
            if not line.strip():
                continue
            try:
                value = self._decoder.decode(line)
            except msgspec.ValidationError as error:
                self.bad(place, f"not what `{self._command}` reads: {error}", _PLACE_IN_LIST.sub("[]", str(error)))
                continue
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                self.bad(place, f"no JSON: {error}", type(error).__name__)
                continue
            yield place, value


def write_line(value: object) -> None:
    """Write one object as a line of JSON to standard output; numbers that JSON cannot represent become null."""
    write_bytes(msgspec.json.encode(value) + b"\n")


def encode_lines(values: Iterable[object]) -> bytes:
    """Objects as lines of JSON, for `write_bytes`."""
    return b"".join(msgspec.json.encode(value) + b"\n" for value in values)


def write_bytes(lines: bytes) -> None:
    """Whole lines to standard output."""
    sys.stdout.buffer.write(lines)


def batches(placed: Iterable[tuple[str, T]], size: int) -> Iterator[list[tuple[str, T]]]:
    """Batches of up to `size`, in order."""
    source = iter(placed)
    while batch := list(itertools.islice(source, size)):
        yield batch


@contextmanager
def binary_input(file: Path, *, packed: bool = True) -> Iterator[BinaryIO]:
    """The file's bytes, inflated if its name ends in .zst or .gz unless `packed` is False; `-` is standard input.

    Raises FarmwatchError if it cannot be read, also during the read.
    """
    if str(file) in STDIN:
        yield sys.stdin.buffer
        return
    try:
        with ExitStack() as stack:
            try:
                opened = stack.enter_context(open_packed(file) if packed else file.open("rb"))
            except OSError as error:
                raise FarmwatchError(f"{file}: {error.strerror}") from error
            yield opened
    except DamagedFile as error:
        raise FarmwatchError(str(error)) from error
