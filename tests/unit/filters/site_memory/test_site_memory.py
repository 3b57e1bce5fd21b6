"""The memory of a site: four comparisons, replacement, eviction, and a cache that can be dropped at any time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from filters.duplicates.chunker import Chunks
from filters.duplicates.lines import TEMPLATE_PAGES, Lines, lines_of, marked_lines
from filters.duplicates.shingles import Outline, outline
from filters.extraction.interface import UNFINISHED
from filters.measure.page_measures import failed
from filters.settings import SiteCaps
from filters.site_memory.memory import Likeness, SiteMemory
from filters.site_memory.rows import HEAD, NoState
from filters.structure.tag_paths import PLACES, SAME_TEMPLATE
from stream.processing.state import KeyedState
from tests.support.sizes import LONG

pytestmark = pytest.mark.slow

MOST = 80 if LONG else 30  # examples
NewState = Callable[[], KeyedState]
SITE = "a.example"
ROOMY = SiteCaps()
TIGHT = msgspec.structs.replace(ROOMY, chunk_ids_per_site=6, shingles_per_site=25, lines_per_site=9, pages_per_site=4)
CAPS = st.sampled_from([ROOMY, TIGHT])
CONTENT = st.lists(st.integers(0, 12), min_size=1, max_size=5)
VISITS = st.lists(st.tuples(st.sampled_from("abcdef"), st.one_of(CONTENT, st.just([]))), min_size=1, max_size=25)


def chunks(*ids: int, length: int = 100) -> Chunks:
    return Chunks(np.array(ids, np.uint64), np.full(len(ids), length, np.uint16))


def text_of(ids: Sequence[int]) -> str:
    """A text in which each id is a sentence of eight words, four of them its own."""
    return " ".join(
        f"subject{number} tells us what object{number} did to place{number} reason{number}" for number in ids
    )


def lines(ids: Sequence[int]) -> Lines:
    """Each id but the last as a line of as many characters, the last as one outside of the main text."""
    named = ["x" * (number + 1) for number in ids]
    return lines_of("\n".join(named[:-1] or named), named[-1:], 100)


def template(ids: Sequence[int]) -> bytes:
    """The sketch of a template; those of two pages have more equal places the more ids they share at equal places."""
    return bytes(ids[place % len(ids)] % 256 for place in range(PLACES))


def new_name(sketch: bytes) -> str:
    """The name of a template that a page with this sketch is the first to have."""
    return xxhash.xxh3_64_hexdigest(sketch)


class Site:
    """A site's memory over one state, fed with texts or with chunks."""

    def __init__(self, state: KeyedState, caps: SiteCaps = ROOMY, cached_bytes: int = 10**9) -> None:
        self.state = state
        self.memory = SiteMemory(caps, cached_bytes)

    def see(self, page: str, ids: Sequence[int], site: str = SITE, state: KeyedState | None = None) -> Likeness:
        """A page whose chunks are `ids`, and whose words depend on them."""
        of_ids = chunks(*ids), outline(text_of(ids), 100), lines(ids), template(ids) if ids else b""
        return self.memory.compare(state or self.state, 0, site, page, *of_ids)

    def share(self, page: str, *ids: int, **more: Any) -> float | None:
        return self.see(page, ids, **more).duplicate_share

    def read(self, page: str, text: str) -> Likeness:
        """A page with one unique chunk, and its words."""
        own = chunks(hash(text) & 0xFFFFFFFF)
        return self.memory.compare(self.state, 0, SITE, page, own, outline(text, 10**6))

    def rows(self) -> dict[bytes, bytes]:
        return dict(self.state.scan(b"", 1_000_000))


def held(rows: dict[bytes, bytes]) -> tuple[int, int, int, int]:
    """Pages, chunk identities, shingles and lines in the rows, by their bytes and by their headers."""
    heads = [np.frombuffer(value, HEAD, 1)[0] for value in rows.values()]
    ids, shingles, of_lines = (sum(int(head[kind]) for head in heads) for kind in ("chunks", "shingles", "lines"))
    assert sum(map(len, rows.values())) == len(rows) * HEAD.itemsize + 8 * ids + 4 * (shingles + of_lines)
    return len(rows), ids, shingles, of_lines


def words(first: int, count: int) -> str:
    return " ".join(f"word{number}" for number in range(first, first + count))


def test_duplicate_share_is_of_bytes(new_state: NewState) -> None:
    """The share weighs chunks by their bytes."""
    site = Site(new_state())
    site.see("p1", (1,))
    mixed = Chunks(np.array([1, 2], np.uint64), np.array([300, 100], np.uint16))
    assert site.memory.compare(site.state, 0, SITE, "p2", mixed, outline("a", 1)).duplicate_share == 0.75


@settings(max_examples=MOST)
@given(VISITS)
def test_measures_follow_their_definitions(new_state: NewState, visits: list[tuple[str, list[int]]]) -> None:
    """Below the caps, three measures agree with sets of chunks, sets of shingles and a list of simhashes.

    A page without text has no measure and does not count for others; with text again, it has its first place.
    """
    site = Site(new_state())
    pages: dict[str, tuple[set[int], set[int], int | None]] = {}
    for page, ids in visits:
        if not ids:
            assert site.see(page, ids) == Likeness()
            if page in pages:
                pages[page] = set(), set(), None
            continue
        found = outline(text_of(ids), 100)
        own = set(memoryview(found.shingles).cast("I"))
        before = list(pages.values())[: list(pages).index(page) if page in pages else None]
        known = set().union(*(chunk_ids for chunk_ids, _, _ in before))
        shingles = set().union(*(held for _, held, _ in before))
        assert site.see(page, ids)[:3] == (
            sum(number in known for number in ids) / len(ids),
            len(own & shingles) / len(own),
            min(((found.simhash ^ other).bit_count() for _, _, other in before if other is not None), default=None),
        )
        pages[page] = set(ids), own, found.simhash


@settings(max_examples=MOST)
@given(VISITS, CAPS, st.data())
def test_template_lines_follow_their_definition(
    new_state: NewState, visits: list[tuple[str, list[int]]], caps: SiteCaps, data: st.DataObject
) -> None:
    """For any visits, removals and caps, the marked lines are those that two pages before this one have.

    The cap takes the lines of the oldest pages. The share is of characters, and unknown without two such pages.
    """
    site = Site(new_state(), caps)
    pages: dict[str, list[int]] = {}
    for page, ids in visits:
        if data.draw(st.booleans()):
            site.memory.drop([0])
        found = site.see(page, ids)
        if not ids:
            pages |= {page: []} if page in pages else {}
            assert (found.template_block_share, found.template_lines) == (None, b"")
            continue
        while page not in pages and len(pages) >= caps.pages_per_site:
            del pages[next(iter(pages))]
        own = np.frombuffer(lines(ids).page, "<u4").tolist()
        pages[page] = own[: caps.lines_per_site]
        for other in pages:
            if sum(map(len, pages.values())) > caps.lines_per_site:
                pages[other] = []
        earlier = [held for held in list(pages.values())[: list(pages).index(page)] if held]
        main = np.frombuffer(lines(ids).main, "<u4").tolist()
        marked = [place for place, line in enumerate(main) if sum(line in held for held in earlier) >= TEMPLATE_PAGES]
        chars = [number + 1 for number in (ids[:-1] or ids)]
        known = len(earlier) >= TEMPLATE_PAGES
        assert marked_lines(found.template_lines) == marked
        assert found.template_block_share == (sum(chars[place] for place in marked) / sum(chars) if known else None)


def test_a_line_is_template_wherever_earlier_pages_have_it(new_state: NewState) -> None:
    """A line that two earlier pages have outside of their main text is marked, from the third page on."""
    site = Site(new_state())
    assert [site.see(page, (number, 9)).template_block_share for number, page in enumerate("abc")] == [None, None, 0]
    found = site.see("d", (9, 4, 7))
    assert (found.template_block_share, marked_lines(found.template_lines)) == (10 / 15, [0])
    assert site.see("b", (9, 4, 7)).template_block_share is None


@settings(max_examples=MOST)
@given(visits=VISITS)
def test_a_page_has_the_template_of_the_nearest_page_or_a_new_one(
    new_state: NewState, visits: list[tuple[str, list[int]]]
) -> None:
    """Against a plain implementation: it is compared with the oldest page of each template, also one fetched later."""
    site = Site(new_state())
    order: dict[str, tuple[str, bytes]] = {}  # page -> template, sketch
    for page, ids in visits:
        found = site.see(page, ids)
        if not ids:
            assert found.template_id is None
            if page in order:
                order[page] = ("", b"")
            continue
        own = template(ids)
        oldest: dict[str, bytes] = {}
        for name, sketch in order.values():
            if name:
                oldest.setdefault(name, sketch)
        equal = {name: sum(map(int.__eq__, own, sketch)) for name, sketch in oldest.items()}
        nearest = min((name for name in equal if equal[name] == max(equal.values())), default="")
        is_new = not nearest or equal[nearest] < SAME_TEMPLATE * PLACES
        assert found.template_id == (new_name(own) if is_new else nearest)
        order[page] = (found.template_id, own)
        assert site.memory.templates(site.state, 0, SITE) == {name for name, _ in order.values() if name}


def test_a_template_outlives_its_first_page(new_state: NewState) -> None:
    """Where its first page is dropped or changes, the next one represents it; with its last page it goes."""
    site = Site(new_state(), TIGHT)
    first = site.see("p0", (1, 2, 3, 4)).template_id
    same = [site.see(f"p{number}", (1, 2, 3, 4)) for number in range(1, 7)]
    assert {found.template_id for found in same} == {first}
    other = site.see("p3", (5, 6)).template_id
    assert site.memory.templates(site.state, 0, SITE) == {first, other}
    for number in range(4):
        site.see(f"q{number}", (5, 6))
    assert site.memory.templates(site.state, 0, SITE) == {other}


def test_a_site_of_random_pages_has_few_templates(new_state: NewState) -> None:
    """Beyond 50 templates a page that is like none of them has none."""
    site = Site(new_state())
    names = [site.see(f"p{number}", (number,)).template_id for number in range(60)]
    assert names == [*(new_name(template((number,))) for number in range(50)), *[None] * 10]
    assert site.see("last", (7,)).template_id == names[7]


def test_a_template_whose_slots_hide_it_from_chunks(new_state: NewState) -> None:
    """With a new word in eight, no chunk repeats, but three of eight shingles do, and the simhash is near."""
    site = Site(new_state())

    def filled(name: str) -> str:
        return " ".join(f"{name}{n}" if n % 8 == 0 else f"template{n}" for n in range(803))

    site.read("p1", filled("one"))
    found = site.read("p2", filled("other"))
    assert found.duplicate_share == 0
    assert found.template_share is not None and abs(found.template_share - 3 / 8) < 0.01
    assert found.simhash_distance is not None and found.simhash_distance <= 20


def test_of_old_pages_the_sketch_remembers(new_state: NewState) -> None:
    """A copy of a page whose shingles were evicted, or cut at the cap, has a template share of 1; another has 0."""
    site = Site(new_state(), msgspec.structs.replace(ROOMY, shingles_per_site=300))
    for number in range(4):
        site.read(f"p{number}", words(1000 * number, 200))
    assert held(site.rows())[2] == 196
    assert site.read("copy", words(0, 200)).template_share == 1
    half = site.read("half", words(1100, 200)).template_share
    assert half is not None and abs(half - 0.5) < 0.2
    assert site.read("strange", words(9000, 200)).template_share == 0
    site = Site(new_state(), msgspec.structs.replace(ROOMY, shingles_per_site=100))
    site.read("p1", words(0, 1000))
    assert held(site.rows())[2] == 100
    assert site.read("p2", words(0, 1000)).template_share == 1


def test_sites_do_not_know_each_other(new_state: NewState) -> None:
    """A site's pages are compared with its own pages only, even if one site's name is a prefix of another's."""
    site = Site(new_state())
    site.see("p1", (1, 2), "a.example")
    site.memory.drop([0])
    for other in ("a.example.org", "a.exampl"):
        likeness = site.see("p1", (1, 2), other)
        assert (likeness[:4], likeness.template_id) == ((0, 0, None, None), new_name(template((1, 2))))


@pytest.mark.parametrize("error", sorted(UNFINISHED))
def test_page_whose_extraction_was_given_up_stays_as_it_is(new_state: NewState, error: str) -> None:
    """A time limit or a broken worker does not change a page's row: its copy is still a copy."""
    site = Site(new_state())
    site.see("p1", (1, 2))
    rows = site.rows()
    assert site.memory.of(site.state, 0, SITE, "p1", failed("", error)) == Likeness()
    assert site.rows() == rows
    assert site.share("copy", 1, 2) == 1
    site.memory.of(site.state, 0, SITE, "p1", failed("", "no_text"))
    assert site.share("copy", 1, 2) == 0


def test_page_without_chunks_or_words_is_unknown(new_state: NewState) -> None:
    """A page without text has no measure and leaves no row."""
    site = Site(new_state())
    assert site.memory.compare(site.state, 0, SITE, "p1", chunks(), Outline()) == Likeness()
    assert site.memory.compare(site.state, 0, SITE, "p1", chunks(1), Outline()) == Likeness()
    assert site.rows() == {}


@settings(max_examples=MOST)
@given(VISITS, CAPS)
def test_fetching_three_times_in_a_row_changes_nothing(
    new_state: NewState, visits: list[tuple[str, list[int]]], caps: SiteCaps
) -> None:
    """Visiting each page three times in a row gives the measures and rows of one visit, and writes no more."""
    once, thrice = Site(new_state(), caps), Site(new_state(), caps)
    for page, ids in visits:
        expected = once.see(page, ids)
        assert thrice.see(page, ids) == expected
        for _ in range(2):
            over = KeyedState(thrice.state)
            assert thrice.see(page, ids, state=over) == expected
            assert over.changes() == []
    assert thrice.rows() == once.rows()


def test_oldest_chunks_go_first_and_the_row_stays(new_state: NewState) -> None:
    """Beyond the cap, the first page's chunks are evicted before a page is compared; its simhash and sketch stay."""
    site = Site(new_state(), msgspec.structs.replace(ROOMY, chunk_ids_per_site=4))
    for number, page in enumerate(("z", "b", "c")):
        site.see(page, (2 * number, 2 * number + 1))
    assert held(site.rows())[:2] == (3, 4)
    assert len(site.rows()[b"a.example\0z"]) < len(site.rows()[b"a.example\0b"])
    assert site.see("d", (4, 0)).duplicate_share == 0.5
    assert site.see("e", (0, 1))[1:3] == (1, 0)


def test_oldest_page_goes_first_with_a_tombstone(new_state: NewState) -> None:
    """Beyond the cap of pages, the first page's row is deleted with all its content."""
    site = Site(new_state(), msgspec.structs.replace(ROOMY, pages_per_site=2))
    for number, page in enumerate(("z", "b", "c")):
        site.see(page, (number,))
    assert list(site.rows()) == [b"a.example\0b", b"a.example\0c"]
    assert [change.key for change in site.state.changes() if change.value is None] == [b"a.example\0z"]
    assert site.see("d", (0,)).duplicate_share == 0


def test_an_old_page_takes_no_room_from_newer_ones(new_state: NewState) -> None:
    """A page with evicted chunks does not get them back when it is fetched again."""
    site = Site(new_state(), msgspec.structs.replace(ROOMY, chunk_ids_per_site=4))
    for page, ids in {"a": (1, 2), "b": (3, 4), "c": (5, 6)}.items():
        site.see(page, ids)
    rows = site.rows()
    site.see("a", (1, 2))
    assert site.rows() == rows
    assert site.share("d", 1, 2) == 0


def test_one_page_above_the_cap_is_cut_to_it(new_state: NewState) -> None:
    """A page with more chunks than the cap keeps the smallest identities, and the state stays at the cap."""
    site = Site(new_state(), msgspec.structs.replace(ROOMY, chunk_ids_per_site=3))
    site.see("p1", (9,))
    site.see("p2", range(19, 9, -1))
    assert held(site.rows())[1] == 3
    assert np.frombuffer(site.rows()[b"a.example\0p2"], "<u8", 3, HEAD.itemsize).tolist() == [10, 11, 12]


@settings(max_examples=MOST)
@given(VISITS, CAPS)
def test_memory_only_speeds_up(new_state: NewState, visits: list[tuple[str, list[int]]], caps: SiteCaps) -> None:
    """Measures and state are the same with the cache kept, dropped before each page, or of size zero."""
    outcomes = []
    for cached, dropped in ((10**9, False), (10**9, True), (0, False)):
        site = Site(new_state(), caps, cached)
        likenesses = []
        for page, ids in visits:
            if dropped:
                site.memory.drop([0])
            likenesses.append(site.see(page, ids))
        outcomes.append((likenesses, site.rows()))
    assert outcomes[0] == outcomes[1] == outcomes[2]


@settings(max_examples=MOST)
@given(VISITS)
def test_state_never_exceeds_its_caps(new_state: NewState, visits: list[tuple[str, list[int]]]) -> None:
    """Pages, identities, shingles and lines of a site stay within the caps, and the cache equals the stored rows."""
    site = Site(new_state(), TIGHT)
    for page, ids in visits:
        site.see(page, ids)
        caps = TIGHT.pages_per_site, TIGHT.chunk_ids_per_site, TIGHT.shingles_per_site, TIGHT.lines_per_site
        assert all(size <= cap for size, cap in zip(held(site.rows()), caps, strict=True))
        counted = site.memory.size_bytes
        site.memory.drop([0])
        assert site.memory.size_bytes == 0
        site.memory.take_out(site.state, 0, SITE, "never seen")
        assert site.memory.size_bytes == counted


@settings(max_examples=MOST)
@given(VISITS, CAPS, st.data())
def test_taking_a_page_out_and_in_again(
    new_state: NewState, visits: list[tuple[str, list[int]]], caps: SiteCaps, data: st.DataObject
) -> None:
    """A removed page's row holds only its place; measured again without evictions, it has the measures it had."""
    site = Site(new_state(), caps)
    seen: dict[str, tuple[list[int], Likeness]] = {}
    newest = "g"
    for page, ids in [*visits, (newest, [1])]:
        if ids and page not in seen:
            seen[page] = ids, site.see(page, ids)
    before = site.rows()
    page = data.draw(st.sampled_from([page for page in seen if f"{SITE}\0{page}".encode() in before]))
    ids, first = seen[page]
    key = f"{SITE}\0{page}".encode()
    head = np.frombuffer(before[key], HEAD, 1)[0]
    site.memory.take_out(site.state, 0, SITE, page)
    place = np.zeros(1, HEAD)
    place["order"] = head["order"]
    assert site.rows() == {**before, key: place.tobytes()}
    again = site.see(page, ids)
    cut = head["chunks"] < len(set(ids)) or head["shingles"] < head["shingle_count"]
    if not cut and 4 * head["lines"] == len(lines(ids).page):
        assert site.rows() == before
        assert page != newest or again == first


def test_least_recently_used_sites_leave_memory(new_state: NewState) -> None:
    """The cache stays within its bytes, always keeps the latest site, and drops by partition."""
    state = new_state()
    one = SiteMemory(ROOMY)
    one.compare(state, 0, "s.example", "p", chunks(1, 2, 3), outline(words(0, 50), 100))
    memory = SiteMemory(ROOMY, cached_bytes=3 * one.size_bytes)
    for number in range(8):
        memory.compare(state, number % 2, f"s{number}.example", "p", chunks(1, 2, 3), outline(words(0, 50), 100))
    assert (memory.sites, memory.size_bytes) == (3, 3 * one.size_bytes)
    memory.drop([1])
    assert memory.sites == 1
    memory.drop([0])
    assert (memory.sites, memory.size_bytes) == (0, 0)


class Counted(NoState):
    def __init__(self) -> None:
        self.operations, self.sizes = 0, dict[bytes, int]()

    def put(self, key: bytes, value: bytes) -> None:
        self.operations += 1
        self.sizes[key] = len(value)

    def delete(self, key: bytes) -> None:
        self.operations += 1
        del self.sizes[key]


def test_a_thousand_pages_stay_within_the_caps() -> None:
    """For a site of 1,000 pages, rows, bytes and cache stop growing at the caps, with 5 state changes per page.

    A page is put once, and loses chunks, shingles, lines and its row once each. The caps are a tenth of the defaults.
    """
    caps = msgspec.structs.replace(
        ROOMY, chunk_ids_per_site=500, shingles_per_site=2_000, lines_per_site=2_000, pages_per_site=50
    )
    state, memory = Counted(), SiteMemory(caps)
    rng = np.random.default_rng(1)
    ids, hashes = rng.integers(0, 2**62, 2_000, np.uint64), rng.integers(0, 2**32, 4_000, np.uint32)
    sketch = rng.integers(0, 2**32, 64, np.uint32).tobytes()
    largest = 0
    for number in range(1_000):
        start = number * 17 % 1_900
        some = np.sort(hashes[2 * start : 2 * start + 100])
        page = Outline(number, len(some), sketch, some.tobytes())
        own = Chunks(ids[start : start + 30], np.full(30, 90, np.uint16))
        memory.compare(state, 0, SITE, str(number), own, page, Lines(page.shingles, page.shingles, page.shingles))
        if number in (99, 499, 999):
            largest = largest or memory.size_bytes
            assert len(state.sizes) == 50
            assert sum(state.sizes.values()) == 50 * HEAD.itemsize + 8 * 480 + 2 * 4 * 2_000
            assert memory.size_bytes == largest
    assert state.operations <= 5 * 1_000
