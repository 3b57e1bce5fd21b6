"""The chunks of a site: shares of repeated bytes, replacement, eviction, and memory that can be dropped at any time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from filters.chunk_store import ChunkStore
from filters.chunking import Chunks
from stream.state import KeyedState

NewState = Callable[[], KeyedState]
SITE = "a.example"
VISITS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.lists(st.integers(0, 12), min_size=1, max_size=5)), min_size=1, max_size=25
)


def chunks(*ids: int, length: int = 100) -> Chunks:
    """Chunks of equal length."""
    return Chunks(np.array(ids, np.uint64), np.full(len(ids), length, np.uint16))


def rows(state: KeyedState) -> list[tuple[bytes, bytes]]:
    """All rows of a state."""
    return state.scan(b"", 1_000_000)


def test_first_page_of_a_site_repeats_nothing(new_state: NewState) -> None:
    """Without earlier pages the share is 0, even where the page repeats itself."""
    assert ChunkStore().duplicate_share(new_state(), 0, SITE, "p1", chunks(1, 1, 2)) == 0


def test_share_is_of_bytes(new_state: NewState) -> None:
    """The share weighs chunks by their bytes."""
    state, store = new_state(), ChunkStore()
    store.duplicate_share(state, 0, SITE, "p1", chunks(1))
    mixed = Chunks(np.array([1, 2], np.uint64), np.array([300, 100], np.uint16))
    assert store.duplicate_share(state, 0, SITE, "p2", mixed) == 0.75


def test_sites_do_not_know_each_other(new_state: NewState) -> None:
    """A chunk of another site repeats nothing, also where one site's name begins with the other's."""
    state, store = new_state(), ChunkStore()
    store.duplicate_share(state, 0, "a.example", "p1", chunks(1, 2))
    store.drop([0])
    assert store.duplicate_share(state, 0, "a.example.org", "p1", chunks(1, 2)) == 0
    assert store.duplicate_share(state, 0, "a.exampl", "p1", chunks(1, 2)) == 0


def test_page_without_chunks_has_no_share(new_state: NewState) -> None:
    """A page without text has an unknown share and leaves no row."""
    state = new_state()
    assert ChunkStore().duplicate_share(state, 0, SITE, "p1", chunks()) is None
    assert rows(state) == []


def test_refetch_never_raises_the_share(new_state: NewState) -> None:
    """A page fetched three times more has the share of the first time, even after a later page copied it."""
    state, store = new_state(), ChunkStore()
    store.duplicate_share(state, 0, SITE, "p1", chunks(1, 2))
    first = store.duplicate_share(state, 0, SITE, "p2", chunks(2, 3, 4, 5))
    store.duplicate_share(state, 0, SITE, "p3", chunks(2, 3, 4, 5))
    assert first == 0.25
    assert [store.duplicate_share(state, 0, SITE, "p2", chunks(2, 3, 4, 5)) for _ in range(3)] == [0.25] * 3


def test_refetch_of_the_same_content_writes_nothing(new_state: NewState) -> None:
    """The state is as before, and no row is written for it."""
    state, store = new_state(), ChunkStore()
    store.duplicate_share(state, 0, SITE, "p1", chunks(1, 2))
    store.duplicate_share(state, 0, SITE, "p2", chunks(3))
    over = state.fork()
    store.duplicate_share(over, 0, SITE, "p1", chunks(1, 2))
    assert over.changes() == []


def test_refetch_replaces_the_pages_own_chunks(new_state: NewState) -> None:
    """What a page no longer has repeats nothing any more; what it has now does."""
    state, store = new_state(), ChunkStore()
    store.duplicate_share(state, 0, SITE, "p1", chunks(1, 2))
    store.duplicate_share(state, 0, SITE, "p1", chunks(2, 3))
    assert store.duplicate_share(state, 0, SITE, "p2", chunks(1)) == 0
    assert store.duplicate_share(state, 0, SITE, "p3", chunks(3)) == 1


def test_oldest_page_goes_first_with_a_tombstone(new_state: NewState) -> None:
    """Beyond the cap the first page's row is deleted and repeats nothing any more."""
    state, store = new_state(), ChunkStore(cap_ids=4)
    for number, page in enumerate(("z", "b", "c")):
        store.duplicate_share(state, 0, SITE, page, chunks(2 * number, 2 * number + 1))
    assert [key for key, _ in rows(state)] == [b"a.example\0b", b"a.example\0c"]
    assert [change.key for change in state.changes() if change.value is None] == [b"a.example\0z"]
    assert store.duplicate_share(state, 0, SITE, "d", chunks(2, 0)) == 0.5


def test_one_page_above_the_cap_is_cut_to_it(new_state: NewState) -> None:
    """A page with more chunks than the cap keeps its first ones, and the state stays at the cap."""
    state, store = new_state(), ChunkStore(cap_ids=3)
    store.duplicate_share(state, 0, SITE, "p1", chunks(9))
    store.duplicate_share(state, 0, SITE, "p2", chunks(*range(10, 20)))
    assert [len(value) for _, value in rows(state)] == [8 + 3 * 8]
    assert store.duplicate_share(state, 0, SITE, "p3", chunks(10, 19)) == 0.5


@settings(max_examples=60, deadline=None)
@given(VISITS, st.sampled_from([6, 10, 1000]))
def test_memory_only_speeds_up(new_state: NewState, visits: list[tuple[str, list[int]]], cap: int) -> None:
    """Shares and state are the same whether the memory is kept, dropped before each page, or bounded to nothing."""
    outcomes = []
    for cached, dropped in ((10**6, False), (10**6, True), (0, False)):
        state, store = new_state(), ChunkStore(cap, cached)
        shares = []
        for page, ids in visits:
            if dropped:
                store.drop([0])
            shares.append(store.duplicate_share(state, 0, SITE, page, chunks(*ids)))
        outcomes.append((shares, rows(state)))
    assert outcomes[0] == outcomes[1] == outcomes[2]


@settings(max_examples=60, deadline=None)
@given(VISITS, st.sampled_from([6, 1000]))
def test_state_never_exceeds_the_cap(new_state: NewState, visits: list[tuple[str, list[int]]], cap: int) -> None:
    """The identities of a site's rows stay at the cap or below after every page, and the size in memory tells them."""
    state, store = new_state(), ChunkStore(cap)
    for page, ids in visits:
        store.duplicate_share(state, 0, SITE, page, chunks(*ids))
        held = sum((len(value) - 8) // 8 for _, value in rows(state))
        assert held <= cap
        assert store.size_bytes == held * 16


@settings(max_examples=60, deadline=None)
@given(VISITS)
def test_taking_a_page_out_and_in_again_changes_nothing(
    new_state: NewState, visits: list[tuple[str, list[int]]]
) -> None:
    """The site's newest page, taken out and measured again, has the same share and leaves the same state."""
    state, store = new_state(), ChunkStore()
    shares: dict[str, float | None] = {}
    for page, ids in visits:
        if page not in shares:
            shares[page] = store.duplicate_share(state, 0, SITE, page, chunks(*ids))
            newest, newest_ids = page, ids
    before = rows(state)
    store.take_out(state, 0, SITE, newest)
    assert f"{SITE}\0{newest}".encode() not in dict(rows(state))
    assert store.duplicate_share(state, 0, SITE, newest, chunks(*newest_ids)) == shares[newest]
    assert rows(state) == before


def test_page_taken_out_repeats_nothing(new_state: NewState) -> None:
    """After a page is taken out, its chunks are as if never seen; an unknown page can be taken out."""
    state, store = new_state(), ChunkStore()
    store.duplicate_share(state, 0, SITE, "p1", chunks(1, 2))
    store.take_out(state, 0, SITE, "p1")
    store.take_out(state, 0, SITE, "never seen")
    assert store.duplicate_share(state, 0, SITE, "p2", chunks(1, 2)) == 0


def test_a_rolled_back_batch_leaves_no_trace(new_state: NewState) -> None:
    """Where staged rows are thrown away and the partition dropped, the same page has the same share again."""
    state, store = new_state(), ChunkStore()
    store.duplicate_share(state, 0, SITE, "p1", chunks(1))
    staged = state.fork()
    assert store.duplicate_share(staged, 0, SITE, "p2", chunks(1, 2)) == 0.5
    assert store.duplicate_share(staged, 0, SITE, "p3", chunks(2, 2)) == 1
    store.drop([0])
    assert store.duplicate_share(state, 0, SITE, "p3", chunks(2, 2)) == 0


def test_least_recently_used_sites_leave_memory(new_state: NewState) -> None:
    """Memory holds about the configured number of identities, the latest site always, and drops by partition."""
    state, store = new_state(), ChunkStore(cached_ids=10)
    for number in range(8):
        store.duplicate_share(state, number % 2, f"s{number}.example", "p", chunks(1, 2, 3))
    assert (store.sites, store.size_bytes) == (3, 9 * 16)
    store.drop([1])
    assert store.sites == 1
    store.drop([0])
    assert (store.sites, store.size_bytes) == (0, 0)
