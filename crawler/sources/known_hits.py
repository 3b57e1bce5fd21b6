"""The hits that the log has, followed as the topic grows, so that none is appended twice."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from crawler.sources.machine_lock import marked_lock
from stream.log.contract import Log
from stream.log.errors import BadRecord
from stream.schema.records import Hit, Record, read
from stream.schema.topics import HITS


class _HeadOfHit(Record, frozen=True, kw_only=True):
    """The first fields of a hit: they cost less to read than all of it."""

    VERSION = Hit.VERSION


class KnownHits:
    """The ids of the hits in the log.

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
        with nullcontext(False) if self._lock is None else marked_lock(self._lock, self._mark) as was_ours:
            if not (was_ours and self._is_current):
                self._read(range(self._log.topics()[HITS]))
            self._is_current = False  # a failed append may have taken effect
            yield
            self._is_current = True

    def _read(self, partitions: Iterable[int]) -> None:
        ends = self._log.end(HITS)
        starts = self._log.beginning(HITS) if any(at not in self._next for at in partitions) else []
        for partition in partitions:
            start, end = self._next.get(partition, starts[partition] if starts else 0), ends[partition]
            self._next[partition] = end
            for message in self._log.read(HITS, partition, start, end) if start < end else ():
                if message.value:
                    with suppress(BadRecord):
                        self.ids.add(read(_HeadOfHit, message).id)
