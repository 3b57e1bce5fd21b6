"""Which chunks a site's pages have, so that a page can be compared with the site's earlier pages.

State: one row per page under `site NUL page_id`: the page's order among the site's pages and the identities of its
chunks, each once. A page can so be taken out again, and a page that was fetched anew keeps its place: it is compared
with the pages before it, never with itself, so fetching it often never makes it look more repeated. A site has at most
`cap_ids` identities; the oldest page goes first, with a tombstone.

All cost is bounded by the cap, whatever the number of pages seen: the rows of a site are read once, then held in memory
as two arrays (identity, order of its page).
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Collection
from typing import Protocol

import numpy as np
import numpy.typing as npt

from filters.chunking import Chunks

_ORDER = struct.Struct("<Q")
_ID_BYTES = 16  # identity and order in memory
_SCAN_ROWS = 1_000

Ids = npt.NDArray[np.uint64]


class ChunkState(Protocol):
    """What is needed of keyed state; `stream.state.KeyedState` has it."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set key to value."""

    def delete(self, key: bytes) -> None:
        """Remove key."""

    def scan(self, prefix: bytes, limit: int, after: bytes | None = None) -> list[tuple[bytes, bytes]]:
        """Up to `limit` rows whose key starts with prefix, in key order, after `after`."""


class _Site:
    """The rows of one site in memory: pages (oldest first) -> order, and identity and order side by side."""

    def __init__(self) -> None:
        self.pages: dict[str, int] = {}
        self.ids: Ids = np.empty(0, np.uint64)
        self.orders: Ids = np.empty(0, np.uint64)

    def add(self, page_id: str, order: int, ids: Ids) -> None:
        self.pages[page_id] = order
        self.ids = np.concatenate((self.ids, ids))
        self.orders = np.concatenate((self.orders, np.full(len(ids), order, np.uint64)))

    def remove(self, order: int) -> None:
        kept = self.orders != order
        self.ids, self.orders = self.ids[kept], self.orders[kept]


class ChunkStore:
    """Duplicate shares over keyed state, with the sites used last in memory. Used from one thread."""

    def __init__(self, cap_ids: int = 5_000, cached_ids: int = 2_000_000) -> None:
        """`cap_ids` identities a site; about `cached_ids` identities of all sites in memory."""
        self._cap = cap_ids
        self._cached_cap = cached_ids
        self._sites: OrderedDict[tuple[int, str], _Site] = OrderedDict()
        self._cached = 0

    @property
    def sites(self) -> int:
        """Sites in memory."""
        return len(self._sites)

    @property
    def size_bytes(self) -> int:
        """Bytes of identities in memory."""
        return self._cached * _ID_BYTES

    def duplicate_share(
        self, state: ChunkState, partition: int, site: str, page_id: str, chunks: Chunks
    ) -> float | None:
        """Share of bytes in chunks that earlier pages of the site have; the page is then remembered in its place.

        None for a page without chunks, which is not remembered. The state and the memory change together; where that
        change is not committed, call `drop`.
        """
        if not len(chunks.ids):
            return None
        memory = self._site(state, partition, site)
        order = memory.pages.get(page_id)
        place = next(reversed(memory.pages.values()), -1) + 1 if order is None else order
        earlier = memory.ids if order is None else memory.ids[memory.orders < place]
        repeated = int(chunks.lengths[np.isin(chunks.ids, earlier)].sum(dtype=np.int64))
        self._remember(memory, state, site, page_id, place, _each_once(chunks.ids)[: self._cap])
        self._shrink((partition, site))
        return repeated / int(chunks.lengths.sum(dtype=np.int64))

    def take_out(self, state: ChunkState, partition: int, site: str, page_id: str) -> None:
        """Forget one page, as if it had never been seen."""
        memory = self._site(state, partition, site)
        order = memory.pages.pop(page_id, None)
        if order is not None:
            before = len(memory.ids)
            memory.remove(order)
            self._cached += len(memory.ids) - before
            state.delete(_key(site, page_id))

    def drop(self, partitions: Collection[int]) -> None:
        """Drop from memory what is held for these partitions."""
        for key in [key for key in self._sites if key[0] in partitions]:
            self._cached -= len(self._sites.pop(key).ids)

    def _remember(self, memory: _Site, state: ChunkState, site: str, page_id: str, order: int, ids: Ids) -> None:
        before = len(memory.ids)
        if page_id in memory.pages:
            if np.array_equal(memory.ids[memory.orders == order], ids):
                return
            memory.remove(order)
        while len(memory.ids) + len(ids) > self._cap:
            oldest = next(page for page in memory.pages if page != page_id)
            memory.remove(memory.pages.pop(oldest))
            state.delete(_key(site, oldest))
        memory.add(page_id, order, ids)
        state.put(_key(site, page_id), _ORDER.pack(order) + ids.astype("<u8").tobytes())
        self._cached += len(memory.ids) - before

    def _site(self, state: ChunkState, partition: int, site: str) -> _Site:
        memory = self._sites.get((partition, site))
        if memory is None:
            memory = self._sites[partition, site] = _read(state, site)
            self._cached += len(memory.ids)
        self._sites.move_to_end((partition, site))
        return memory

    def _shrink(self, kept: tuple[int, str]) -> None:
        while self._cached > self._cached_cap and next(iter(self._sites)) != kept:
            _, memory = self._sites.popitem(last=False)
            self._cached -= len(memory.ids)


def _read(state: ChunkState, site: str) -> _Site:
    """All rows of a site, oldest page first."""
    prefix = _key(site, "")
    rows: list[tuple[int, str, Ids]] = []
    after: bytes | None = None
    while True:
        found = state.scan(prefix, _SCAN_ROWS, after)
        for key, value in found:
            (order,) = _ORDER.unpack_from(value)
            rows.append((order, key[len(prefix) :].decode(), np.frombuffer(value, "<u8", offset=_ORDER.size)))
        if len(found) < _SCAN_ROWS:
            break
        after = found[-1][0]
    memory = _Site()
    for order, page_id, _ in sorted(rows, key=lambda row: row[0]):
        memory.pages[page_id] = order
    if rows:
        memory.ids = np.concatenate([ids for _, _, ids in rows]).astype(np.uint64)
        memory.orders = np.concatenate([np.full(len(ids), order, np.uint64) for order, _, ids in rows])
    return memory


def _key(site: str, page_id: str) -> bytes:
    return f"{site}\0{page_id}".encode()


def _each_once(ids: Ids) -> Ids:
    return np.array(list(dict.fromkeys(ids.tolist())), np.uint64)
