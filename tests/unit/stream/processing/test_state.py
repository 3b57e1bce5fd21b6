"""Keyed state: a batch reads it like one dict, and commits exactly its changes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stream.log.contract import StateChange
from stream.log.sql_state import MemoryState
from stream.processing.state import KeyedState, StateMemory

Model = dict[bytes, tuple[bytes, int | None]]
keys = st.sampled_from([b"", b"a", b"a\x00", b"aa", b"ab", b"a\xff", b"b", b"ba", b"c", b"\xff"])
times = st.one_of(st.none(), st.integers(-3, 12))
changes = st.builds(StateChange, keys, st.one_of(st.none(), st.binary(max_size=2)), times)
many = st.lists(changes, max_size=15)


def stage(state: KeyedState, model: Model, staged: list[StateChange]) -> None:
    """Apply the same changes to the state and the model."""
    for change in staged:
        if change.value is None:
            state.delete(change.key)
            model.pop(change.key, None)
        else:
            state.put(change.key, change.value, change.due_at)
            model[change.key] = (change.value, change.due_at)


def committed(rows: list[StateChange]) -> tuple[MemoryState, Model]:
    """Committed rows, and the model of them."""
    state = MemoryState()
    state.apply(rows)
    model: Model = {}
    stage(KeyedState(MemoryState()), model, rows)
    return state, model


def due_of(model: Model, now_ms: int) -> list[tuple[bytes, bytes, int]]:
    """Due keys of the model."""
    found = [(due_at, key, value) for key, (value, due_at) in model.items() if due_at is not None and due_at <= now_ms]
    return [(key, value, due_at) for due_at, key, value in sorted(found)]


def same(state: KeyedState, model: Model, now_ms: int, limit: int, prefix: bytes, after: bytes | None) -> None:
    """Check that every way of reading agrees with the model."""
    for key in (b"", b"a", b"ab", b"b", b"\xff"):
        assert state.get(key) == model.get(key, (None, None))[0]
    rows = [(k, model[k][0]) for k in sorted(model) if k.startswith(prefix) and (after is None or k > after)]
    assert state.scan(prefix, limit, after) == rows[:limit]
    assert state.due(now_ms, limit) == due_of(model, now_ms)[:limit]
    earliest = min((due_at for _, due_at in model.values() if due_at is not None), default=None)
    found = state.next_due()
    assert earliest is None or (found is not None and found <= earliest)


reads = st.tuples(st.integers(-3, 12), st.integers(0, 12), st.sampled_from([b"", b"a", b"b", b"zz"]), st.none() | keys)
Read = tuple[int, int, bytes, bytes | None]


@given(many, many, many, many, reads)
def test_what_was_staged_since_a_mark_is_undone_whole(
    below: list[StateChange], above: list[StateChange], more: list[StateChange], most: list[StateChange], read: Read
) -> None:
    """Reads give what one dict gives, next_due is never late, and `undo` restores the state at nested marks."""
    base, model = committed(below)
    state = KeyedState(base)
    stage(state, model, above)
    at_mark, carried, mark = dict(model), state.changes(), state.mark()
    stage(state, model, more)
    at_second, second = dict(model), state.mark()
    stage(state, model, most)
    same(state, model, *read)
    state.undo(second)
    same(state, at_second, *read)
    state.undo(mark)
    same(state, at_mark, *read)
    assert {change.key: change for change in state.changes()} == {change.key: change for change in carried}


@given(many, many, reads)
def test_changes_carry_what_was_staged(below: list[StateChange], above: list[StateChange], read: Read) -> None:
    """Applying changes() to the committed rows gives the rows of the staged state, with one change per key."""
    base, model = committed(below)
    state = KeyedState(base)
    stage(state, model, above)
    carried = state.changes()
    assert len({change.key for change in carried}) == len(carried)
    base.apply(carried)
    same(KeyedState(base), model, *read)
    assert KeyedState(base).next_due() == min((d for _, d in model.values() if d is not None), default=None)


NUMBERED = st.integers(0, 2500).map(lambda n: b"%d" % n)
VALUES = st.one_of(st.none(), st.binary(max_size=8), st.just(bytes(2000)))


@settings(max_examples=25)
@given(st.lists(st.one_of(NUMBERED, st.lists(st.tuples(NUMBERED, VALUES), max_size=400)), max_size=30))
def test_a_look_up_is_always_what_is_committed(steps: list[bytes | list[tuple[bytes, bytes | None]]]) -> None:
    """A look-up gives the committed value for any order of reads and commits, with large values and a full cache."""
    committed, memory = MemoryState(), StateMemory()
    rows: dict[bytes, bytes | None] = {}
    for step in steps:
        if isinstance(step, bytes):
            assert memory.over(0, committed).get(step) == rows.get(step)
        else:
            rows.update(step)
            changes = [StateChange(key, value) for key, value in dict(step).items()]
            committed.apply(changes)
            memory.committed({0: changes})
    for number in range(2501):
        assert memory.over(0, committed).get(b"%d" % number) == rows.get(b"%d" % number)


def test_a_second_look_up_asks_nobody() -> None:
    """A second look-up is answered from the cache, also for missing keys, and includes later commits."""
    committed, memory = MemoryState(), StateMemory()
    assert [memory.over(0, committed).get(key) for key in (b"read", b"written")] == [None, None]
    memory.committed({0: [StateChange(b"written", b"1")]})
    committed.apply([StateChange(b"read", b"behind its back")])
    assert memory.over(0, committed).get(b"written") == b"1"
    assert memory.over(0, committed).get(b"read") is None


def test_what_may_have_changed_is_forgotten() -> None:
    """The cache of a lost partition is dropped, and the whole cache after a failed commit."""
    states, memory = [MemoryState(), MemoryState()], StateMemory()

    def look_up_after(value: bytes) -> list[bytes | None]:
        for state in states:
            state.apply([StateChange(b"k", value)])
        return [memory.over(partition, state).get(b"k") for partition, state in enumerate(states)]

    assert look_up_after(b"1") == [b"1", b"1"]
    memory.forget([0])
    assert look_up_after(b"2") == [b"2", b"1"]
    memory.forget_all()
    assert look_up_after(b"3") == [b"3", b"3"]
