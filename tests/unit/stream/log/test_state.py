"""Keyed state of a batch: staged over committed, forks over staged, always like one dict."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stream.log.contract import StateChange
from stream.log.sql_state import MemoryState
from stream.processing.state import KeyedState

Model = dict[bytes, tuple[bytes, int | None]]
keys = st.sampled_from([b"", b"a", b"a\x00", b"aa", b"ab", b"a\xff", b"b", b"ba", b"c", b"\xff"])
times = st.one_of(st.none(), st.integers(-3, 12))
changes = st.builds(StateChange, keys, st.one_of(st.none(), st.binary(max_size=2)), times)
many = st.lists(changes, max_size=15)


def stage(state: KeyedState, model: Model, staged: list[StateChange]) -> None:
    """Do the same to the state and to the model."""
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
    """What is due by the model."""
    found = [(due_at, key, value) for key, (value, due_at) in model.items() if due_at is not None and due_at <= now_ms]
    return [(key, value, due_at) for due_at, key, value in sorted(found)]


def same(state: KeyedState, model: Model, now_ms: int, limit: int, prefix: bytes, after: bytes | None) -> None:
    """Every way of reading agrees with the model."""
    for key in (b"", b"a", b"ab", b"b", b"\xff"):
        assert state.get(key) == model.get(key, (None, None))[0]
    rows = [(k, model[k][0]) for k in sorted(model) if k.startswith(prefix) and (after is None or k > after)]
    assert state.scan(prefix, limit, after) == rows[:limit]
    assert state.due(now_ms, limit) == due_of(model, now_ms)[:limit]
    earliest = min((due_at for _, due_at in model.values() if due_at is not None), default=None)
    found = state.next_due()
    assert earliest is None or (found is not None and found <= earliest)


reads = (st.integers(-3, 12), st.integers(0, 12), st.sampled_from([b"", b"a", b"b", b"zz"]), st.none() | keys)


@given(many, many, many, many, *reads)
def test_what_was_staged_since_a_mark_is_undone_whole(
    below: list[StateChange],
    above: list[StateChange],
    more: list[StateChange],
    most: list[StateChange],
    now_ms: int,
    limit: int,
    prefix: bytes,
    after: bytes | None,
) -> None:
    """After `undo` the state reads, and carries, what it did at the mark; marks within marks likewise."""
    base, model = committed(below)
    state = KeyedState(base)
    stage(state, model, above)
    at_mark, carried, mark = dict(model), state.changes(), state.mark()
    stage(state, model, more)
    at_second, second = dict(model), state.mark()
    stage(state, model, most)
    same(state, model, now_ms, limit, prefix, after)
    state.undo(second)
    same(state, at_second, now_ms, limit, prefix, after)
    state.undo(mark)
    same(state, at_mark, now_ms, limit, prefix, after)
    assert {change.key: change for change in state.changes()} == {change.key: change for change in carried}


@given(many, many, *reads)
def test_changes_carry_what_was_staged(
    below: list[StateChange], above: list[StateChange], now_ms: int, limit: int, prefix: bytes, after: bytes | None
) -> None:
    """Applying changes() to the committed rows gives what the staged state read, and one change a key."""
    base, model = committed(below)
    state = KeyedState(base)
    stage(state, model, above)
    carried = state.changes()
    assert len({change.key for change in carried}) == len(carried)
    base.apply(carried)
    same(KeyedState(base), model, now_ms, limit, prefix, after)
    assert KeyedState(base).next_due() == min((d for _, d in model.values() if d is not None), default=None)
