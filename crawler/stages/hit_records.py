"""Hits and archived pages as records of the log, and the ids of the hits that the log has.

An archived page and its hit go into one append. So a hit on the log implies that its page is there.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO

from crawler.frontier.page_log import page_headers
from crawler.warc.pages import ArchivedPage
from stream.log.contract import NO_HEADERS, Headers, Log, Output, partition_of
from stream.log.errors import BadRecord
from stream.log.file_lock import file_lock
from stream.schema.records import Hit, Record, encode, read
from stream.schema.topics import HITS, PAGES

BATCH_BYTES = 8 * 1024 * 1024
_BATCH_OUTPUTS = 2000
_OUTPUT_BYTES = 500  # approximate memory of an output besides its key and value


class _HeadOfHit(Record, frozen=True, kw_only=True):
    """The first fields of a hit: they cost less to read than all of it."""

    VERSION = Hit.VERSION


class KnownHits:
    """The ids of the hits in the log, followed as it grows.

    This costs one pass over each partition that is asked for, and about 150 bytes of memory for each hit there.
    """

    def __init__(self, log: Log, lock: Path | None = None) -> None:
        """Read nothing yet; the topic must exist. `lock` is a file that all processes share; None: no other process."""
        self.ids: set[str] = set()
        self._log = log
        self._lock = lock
        self._mark = secrets.token_bytes(16)
        self._is_current = False
        self._next: dict[int, int] = {}  # partition -> offset

    def is_new(self, ident: str, partition: int) -> bool:
        """Whether the log does not have the hit, and no earlier call named it; reads a partition once."""
        if partition not in self._next:
            self._read([partition])
        known = len(self.ids)
        self.ids.add(ident)
        return len(self.ids) > known

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep other processes from appending archived pages; `ids` is complete, and the block adds its own.

        Reads on only if another process held the lock meanwhile, or the last block failed: on Kafka that takes a fifth
        of a second for each partition. Raises as `Log.read`, and OSError if the lock file cannot be used.
        """
        with nullcontext() if self._lock is None else file_lock(self._lock) as lock:
            is_ours = lock is not None and _mark(lock, self._mark)
            if not (is_ours and self._is_current):
                self._read(range(self._log.topics()[HITS]))
            self._is_current = False  # a failed append may have taken effect
            yield
            self._is_current = True

    def _read(self, partitions: Iterable[int]) -> None:
        ends = self._log.end(HITS)
        starts = self._log.beginning(HITS)
        for partition in partitions:
            start, end = self._next.get(partition, starts[partition]), ends[partition]
            self._next[partition] = end
            for message in self._log.read(HITS, partition, start, end) if start < end else ():
                if message.value:
                    with suppress(BadRecord):
                        self.ids.add(read(_HeadOfHit, message).id)


def _mark(file: BinaryIO, mark: bytes) -> bool:
    """Write the mark of this holder into a locked file; True if the last holder had the same."""
    file.seek(0)
    if file.read(len(mark) + 1) == mark:
        return True
    file.truncate(0)
    file.write(mark)
    file.flush()
    return False


class HitBatch:
    """Hits, and archived pages with their hits, that become visible together; bounded by bytes and number."""

    def __init__(self, partitions: int, most_bytes: int = BATCH_BYTES) -> None:
        self._partitions = partitions
        self._most_bytes = most_bytes
        self._outputs: list[tuple[str, Output]] = []  # with the id of the hit that comes with a page
        self._pages: set[str] = set()
        self._bytes = 0
        self.hits = 0

    def add(self, hit: Hit, headers: Headers = NO_HEADERS) -> None:
        self.hits += 1
        self._put("", HITS, hit.site, encode(hit), headers)

    def add_page(self, archived: ArchivedPage) -> bool:
        """Add a page and its hit; False if the batch has them already."""
        hit, page = archived.hit, archived.page
        if hit.id in self._pages:
            return False
        self._pages.add(hit.id)
        self._put(hit.id, HITS, hit.site, encode(hit))
        self._put(hit.id, PAGES, page.site, encode(page), page_headers(page))
        return True

    def _put(self, ident: str, topic: str, site: str, value: bytes, headers: Headers = NO_HEADERS) -> None:
        key = site.encode()
        self._outputs.append((ident, Output(topic, partition_of(site, self._partitions), key, value, headers)))
        self._bytes += _OUTPUT_BYTES + len(key) + len(value)

    @property
    def is_full(self) -> bool:
        return self._bytes >= self._most_bytes or len(self._outputs) >= _BATCH_OUTPUTS

    def append(self, append: Callable[[list[Output]], object], known: KnownHits) -> tuple[int, int]:
        """Append all but the pages that are `known`, once; returns how many pages were new, and how many known.

        May be repeated if it raises. Raises as `append` and `KnownHits.hold`.
        """
        with known.hold() if self._pages else nullcontext():
            late = self._pages & known.ids
            append([output for ident, output in self._outputs if ident not in late])
            known.ids |= self._pages
        return len(self._pages) - len(late), len(late)
