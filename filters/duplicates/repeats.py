"""Which passages of a page repeat earlier pages of its site, and where they stood: what a duplicate share is made of.

The share counts the bytes of chunks (`filters.duplicates.chunker`) that an earlier page has too. Here each chunk is
named after the first earlier page that has it, and adjacent chunks of the same first page are one passage, so that what
is said of a passage is true of all of it: that page has every chunk of it. The passages' bytes over the page's are the
share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from filters.duplicates.chunker import chunk

SEEN_ON = 5
"""Earlier pages that are named for a passage; all of them are counted."""

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Passage:
    """A repeated passage: `pages` earlier pages have all of it, the first of them are named, earliest first.

    `text` is without a character that a cut went through; `size_bytes` counts its bytes too.
    """

    text: str
    size_bytes: int
    seen_on: tuple[str, ...]
    pages: int


class Repeats:
    """Compares one page's main text with the earlier pages of its site, one by one.

    Memory follows the page, not the site: of the other pages only their names are kept, SEEN_ON for a passage.
    """

    def __init__(self, text: str, mode: Literal["text", "block"] = "text") -> None:
        """Cut the page's main text; `mode` is the one that it was measured in."""
        self._mode = mode
        self._data = text.encode("utf-8", "replace")
        chunks = chunk(self._data, mode)
        self._ends: Places = np.cumsum(chunks.lengths, dtype=np.int64)
        self._ids, self._id_of_chunk = np.unique(chunks.ids, return_inverse=True)
        self._seen = np.zeros(len(self._ids), bool)
        self._spans: list[tuple[int, int]] = []  # of each passage, in bytes
        self._names: list[list[str]] = []
        self._pages: Places = np.zeros(0, np.int64)
        self._parts: Places = np.zeros(0, np.int64)  # ids of all passages, by their place in _ids …
        self._passage_of_part: Places = np.zeros(0, np.int64)  # … and the passage each is part of
        self.compared = 0
        """Earlier pages that were compared."""
        self.alike = 0
        """Those of them that have a chunk of the page."""

    @property
    def size_bytes(self) -> int:
        """Bytes of the page's main text."""
        return len(self._data)

    @property
    def repeated_bytes(self) -> int:
        """Bytes of all passages."""
        return sum(end - start for start, end in self._spans)

    def compare(self, name: str, text: str) -> None:
        """Look at one earlier page's main text; `name` (its URL) is what a passage shows. In the order of the site."""
        self.compared += 1
        has = np.isin(self._ids, chunk(text.encode("utf-8", "replace"), self._mode).ids)
        if not has.any():
            return
        self.alike += 1
        self._count(name, has)
        self._begin(name, has & ~self._seen)
        self._seen |= has

    def passages(self) -> list[Passage]:
        """The repeated passages, largest first, then in the order of the text."""
        found = [
            Passage(self._data[start:end].decode("utf-8", "ignore"), end - start, tuple(names), int(pages))
            for (start, end), names, pages in zip(self._spans, self._names, self._pages, strict=True)
        ]
        starts = [start for start, _ in self._spans]
        order = sorted(range(len(found)), key=lambda place: (-found[place].size_bytes, starts[place]))
        return [found[place] for place in order]

    def _count(self, name: str, has: npt.NDArray[np.bool_]) -> None:
        """Count the page for the passages that it has whole."""
        whole = np.ones(len(self._spans), bool)
        whole[self._passage_of_part[~has[self._parts]]] = False
        self._pages[whole] += 1
        for passage in np.flatnonzero(whole & (self._pages <= SEEN_ON)).tolist():
            self._names[passage].append(name)

    def _begin(self, name: str, new: npt.NDArray[np.bool_]) -> None:
        """Make passages of the chunks that no page before this one had."""
        edges = np.diff(new[self._id_of_chunk].astype(np.int8), prepend=0, append=0)
        parts, owners = [self._parts], [self._passage_of_part]
        for first, after in zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True):
            parts.append(np.unique(self._id_of_chunk[first:after]))
            owners.append(np.full(len(parts[-1]), len(self._spans), np.int64))
            self._spans.append((int(self._ends[first - 1]) if first else 0, int(self._ends[after - 1])))
            self._names.append([name])
        self._parts, self._passage_of_part = np.concatenate(parts), np.concatenate(owners)
        self._pages = np.append(self._pages, np.ones(len(self._spans) - len(self._pages), np.int64))
