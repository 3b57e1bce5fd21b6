"""The passages of a page that repeat earlier pages of its site: the evidence for its duplicate share.

The share counts the bytes of chunks (`filters.duplicates.chunker`) that an earlier page also has. Each chunk belongs to
the first earlier page that has it. Adjacent chunks of the same first page form one passage. The share is the bytes of
all passages divided by the bytes of the page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from filters.duplicates.chunker import chunk

SEEN_ON = 5  # earlier pages listed per passage; all of them are counted


@dataclass(frozen=True, slots=True)
class Passage:
    """A repeated passage. `pages` = number of earlier pages with it; `seen_on` lists the first of them.

    `size_bytes` includes characters that the edges of the passage cut; `start` is its place in the main text, bytes.
    """

    text: str
    size_bytes: int
    seen_on: tuple[str, ...]
    pages: int
    start: int


@dataclass(slots=True)
class _Run:
    """Adjacent chunks, and the earlier pages that have all of them."""

    start: int
    end: int
    ids: set[int]
    pages: int = 0
    names: list[str] = field(default_factory=list)


class Repeats:
    """Compares the main text of one page with the earlier pages of its site, one by one. Keeps only their names."""

    def __init__(self, text: str) -> None:
        self._data = text.encode("utf-8", "replace")
        chunks = chunk(self._data)
        self._ids: list[int] = chunks.ids.tolist()
        self._ends: list[int] = np.cumsum(chunks.lengths, dtype=np.int64).tolist()
        self._new_ids = set(self._ids)  # not on any page so far
        self._runs: list[_Run] = []
        self.compared = 0
        """Earlier pages that were compared."""
        self.alike = 0
        """Compared pages that share a chunk with the page."""

    @property
    def size_bytes(self) -> int:
        return len(self._data)

    @property
    def repeated_bytes(self) -> int:
        return sum(run.end - run.start for run in self._runs)

    def compare(self, name: str, text: str) -> None:
        """Compare with the main text of the next earlier page; passages show its `name` (the URL)."""
        self.compared += 1
        theirs = set(chunk(text.encode("utf-8", "replace")).ids.tolist())
        if theirs.isdisjoint(self._ids):
            return
        self.alike += 1
        new = theirs & self._new_ids
        self._new_ids -= new
        for is_new, group in groupby(range(len(self._ids)), lambda place: self._ids[place] in new):
            if is_new:
                places = list(group)
                start = self._ends[places[0] - 1] if places[0] else 0
                self._runs.append(_Run(start, self._ends[places[-1]], {self._ids[place] for place in places}))
        for run in self._runs:
            if run.ids <= theirs:
                run.pages += 1
                run.names += [name] if run.pages <= SEEN_ON else []

    def passages(self) -> list[Passage]:
        return [
            Passage(
                self._data[run.start : run.end].decode("utf-8", "ignore"),
                run.end - run.start,
                tuple(run.names),
                run.pages,
                run.start,
            )
            for run in sorted(self._runs, key=lambda run: (run.start - run.end, run.start))
        ]
