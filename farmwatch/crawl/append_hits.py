"""Appends search results from files to the topic `hits`."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from crawler.stages.hit_records import HitBatch, KnownHits
from crawler.web.columns import FileColumns, UnknownColumn
from crawler.web.hits_file import BadLine, hit_columns, read_hits
from crawler.web.record_lines import LINE_CAP
from farmwatch.config.config import Config
from farmwatch.config.opening import opened
from farmwatch.config.topic_limits import create_missing
from farmwatch.terminal.jsonl import STDIN, binary_input
from farmwatch.terminal.messages import message
from replay.runs.control_update import operator
from stream.log.contract import Log, partition_of
from stream.schema.imports import Import, headers_of_import, import_row
from stream.schema.records import Hit
from stream.schema.topics import HITS
from stream.text.packed_files import bounded_lines
from stream.text.wording import counted, one_line

_SAID_CAP = 600  # characters of the names of columns in a message


@dataclass(frozen=True, slots=True)
class AppendSummary:
    """Counts of read hits, new hits, and skipped lines."""

    hits: int = 0
    new: int = 0
    skipped: int = 0

    def __add__(self, other: AppendSummary) -> AppendSummary:
        return AppendSummary(self.hits + other.hits, self.new + other.new, self.skipped + other.skipped)

    @property
    def text(self) -> str:
        return f"{counted(self.hits, 'hit')} read, {self.new} new, {counted(self.skipped, 'line')} skipped"


def append_files(
    config: Config, files: Sequence[Path], given: Mapping[str, str] | None = None
) -> Iterator[tuple[Path, AppendSummary]]:
    """Append the new hits of each file; invalid lines are reported on stderr and skipped, and how columns were read.

    `given`: field -> name of its column. Creates the log if there is none, after every file could be opened and has
    these columns. Raises as `binary_input` and `append_hits`.
    """
    for file in files:
        with input_lines(file) as lines, _named(file):
            if given and str(file) not in STDIN:
                next(read_hits(lines, columns=hit_columns(given)), None)
    with opened(config, create=True) as log:
        create_missing(log, config)
        known = KnownHits(log)
        for file in files:
            columns = hit_columns(given)
            with input_lines(file) as lines, _named(file):
                bad = partial(report_bad_line, file)
                summary = append_hits(log, lines, bad, known=known, columns=columns, name=str(file))
            _report_columns(file, columns)
            yield file, summary


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """The file is named in an error of its columns."""
    try:
        yield
    except UnknownColumn as error:
        raise UnknownColumn(one_line(f"{file}: {error}")) from None


def _report_columns(file: Path, columns: FileColumns) -> None:
    """Say which columns were read under another name, and which were not used or had values that do not fit."""
    read_as = ", ".join(f"{name} as {field}" for field, name in columns.guessed.items())
    unused = ", ".join(columns.unused)
    said = [f"read {read_as}"] if read_as else []
    said += [f"not used: {unused}"] if unused else []
    if said:
        message(one_line(f"{file}: {'; '.join(said)[:_SAID_CAP]}"))
    for field, count in columns.left_out.items():
        message(one_line(f"{file}: left out: {counted(count, 'value')} of {columns.used[field]}, no {field}"))


def report_bad_line(file: Path, bad: BadLine) -> None:
    """Report an invalid line on stderr."""
    message(f"{file}: line {bad.number}: {one_line(bad.reason)}")


def append_hits(
    log: Log,
    lines: Iterable[bytes],
    on_bad_line: Callable[[BadLine], None],
    clock: Callable[[], float] = time.time,
    known: KnownHits | None = None,
    columns: FileColumns | None = None,
    name: str = "-",
) -> AppendSummary:
    """Append the new hits of a file called `name` as one import; `known` shares the known hits between several files.

    A line without a time of fetch gets the current time (`clock`, seconds). The id of a hit is a digest of its line, so
    a file appended twice adds nothing. This takes one pass over the partitions of `hits` with the file's sites, and
    about 150 bytes of memory per hit there. If processes append the same file at the same time, or retention removed a
    hit, the hit may be appended again; TALLY counts it once. Raises UnknownTopic, UnknownColumn, LogUnavailable.
    """
    partitions = log.topics()[HITS]
    batch = HitBatch(partitions)
    known = known or KnownHits(log)
    imported = Import(id=secrets.token_hex(4), at=int(clock() * 1000), by=operator(), file=name)
    sites: set[str] = set()
    hits = new = skipped = 0
    try:
        for hit in read_hits(lines, now_ms=imported.at, columns=columns):
            if isinstance(hit, BadLine):
                skipped += 1
                on_bad_line(hit)
                continue
            hits += 1
            if known.is_new(hit.id, partition_of(hit.site, partitions)):
                if not new:
                    log.append([import_row(imported)])
                new += 1
                sites.add(hit.site)
                batch.add(hit, headers_of_import(imported.id))
                if batch.is_full:
                    batch.append(log.append, known)
                    batch = HitBatch(partitions)
    finally:  # so that an interrupted import can be undone
        batch.append(log.append, known)
        if new:
            log.append([import_row(replace(imported, hits=new, sites=len(sites)))])
    return AppendSummary(hits, new, skipped)


@contextmanager
def input_lines(file: Path) -> Iterator[Iterator[bytes]]:
    """The lines of a file of hits or queries; long lines are cut. Raises as `binary_input`."""
    with binary_input(file) as stream:
        yield bounded_lines(stream, LINE_CAP)


def hits_of(files: Sequence[Path], now_ms: int) -> tuple[list[Hit], int]:
    """The hits of files, and the number of lines without one, which are reported."""
    hits: list[Hit] = []
    skipped = 0
    for file in files:
        with input_lines(file) as lines:
            for hit in read_hits(lines, now_ms=now_ms):
                if isinstance(hit, BadLine):
                    skipped += 1
                    report_bad_line(file, hit)
                else:
                    hits.append(hit)
    return hits, skipped
