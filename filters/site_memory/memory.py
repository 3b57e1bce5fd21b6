"""The memory of a site's earlier pages; MEASURE compares each page with it.

- `duplicate_share`: share of the page's bytes in chunks that earlier pages have (`filters.duplicates.chunker`).
- `template_share`: containment of the page's 5-word shingles in those of the earlier pages: exact over those whose
  shingles are held. Of older pages only the sketch is left: the containment in each alone is estimated from Jaccard
  similarity and sizes (standard error .06 for a page of the same size, .14 for one four times as large). The larger
  one counts; text gathered from many old pages is underrated.
- `template_block_share`: share of the characters in template lines, which at least two earlier pages have in their main
  text or elsewhere (`filters.duplicates.lines`); unknown before the third page with text.
- `known_main`, `known_records`: the lines of the main text, and of the records, that an earlier page has.
- `simhash_distance`: fewest bits in which the page's simhash differs from an earlier page's.
- `is_site_day`: the page's day of publication is by a weak source, which gives it to at least 4 pages and half of those
  up to this one: rather the day of the site than of a page.
- `template_id`: the page's template (`filters.structure.tag_paths`), that whose oldest page is most similar or a new
  one, as 16 hexadecimal digits; unknown for pages of few tags, and beyond 50 templates.

State: one row per page, in the order of the first fetches. A page fetched again keeps its place and is compared with
the pages before it. A page without text loses its content but keeps its place: if its text returns, it does not count
as a copy of its copies. A page whose extraction was given up stays unchanged.

Before a page is added, the oldest pages lose their chunks, shingles or lines or, beyond the number of pages, their row.
The rows of a site are read once and then kept in memory as arrays, up to a number of bytes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from filters.duplicates.chunker import Chunks
from filters.duplicates.lines import Lines, pack_marks
from filters.duplicates.shingles import Outline
from filters.extraction.interface import UNFINISHED
from filters.measure.page_measures import PageMeasures
from filters.settings import SITE_CAPS, SiteCaps
from filters.site_memory.pages import SitePages
from filters.site_memory.rows import HEAD, Kind, SiteKeyedState, StoredPage, read_rows, row_key, row_value
from stream.schema.dates import DECLARED, PageDates

_CACHED_BYTES = 200_000_000
_NO_MEASURES = ("template_lines", "known_main", "known_records", "is_site_day")


class Likeness(NamedTuple):
    """How similar a page is to earlier ones of its site: shares (0 to 1), a distance (0 to 64 bits); None = unknown.

    `template_lines` marks lines of the main text, see `filters.duplicates.lines.pack_marks`; `known_*` a byte a line.
    """

    duplicate_share: float | None = None
    template_share: float | None = None
    simhash_distance: float | None = None
    template_block_share: float | None = None
    template_lines: bytes = b""
    template_id: str | None = None
    known_main: bytes = b""
    known_records: bytes = b""
    is_site_day: bool = False

    def measures(self) -> dict[str, float | str | None]:
        return {name: value for name, value in self._asdict().items() if name not in _NO_MEASURES}


class SiteMemory:
    """Compares pages with their sites over keyed state; caches recently used sites. Used from one thread."""

    def __init__(self, caps: SiteCaps = SITE_CAPS, cached_bytes: int = _CACHED_BYTES) -> None:
        """Beyond `cached_bytes` the least recently used site is read again."""
        self._pages_cap = caps.pages_per_site
        chunks, shingles, lines = caps.chunk_ids_per_site, caps.shingles_per_site, caps.lines_per_site
        self._caps: dict[Kind, int] = {"chunks": chunks, "shingles": shingles, "lines": lines}
        self._cached_cap = cached_bytes
        self._sites: OrderedDict[tuple[int, str], SitePages] = OrderedDict()
        self._cached = 0

    @property
    def sites(self) -> int:
        return len(self._sites)

    @property
    def size_bytes(self) -> int:
        return self._cached

    def compare(
        self,
        state: SiteKeyedState,
        partition: int,
        site: str,
        page_id: str,
        chunks: Chunks,
        outline: Outline,
        lines: Lines = Lines(),  # noqa: B008  # it never changes
        template: bytes = b"",
        weak_day: int = 0,
    ) -> Likeness:
        """Compare a page with its site and store it. If the state is not committed, call `drop`."""
        if not len(chunks.ids) or not outline.shingle_count:
            self.take_out(state, partition, site, page_id)
            return Likeness()
        memory = self._site(state, partition, site)
        size_before = memory.size_bytes
        known = page_id in memory.pages
        row_before = row_value(memory.row(page_id)) if known else b""
        template_id = memory.template(template)
        while not known and len(memory.pages) >= self._pages_cap:
            oldest = next(iter(memory.pages))
            memory.remove(oldest)
            state.delete(row_key(site, oldest))
        index = memory.index(page_id)
        row = self._row(memory.order_of(page_id), chunks, outline, lines)
        if template_id:
            row.head["template"], row.head["template_sketch"] = template_id, np.frombuffer(template, np.uint8)
        row.head["weak_day"] = weak_day
        changed: set[int] = set()
        for kind, cap in self._caps.items():
            row, lost = memory.make_room(index, row, kind, cap)
            changed |= lost
        for other in sorted(changed):
            other_id, kept = memory.row_at(other)
            state.put(row_key(site, other_id), row_value(kept))
        repeated = chunks.lengths[memory.known(index, "chunks", chunks.ids)]
        likeness = Likeness(
            int(repeated.sum(dtype=np.int64)) / int(chunks.lengths.sum(dtype=np.int64)),
            memory.template_share(index, row, np.frombuffer(outline.shingles, "<u4")),
            memory.simhash_distance(index, row),
            *_template(lines, memory.template_lines(index, np.frombuffer(lines.main, "<u4"))),
            _name(template_id) if template_id else None,
            memory.known(index, "lines", np.frombuffer(lines.main, "<u4")).tobytes(),
            memory.known(index, "lines", np.frombuffer(lines.records, "<u4")).tobytes(),
            memory.is_site_day(index, weak_day),
        )
        if (value := row_value(row)) != row_before:
            memory.put(page_id, row)
            state.put(row_key(site, page_id), value)
        self._cached += memory.size_bytes - size_before
        self._shrink((partition, site))
        return likeness

    def of(self, state: SiteKeyedState, partition: int, site: str, page_id: str, measured: PageMeasures) -> Likeness:
        """Compare a measured page. If its extraction was given up, leave the site unchanged."""
        if measured.error in UNFINISHED:
            return Likeness()
        outline, lines, template = measured.outline, measured.lines, measured.template
        weak_day = _weak_day(measured.dates)
        return self.compare(state, partition, site, page_id, measured.chunks(), outline, lines, template, weak_day)

    def templates(self, state: SiteKeyedState, partition: int, site: str) -> set[str]:
        """The templates of a site's pages."""
        return {_name(number) for number in np.unique(self._site(state, partition, site).heads["template"]) if number}

    def take_out(self, state: SiteKeyedState, partition: int, site: str, page_id: str) -> None:
        """Remove the content of a page, which is added again in its place, unless a cap had cut it."""
        memory = self._site(state, partition, site)
        if page_id in memory.pages and (row := memory.row(page_id)).shingle_count:
            before = memory.size_bytes
            empty = row.emptied()
            memory.put(page_id, empty)
            self._cached += memory.size_bytes - before
            state.put(row_key(site, page_id), row_value(empty))
        self._shrink((partition, site))

    def forget(self, state: SiteKeyedState, partition: int, site: str) -> None:
        """Delete all rows of a site. If that is not committed, call `drop`."""
        for page_id in self._site(state, partition, site).pages:
            state.delete(row_key(site, page_id))
        self._cached -= self._sites.pop((partition, site)).size_bytes

    def drop(self, partitions: Collection[int]) -> None:
        for key in [key for key in self._sites if key[0] in partitions]:
            self._cached -= self._sites.pop(key).size_bytes

    def _row(self, order: int, chunks: Chunks, outline: Outline, lines: Lines) -> StoredPage:
        """The row of a page. Beyond a cap it keeps the smallest identities, as similar pages do."""
        ids = np.unique(chunks.ids)[: self._caps["chunks"]]
        shingles = np.frombuffer(outline.shingles, "<u4")[: self._caps["shingles"]]
        held = np.frombuffer(lines.page, "<u4")[: self._caps["lines"]]
        counts = len(ids), len(shingles), len(held), outline.shingle_count
        head = np.zeros(1, HEAD)
        head[0] = (order, *counts, outline.simhash, np.frombuffer(outline.sketch, "<u4"), 0, 0, 0)
        return StoredPage(head, {"chunks": ids, "shingles": shingles, "lines": held})

    def _site(self, state: SiteKeyedState, partition: int, site: str) -> SitePages:
        memory = self._sites.get((partition, site))
        if memory is None:
            memory = self._sites[partition, site] = SitePages(read_rows(state, site))
            self._cached += memory.size_bytes
        self._sites.move_to_end((partition, site))
        self._shrink((partition, site))
        return memory

    def _shrink(self, kept: tuple[int, str]) -> None:
        while self._cached > self._cached_cap and next(iter(self._sites)) != kept:
            _, memory = self._sites.popitem(last=False)
            self._cached -= memory.size_bytes


def _weak_day(dates: PageDates | None) -> int:
    of = dates.published if dates else None
    return of.day.toordinal() if of and of.source not in DECLARED else 0


def _name(template: int) -> str:
    return f"{template:016x}"


def _template(lines: Lines, marks: npt.NDArray[np.bool_] | None) -> tuple[float | None, bytes]:
    """The share of the characters in the marked lines of the main text, and the packed marks."""
    chars = np.frombuffer(lines.chars, "<u4")
    if marks is None or not len(chars):
        return None, b""
    return int(chars[marks].sum(dtype=np.int64)) / int(chars.sum(dtype=np.int64)), pack_marks(marks)
