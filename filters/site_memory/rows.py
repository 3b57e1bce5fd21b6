"""A page's row of keyed state, under `site NUL page_id`: a head, and identities of each kind.

All numbers are little-endian, identities ascend. An old page may have lost those of a kind; the counts in the head show
it. A page that was taken out only keeps its place: the rest of its head is 0.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from filters.duplicates.shingles import PERMUTATIONS
from filters.structure.tag_paths import PLACES

HEAD = np.dtype(
    [
        ("order", "<u4"),  # place among the site's pages
        ("chunks", "<u4"),  # identities in the row
        ("shingles", "<u4"),  # shingles in the row
        ("lines", "<u4"),  # lines in the row
        ("shingle_count", "<u4"),  # shingles of the page; 0 = taken out
        ("simhash", "<u8"),
        ("sketch", "<u4", (PERMUTATIONS,)),
        ("template", "<u8"),  # its id; 0 = none
        ("template_sketch", "u1", (PLACES,)),
        ("weak_day", "<i4"),  # its day of publication by a weak source, counted from the year 1; 0 = none
    ]
)
_SCAN_ROWS = 1_000

Kind = Literal["chunks", "shingles", "lines"]
Heads = npt.NDArray[np.void]
Ids = npt.NDArray[Any]

KINDS: dict[Kind, str] = {"chunks": "<u8", "shingles": "<u4", "lines": "<u4"}
"""Kinds of identities in a row, in this order."""


class SiteKeyedState(Protocol):
    """The part of `stream.processing.state.KeyedState` used here."""

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...

    def scan(self, prefix: bytes, limit: int, after: bytes | None = None) -> list[tuple[bytes, bytes]]: ...


class NoState:
    """Keyed state that stores nothing, for a memory that is never dropped."""

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...

    def scan(self, *_: object) -> list[tuple[bytes, bytes]]:
        return []


class StoredPage(NamedTuple):
    """A page's row; `head` is an array of one."""

    head: Heads
    ids: dict[Kind, Ids]

    @property
    def order(self) -> int:
        return int(self.head["order"][0])

    @property
    def shingle_count(self) -> int:
        """Shingles of the page, in the row or not; 0 for a page that was taken out."""
        return int(self.head["shingle_count"][0])

    def emptied(self) -> StoredPage:
        head = np.zeros(1, HEAD)
        head["order"] = self.order
        return StoredPage(head, {kind: ids[:0] for kind, ids in self.ids.items()})

    def without(self, kind: Kind) -> StoredPage:
        head = self.head.copy()
        head[kind] = 0
        return StoredPage(head, self.ids | {kind: self.ids[kind][:0]})


def row_key(site: str, page_id: str) -> bytes:
    """The key of a page's row."""
    return f"{site}\0{page_id}".encode()


def row_value(row: StoredPage) -> bytes:
    """The value of a page's row."""
    return row.head.tobytes() + b"".join(row.ids[kind].astype(dtype).tobytes() for kind, dtype in KINDS.items())


def read_rows(state: SiteKeyedState, site: str) -> dict[str, StoredPage]:
    """Read all rows of a site by page id, in the order of its pages."""
    prefix = row_key(site, "")
    rows: list[tuple[str, StoredPage]] = []
    after: bytes | None = None
    while True:
        scanned = state.scan(prefix, _SCAN_ROWS, after)
        for key, value in scanned:
            head, start = np.frombuffer(value, HEAD, 1), HEAD.itemsize
            ids: dict[Kind, Ids] = {}
            for kind, dtype in KINDS.items():
                ids[kind] = np.frombuffer(value, dtype, int(head[kind][0]), start)
                start += ids[kind].nbytes
            rows.append((key[len(prefix) :].decode(), StoredPage(head, ids)))
        if len(scanned) < _SCAN_ROWS:
            return dict(sorted(rows, key=lambda named: named[1].order))
        after = scanned[-1][0]
