"""Which pages of archives the log has, followed as it grows: none is appended twice, also by processes side by side."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from crawler.sources.machine_lock import marked_lock
from stream.log.contract import Log
from stream.processing.topic_reader import records_of
from stream.schema.records import Hit
from stream.schema.topics import HITS


class KnownImports:
    """The ids of imported hits. Whoever appends such hits does it within `hold`.

    It costs one pass over the topic `hits`, then what is new of it, and about 150 bytes of memory a page.
    """

    def __init__(self, log: Log, lock: Path | None = None) -> None:
        """Nothing is read yet; the topic must exist. `lock` is a file that all processes share; None: there is one."""
        self.ids: set[str] = set()
        self._log = log
        self._lock = lock
        self._mark = secrets.token_bytes(16)
        self._is_whole = False
        self._next: list[int] = []

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Nobody else imports while the block runs, and `ids` names all imports; it adds what it appends itself.

        The topic is read on only where another one held the lock meanwhile, or the last block broke off: on Kafka that
        takes a fifth of a second a partition. Raises as `Log.read`, and OSError where the lock cannot be had.
        """
        with nullcontext(False) if self._lock is None else marked_lock(self._lock, self._mark) as was_ours:
            if not (was_ours and self._is_whole):
                self._refresh()
            self._is_whole = False  # an append that failed may have happened nevertheless
            yield
            self._is_whole = True

    def _refresh(self) -> None:
        """Take in what was appended since, by whomever."""
        self._next = self._next or self._log.beginning(HITS)
        for partition, end in enumerate(self._log.end(HITS)):
            if self._next[partition] < end:
                hits = records_of(Hit, self._log.read(HITS, partition, self._next[partition], end))
                self.ids.update(hit.id for _, hit in hits if hit.imported)
                self._next[partition] = end
