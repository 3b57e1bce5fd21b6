"""Which pages of archives the log has, followed as it grows: none is appended twice, also by processes side by side."""

from __future__ import annotations

from contextlib import nullcontext

from crawler.sources.exclusion import Exclusion
from stream.log import Log
from stream.records import Hit, decode
from stream.topics import HITS


class KnownImports:
    """The ids of imported hits. `hold` it from `refresh` to the append, so that no other process comes between.

    It costs one pass over the topic `hits`, then what is new of it, and about 150 bytes of memory a page.
    """

    def __init__(self, log: Log, hold: Exclusion = nullcontext) -> None:
        """Nothing is read yet; the topic must exist."""
        self.hold = hold
        self.ids: set[str] = set()
        self._log = log
        self._next: list[int] = []

    def refresh(self) -> None:
        """Take in what was appended since, by whomever. Raises as `Log.read`."""
        self._next = self._next or self._log.beginning(HITS)
        for partition, end in enumerate(self._log.end(HITS)):
            if self._next[partition] < end:
                for message in self._log.read(HITS, partition, self._next[partition], end):
                    if message.value is not None and (hit := decode(Hit, message.value)).imported:
                        self.ids.add(hit.id)
                self._next[partition] = end
