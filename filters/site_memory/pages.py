"""The pages of one site as arrays, so that comparing a page with all of them takes a few array operations."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import numpy as np
import numpy.typing as npt
import xxhash

from filters.duplicates.lines import TEMPLATE_PAGES
from filters.duplicates.shingles import PERMUTATIONS
from filters.site_memory.rows import HEAD, KINDS, Heads, Ids, Kind, StoredPage
from filters.structure.tag_paths import PLACES, SAME_TEMPLATE

_PAGE_BYTES = 300  # of a page id and its entry in a dict
_SITE_BYTES = 1_500  # of the objects of a site
_SITE_DAY_PAGES, _SITE_DAY_SHARE = 4, 0.5  # of a site's pages with one weak day, which dates the site
_TEMPLATES = 50  # of a site; pages of further ones have none, so that a site of random pages does not fill the log


class IdentityIndex:
    """Index of identities of one kind, ascending, each with the order of its page."""

    def __init__(self, ids: Ids, orders: npt.NDArray[np.uint32]) -> None:
        by_id = np.argsort(ids, kind="stable")
        self.ids, self.orders = ids[by_id], orders[by_id]

    @property
    def size_bytes(self) -> int:
        return int(self.ids.nbytes + self.orders.nbytes)

    def found(self, wanted: Ids, before: int | None, pages: int = 1) -> npt.NDArray[np.bool_]:
        """Mark the identities of `wanted` that so many pages have; with `before`, only pages below that order count."""
        ids = self.ids if before is None else self.ids[self.orders < before]
        if not len(ids):
            return np.zeros(len(wanted), np.bool_)
        last = ids.searchsorted(wanted) + (pages - 1)  # a page has an identity once
        return np.equal(ids.take(last, mode="clip"), wanted) & (last < len(ids))

    def of(self, order: int) -> Ids:
        return np.asarray(self.ids[self.orders == order])

    def add(self, order: int, ids: Ids) -> None:
        if not len(ids):
            return
        places = self.ids.searchsorted(ids) + np.arange(len(ids))
        old = np.ones(len(self.ids) + len(ids), np.bool_)
        old[places] = False
        merged, orders = np.empty(len(old), self.ids.dtype), np.full(len(old), order, np.uint32)
        merged[places], merged[old], orders[old] = ids, self.ids, self.orders
        self.ids, self.orders = merged, orders

    def keep(self, kept: npt.NDArray[np.bool_]) -> None:
        self.ids, self.orders = self.ids[kept], self.orders[kept]


class SitePages:
    """The pages of a site by id, in order; `heads` has the same order; `held` indexes the identities of all pages."""

    def __init__(self, rows: Mapping[str, StoredPage]) -> None:
        self.pages = {page_id: row.order for page_id, row in rows.items()}
        self.heads: Heads = np.concatenate([np.empty(0, HEAD), *(row.head for row in rows.values())])
        self.held = {
            kind: IdentityIndex(
                np.concatenate([np.empty(0, dtype), *(row.ids[kind] for row in rows.values())]),
                np.repeat(self.heads["order"], self.heads[kind]),
            )
            for kind, dtype in KINDS.items()
        }

    @property
    def size_bytes(self) -> int:
        """Approximate size, including objects."""
        arrays = sum(held.size_bytes for held in self.held.values())
        return self.heads.nbytes + arrays + _PAGE_BYTES * len(self.pages) + _SITE_BYTES

    def index(self, page_id: str) -> int:
        """Index of a page in `heads`; the end for a new page."""
        order = self.pages.get(page_id)
        return len(self.heads) if order is None else int(np.searchsorted(self.heads["order"], np.uint32(order)))

    def order_of(self, page_id: str) -> int:
        newest = int(self.heads["order"][-1]) + 1 if len(self.heads) else 0
        return self.pages.get(page_id, newest)

    def known(self, index: int, kind: Kind, ids: Ids, pages: int = 1) -> npt.NDArray[np.bool_]:
        before = None if index == len(self.heads) else int(self.heads["order"][index])
        return self.held[kind].found(ids, before, pages)

    def template_lines(self, index: int, lines: Ids) -> npt.NDArray[np.bool_] | None:
        """Mark the lines that are template; None without enough pages with lines before an index."""
        if np.count_nonzero(self.heads["lines"][:index]) < TEMPLATE_PAGES:
            return None
        return self.known(index, "lines", lines, TEMPLATE_PAGES)

    def template_share(self, index: int, row: StoredPage, shingles: Ids) -> float:
        """Containment of a page's shingles in the pages before an index, see `filters.site_memory.memory`."""
        exact = float(np.mean(self.known(index, "shingles", shingles)))
        earlier = self.heads[:index]
        sketched = earlier[earlier["shingles"] < earlier["shingle_count"]]
        if not len(sketched):
            return exact
        jaccard = (sketched["sketch"] == row.head["sketch"]).sum(axis=1, dtype=np.uint8) / PERMUTATIONS
        estimates = containment(jaccard, row.shingle_count, sketched["shingle_count"])
        return max(exact, float(np.max(estimates)))

    def simhash_distance(self, index: int, row: StoredPage) -> float | None:
        """Smallest Hamming distance to the pages with words before an index; None if there is none."""
        earlier = self.heads["simhash"][:index][self.heads["shingle_count"][:index] > 0]
        if not len(earlier):
            return None
        return float(np.min(np.bitwise_count(earlier ^ row.head["simhash"])))

    def is_site_day(self, index: int, day: int) -> bool:
        """Whether a page's weak day is that of enough pages up to an index, the page included."""
        same = 1 + int(np.count_nonzero(self.heads["weak_day"][:index] == day))
        return day > 0 and same >= _SITE_DAY_PAGES and same >= _SITE_DAY_SHARE * (index + 1)

    def template(self, sketch: bytes) -> int:
        """The template of a page with this sketch; 0 = none. Each known template is represented by its oldest page."""
        if not sketch:
            return 0
        known, oldest = np.unique(self.heads["template"], return_index=True)
        known, oldest = known[known > 0], oldest[known > 0]
        if len(known):
            equal = self.heads["template_sketch"][oldest] == np.frombuffer(sketch, np.uint8)
            equal_places = np.count_nonzero(equal, axis=1)
            nearest = int(np.argmax(equal_places))
            if equal_places[nearest] >= SAME_TEMPLATE * PLACES:
                return int(known[nearest])
        return xxhash.xxh3_64_intdigest(sketch) or 1 if len(known) < _TEMPLATES else 0

    def make_room(self, index: int, row: StoredPage, kind: Kind, cap: int) -> tuple[StoredPage, set[int]]:
        """Cut the oldest pages until `row` fits `cap`; returns the row to store, and the indexes of the cut pages."""
        held = self.held[kind]
        if len(held.ids) + int(row.head[kind][0]) <= cap:
            return row, set()
        counts = np.zeros(max(len(self.heads), index + 1), np.int64)
        counts[: len(self.heads)] = self.heads[kind]
        counts[index] = row.head[kind][0]
        sums = counts.cumsum()
        excess = sums[-1] - cap
        if excess <= 0:
            return row, set()
        last = int(sums.searchsorted(excess))
        held.keep(held.orders > self.heads["order"][last])
        self.heads[kind][: last + 1] = 0
        lost = set(counts[: last + 1].nonzero()[0].tolist())
        return (row.without(kind), lost - {index}) if index in lost else (row, lost)

    def row(self, page_id: str) -> StoredPage:
        return self.row_at(self.index(page_id))[1]

    def row_at(self, index: int) -> tuple[str, StoredPage]:
        head = self.heads[index : index + 1]
        order = int(head["order"][0])
        ids = {kind: held.of(order) if head[kind][0] else held.ids[:0] for kind, held in self.held.items()}
        return next(islice(self.pages, index, None)), StoredPage(head, ids)

    def put(self, page_id: str, row: StoredPage) -> None:
        """Add a page as the newest, or replace the page with this id."""
        index = self.index(page_id)
        if index < len(self.heads):
            self._release(index)
            self.heads[index] = row.head[0]
        else:
            self.pages[page_id] = row.order
            self.heads = np.concatenate((self.heads, row.head))
        for kind, held in self.held.items():
            held.add(row.order, row.ids[kind])

    def remove(self, page_id: str) -> None:
        index = self.index(page_id)
        self._release(index)
        self.heads = np.concatenate((self.heads[:index], self.heads[index + 1 :]))
        del self.pages[page_id]

    def _release(self, index: int) -> None:
        head = self.heads[index]
        for kind, held in self.held.items():
            if head[kind]:
                held.keep(held.orders != head["order"])


def containment(jaccard: npt.NDArray[np.float64], size: int, sizes: npt.NDArray[np.uint32]) -> npt.NDArray[np.float64]:
    """|A & B| / |A| from Jaccard similarities J and sizes: |A & B| = J (|A| + |B|) / (1 + J), at most the smaller."""
    others = sizes.astype(np.float64)
    both = jaccard * (size + others) / (1 + jaccard)
    return np.asarray(np.minimum(both, np.minimum(size, others)) / size)
