"""Appends the pages of archives to the log, each once: the page to `pages` and its hit to `hits`, in one append.

So an existing hit shows that its page exists. An import reads all hits before the first file, and skips their pages: an
interrupted import can be repeated. This takes one pass over `hits` and about 150 bytes of memory per imported page, and
works as long as the log retains its hits.

Several imports and searches may run at the same time on one machine: each holds a lock during a batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from crawler.stages.hit_records import BATCH_BYTES, HitBatch, KnownHits
from crawler.warc.pages import ArchivedPage, Skipped
from farmwatch.config.config import Config
from farmwatch.config.member_names import names_folder
from stream.log.contract import Log
from stream.log.private_folders import make_private
from stream.schema.topics import HITS
from stream.text.user_errors import FarmwatchError

IMPORTS_LOCK = "imports.lock"


@dataclass(slots=True)
class ImportSummary:
    """Counts of appended pages, of those that came instead of one and of skipped ones by reason, and broken records."""

    pages: int = 0
    no_pages: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    broken: int = 0


def import_pages(
    log: Log,
    records: Iterable[ArchivedPage | Skipped],
    imports: KnownHits,
    on_broken: Callable[[Skipped], None],
    batch_bytes: int = BATCH_BYTES,
) -> ImportSummary:
    """Append the pages of an archive that are not in `imports`; `on_broken` gets each broken record.

    Raises as `Log.append` and `KnownHits.hold`, and OSError for an unreadable archive; appended pages stay.
    """
    partitions = log.topics()[HITS]
    summary = ImportSummary()
    batch = HitBatch(partitions, batch_bytes)

    def flush() -> None:
        pages, known = batch.append(log.append, imports)
        summary.pages += pages
        if known:  # another process has imported them meanwhile
            summary.skipped["known"] += known

    for record in records:
        if isinstance(record, ArchivedPage):
            if record.hit.id in imports.ids or not batch.add_page(record):  # the archive has the record twice
                summary.skipped["known"] += 1
                continue
            if record.page.reason:
                summary.no_pages[record.page.reason] += 1
            if batch.is_full:
                flush()
                batch = HitBatch(partitions, batch_bytes)
        elif record.is_fault:
            summary.broken += 1
            on_broken(record)
        else:
            summary.skipped[record.reason] += 1
    flush()
    return summary


@dataclass(slots=True)
class MeasuredStream:
    """A stream that reports the number of bytes of each read."""

    stream: BinaryIO
    on_progress: Callable[[int], None]

    def read(self, size: int = -1) -> bytes:
        piece = self.stream.read(size)
        self.on_progress(len(piece))
        return piece


def locks_folder(config: Config) -> Path:
    """The folder of the locks of searches and imports; created if missing. Raises FarmwatchError."""
    folder = names_folder(config) / "search"
    try:
        make_private(folder)
    except OSError as error:
        raise FarmwatchError(f"{folder}: cannot be created: {error.strerror}; make it writable") from error
    return folder


def imports_lock(config: Config) -> Path:
    """The lock file of imports. Raises FarmwatchError if it cannot be written."""
    file = locks_folder(config) / IMPORTS_LOCK
    try:
        file.open("ab").close()
    except OSError as error:
        raise FarmwatchError(f"{file}: cannot be written: {error.strerror}; make it writable") from error
    return file
