"""What is remembered of committed state is what is committed, through commits, rotations and losses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stream.log.contract import StateChange
from stream.log.sql_state import MemoryState
from stream.processing.state import StateMemory

_KEYS = st.integers(0, 2500).map(lambda n: b"%d" % n)
_VALUES = st.one_of(st.none(), st.binary(max_size=8), st.just(bytes(2000)))


@given(st.lists(st.one_of(_KEYS, st.lists(st.tuples(_KEYS, _VALUES), max_size=400)), max_size=30))
def test_a_look_up_is_always_what_is_committed(steps: list[bytes | list[tuple[bytes, bytes | None]]]) -> None:
    """Whatever is read and committed in whichever order, large values and more keys than there is room for included."""
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
    """What was looked up once is answered from memory, a missing key too, and as the last commit has left it."""
    committed, memory = MemoryState(), StateMemory()
    assert [memory.over(0, committed).get(key) for key in (b"read", b"written")] == [None, None]
    memory.committed({0: [StateChange(b"written", b"1")]})
    committed.apply([StateChange(b"read", b"behind its back")])
    assert memory.over(0, committed).get(b"written") == b"1"
    assert memory.over(0, committed).get(b"read") is None


def test_what_may_have_changed_is_forgotten() -> None:
    """A partition that was lost is read anew, and all of them after a commit that failed."""
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
