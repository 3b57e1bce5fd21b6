"""Search results from a file onto the topic `hits`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from crawler.web.hits_file import LINE_CAP, BadLine, read_hits
from farmwatch.terminal.jsonl import binary_input
from stream.log.contract import Log, partition_of
from stream.log.errors import BadRecord
from stream.schema.records import Hit, Record, read
from stream.schema.topics import HITS
from stream.text.packed_files import bounded_lines
from stream.text.wording import counted


@dataclass(frozen=True, slots=True)
class Appended:
    """How many hits were read, how many of them the log did not have, and how many lines held none."""

    hits: int
    new: int
    skipped: int

    @property
    def text(self) -> str:
        """In words."""
        return f"{counted(self.hits, 'hit')} read, {self.new} new, {counted(self.skipped, 'line')} skipped"


class _HeadOfHit(Record, frozen=True, kw_only=True):
    """The start of a hit's record, which costs less to read."""

    VERSION = Hit.VERSION


class KnownHits:
    """The ids of the hits that the log has. A partition is read when a hit of it is asked for first."""

    def __init__(self, log: Log) -> None:
        """Read nothing yet."""
        self._log = log
        self._ids: dict[int, set[str]] = {}

    def is_new(self, hit: Hit, partition: int) -> bool:
        """Whether the log has no such hit, and none was asked for so far."""
        ids = self._ids.get(partition)
        if ids is None:
            ids = self._ids[partition] = set(self._read(partition))
        known = len(ids)
        ids.add(hit.id)
        return len(ids) > known

    def _read(self, partition: int) -> Iterator[str]:
        for message in self._log.read(HITS, partition, self._log.beginning(HITS)[partition]):
            if message.value:
                with suppress(BadRecord):
                    yield read(_HeadOfHit, message).id


def append_hits(
    log: Log,
    lines: Iterable[bytes],
    told: Callable[[BadLine], None],
    clock: Callable[[], float] = time.time,
    known: KnownHits | None = None,
) -> Appended:
    """Append the hits of a file that the log does not have; `told` hears of each broken line, which is skipped.

    `known` is for several files, so that the log is read once.

    A line that does not say when it was fetched is as of now (`clock`, seconds). A hit's id digests what the file says
    of it, so a file appended twice adds nothing. That costs one pass over the partitions of `hits` that the file's
    sites are in, and about 150 bytes of memory for each hit there. Of files appended side by side, or once retention
    took a hit, it may be appended again; TALLY counts it once. Raises UnknownTopic, LogUnavailable.
    """
    from crawler.hit_records import OutputBatch, hit_output  # it brings the WARC reader along

    partitions = log.topics()[HITS]
    batch = OutputBatch()
    known = known or KnownHits(log)
    hits = new = skipped = 0
    for found in read_hits(lines, now_ms=int(clock() * 1000)):
        if isinstance(found, BadLine):
            skipped += 1
            told(found)
            continue
        hits += 1
        if not known.is_new(found, partition_of(found.site, partitions)):
            continue
        new += 1
        batch.add([hit_output(found, partitions)])
        if batch.is_full:
            log.append(batch.take())
    if batch:
        log.append(batch.take())
    return Appended(hits, new, skipped)


@contextmanager
def input_lines(file: Path) -> Iterator[Iterator[bytes]]:
    """The lines of a file of hits or queries, those that are too long cut. Raises as `binary_input`."""
    with binary_input(file) as stream:
        yield bounded_lines(stream, LINE_CAP)
