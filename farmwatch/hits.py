"""Search results from a file onto the topic `hits`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from crawler.hits_file import LINE_CAP, BadLine, read_hits
from farmwatch.errors import FarmwatchError
from stream.log import Log
from stream.packed_files import DamagedFile, bounded_lines, open_packed
from stream.topics import HITS

STDIN = ("-", "/dev/stdin")


@dataclass(frozen=True, slots=True)
class Appended:
    """How many hits were appended, and how many lines held none."""

    hits: int
    skipped: int


def append_hits(
    log: Log, lines: Iterable[bytes], told: Callable[[BadLine], None], clock: Callable[[], float] = time.time
) -> Appended:
    """Append the hits of a file; `told` hears of each broken line, which is skipped.

    A line that does not say when it was fetched is as of now (`clock`, seconds). A file appended twice is harmless: a
    hit's id digests what the file says of it, so TALLY counts its first appending, and the frontier knows its URL.
    Raises UnknownTopic, LogUnavailable.
    """
    from crawler.appending import Batch, hit_output  # it brings the WARC reader along

    partitions = log.topics()[HITS]
    batch = Batch()
    hits = skipped = 0
    for found in read_hits(lines, now_ms=int(clock() * 1000)):
        if isinstance(found, BadLine):
            skipped += 1
            told(found)
            continue
        batch.add([hit_output(found, partitions)])
        hits += 1
        if batch.is_full:
            log.append(batch.take())
    if batch:
        log.append(batch.take())
    return Appended(hits, skipped)


@contextmanager
def binary_input(file: Path, *, packed: bool = True) -> Iterator[BinaryIO]:
    """The file's bytes, inflated where its name ends in .zst or .gz unless `packed` is False; `-` is standard input.

    Raises FarmwatchError when it cannot be read, also while it is.
    """
    if str(file) in STDIN:
        yield sys.stdin.buffer
        return
    try:
        with ExitStack() as stack:
            try:
                opened = stack.enter_context(open_packed(file) if packed else file.open("rb"))
            except OSError as error:
                raise FarmwatchError(f"{file}: cannot be read: {error.strerror}") from error
            yield opened
    except DamagedFile as error:
        raise FarmwatchError(str(error)) from error


@contextmanager
def input_lines(file: Path) -> Iterator[Iterator[bytes]]:
    """The lines of a file of hits or queries, those that are too long cut. Raises as `binary_input`."""
    with binary_input(file) as stream:
        yield bounded_lines(stream, LINE_CAP)
