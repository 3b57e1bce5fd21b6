"""Pages of archives onto the log, each once: the page goes onto `pages`, its hit onto `hits`, in one append.

So a hit shows that its page is there. The log's hits are read before the first file, and nothing they name is appended
again: an interrupted import is made again. That costs one pass over `hits` and about 150 bytes of memory for each page
that was ever imported, and holds as long as the log keeps its hits.

Imports and searches of archives may run beside each other on one machine: each holds a lock for the time of a batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from crawler.hit_records import HitBatch, KnownHits
from crawler.warc.pages import ArchivedPage, Skipped
from farmwatch.config.config import Config
from farmwatch.config.member_names import names_folder
from stream.log.contract import Log
from stream.log.private_folders import make_private
from stream.schema.topics import HITS
from stream.text.user_errors import FarmwatchError

IMPORTS_LOCK = "imports.lock"


@dataclass(slots=True)
class Imported:
    """How many pages were appended, why others were not, and how many records of the archive are broken."""

    pages: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    broken: int = 0


def import_pages(
    log: Log, found: Iterable[ArchivedPage | Skipped], imports: KnownHits, on_broken: Callable[[Skipped], None]
) -> Imported:
    """Append the pages of an archive that are not among `imports`; `on_broken` gets each broken record.

    What was appended stays. Raises as `Log.append` and `KnownHits.hold`, and OSError for an unreadable archive.
    """
    partitions = log.topics()[HITS]
    so_far = Imported()
    batch = HitBatch(partitions)

    def flush() -> None:
        pages, known = batch.append(log.append, imports)
        so_far.pages += pages
        if known:  # another process has imported them meanwhile
            so_far.skipped["known"] += known

    for one in found:
        if isinstance(one, ArchivedPage):
            if one.hit.id in imports.ids or not batch.add_page(one):  # the archive holds the record twice
                so_far.skipped["known"] += 1
            elif batch.is_full:
                flush()
                batch = HitBatch(partitions)
        elif one.is_fault:
            so_far.broken += 1
            on_broken(one)
        else:
            so_far.skipped[one.reason] += 1
    flush()
    return so_far


@dataclass(slots=True)
class MeasuredStream:
    """A stream that reports how many bytes more were read of it."""

    stream: BinaryIO
    on_progress: Callable[[int], None]

    def read(self, size: int = -1) -> bytes:
        """As the stream's own."""
        piece = self.stream.read(size)
        self.on_progress(len(piece))
        return piece


def locks_folder(config: Config) -> Path:
    """The folder of locks that keep searches and imports into one log apart. Raises FarmwatchError."""
    folder = names_folder(config) / "search"
    try:
        make_private(folder)
    except OSError as error:
        raise FarmwatchError(f"{folder}: cannot be made: {error.strerror}; make it writable") from error
    return folder


def imports_lock(config: Config) -> Path:
    """The file that imports hold, which can be written. Raises FarmwatchError."""
    file = locks_folder(config) / IMPORTS_LOCK
    try:
        file.open("ab").close()
    except OSError as error:
        raise FarmwatchError(f"{file}: cannot be written: {error.strerror}; make it writable") from error
    return file
