"""The contract of all logs: keyed state of a partition, ordered, with a due index, that survives a loss of files."""

from __future__ import annotations

import pytest

from stream.log.contract import Commit, Member, StateChange
from stream.log.errors import StreamError
from tests.support.worlds import World, settle


def joined(world: World) -> Member:
    """A member with a store that owns both partitions."""
    world.topics("in", store="s")
    return world.owner(2, "in", store="s")


def test_keys_are_scanned_in_order_of_bytes(world: World) -> None:
    """scan returns the keys of a prefix in byte order after `after`, at most limit."""
    member = joined(world)
    keys = [b"a", b"a\x00", b"a\xff", b"a\xff\xff", b"b", b"", b"\xff", b"\xff\xff"]
    member.commit(Commit(state={0: [StateChange(key, b"v" + key) for key in keys]}))
    state = member.state(0)
    assert state.scan(b"", 100) == [(key, b"v" + key) for key in sorted(keys)]
    assert [k for k, _ in state.scan(b"a", 100)] == [b"a", b"a\x00", b"a\xff", b"a\xff\xff"]
    assert [k for k, _ in state.scan(b"a", 2)] == [b"a", b"a\x00"]
    assert [k for k, _ in state.scan(b"a", 2, after=b"a\x00")] == [b"a\xff", b"a\xff\xff"]
    assert [k for k, _ in state.scan(b"a\xff", 9)] == [b"a\xff", b"a\xff\xff"]
    assert [k for k, _ in state.scan(b"\xff", 9)] == [b"\xff", b"\xff\xff"]
    assert state.scan(b"a", 9, after=b"b") == []
    assert [k for k, _ in state.scan(b"b", 9, after=b"a")] == [b"b"]
    assert list(world.again().scan_state("s", 0)) == [(key, b"v" + key) for key in sorted(keys)]


@pytest.mark.parametrize("others", [3, 200])
def test_the_values_of_a_key_are_those_of_the_newest_commit(world: World, others: int) -> None:
    """However many keys were written since; partitions that lack the key, or have deleted it, give none."""
    member = joined(world)
    assert world.log.state_values("s", 2, b"k") == []
    for value in (b"old", b"new"):
        more = [StateChange(b"%d" % number, b"v") for number in range(others)]
        member.commit(Commit(state={0: [StateChange(b"k", value), *more], 1: [StateChange(b"k", value)]}))
    assert sorted(world.log.state_values("s", 2, b"k")) == [b"new", b"new"]
    member.commit(Commit(state={1: [StateChange(b"k", None)]}))
    assert world.log.state_values("s", 2, b"k") == [b"new"]


def test_due_keys_come_oldest_first(world: World) -> None:
    """due returns keys up to now, by time then key, at most limit; keys without a time are left out."""
    member = joined(world)
    due = {b"c": 5, b"a": 5, b"b": 3, b"later": 100, b"never": None, b"past": -7}
    member.commit(Commit(state={1: [StateChange(key, b"v", at) for key, at in due.items()]}))
    state = member.state(1)
    assert state.due(5, 10) == [(b"past", b"v", -7), (b"b", b"v", 3), (b"a", b"v", 5), (b"c", b"v", 5)]
    assert [key for key, _, _ in state.due(5, 3)] == [b"past", b"b", b"a"]
    assert (state.next_due(), len(state.scan(b"", 99))) == (-7, 6)
    member.commit(
        Commit(state={1: [StateChange(b"past", b"v", 200), StateChange(b"b", b"v"), StateChange(b"a", None)]})
    )
    assert [key for key, _, _ in state.due(1000, 9)] == [b"c", b"later", b"past"]
    assert (state.next_due(), len(state.scan(b"", 99))) == (5, 5)  # the committed value, although it was read before
    assert state.get(b"b") == b"v"


def test_changes_apply_in_order(world: World) -> None:
    """Of several changes of a key in one commit the last one counts; deleting a missing key is allowed."""
    member = joined(world)
    changes = [
        StateChange(b"k", b"1", 5),
        StateChange(b"k", None),
        StateChange(b"k", b"2"),
        StateChange(b"gone", b"1"),
        StateChange(b"gone", None),
    ]
    member.commit(Commit(state={0: [*changes, StateChange(b"never", None)]}))
    state = member.state(0)
    assert (state.get(b"k"), state.get(b"gone"), len(state.scan(b"", 99)), state.next_due()) == (b"2", None, 1, None)


def test_partitions_have_states_of_their_own(world: World) -> None:
    """The same key in two partitions holds two values; another store is empty; without a store there is no state."""
    member = joined(world)
    world.topics(store="other")
    without = world.owner(2, "in", group="without")
    with pytest.raises(StreamError):
        without.state(0)
    with pytest.raises(StreamError):
        without.commit(Commit(state={0: [StateChange(b"k", b"v")]}))
    member.commit(Commit(state={0: [StateChange(b"k", b"0")], 1: [StateChange(b"k", b"1", 3)]}))
    assert (member.state(0).get(b"k"), member.state(1).get(b"k")) == (b"0", b"1")
    assert (member.state(0).next_due(), member.state(1).next_due()) == (None, 3)
    assert list(world.log.scan_state("other", 0)) == []


def test_state_is_read_from_outside_as_it_stood(world: World) -> None:
    """read_state looks up, scans and lists due keys without joining; later commits are not visible."""
    member = joined(world)
    member.commit(Commit(state={0: [StateChange(b"a", b"1", 5), StateChange(b"b", b"2"), StateChange(b"c", b"3", 4)]}))
    with world.again().read_state("s", 0) as state:
        assert (state.get(b"a"), state.get(b"none"), len(state.scan(b"", 99)), state.next_due()) == (b"1", None, 3, 4)
        member.commit(Commit(state={0: [StateChange(b"a", b"9", 1), StateChange(b"d", b"4")]}))
        assert state.scan(b"", 9) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
        assert state.due(10, 9) == [(b"c", b"3", 4), (b"a", b"1", 5)]
    with world.again().read_state("s", 0) as state:
        assert (state.get(b"a"), len(state.scan(b"", 99))) == (b"9", 4)
    with world.again().read_state("s", 1) as state:
        assert (state.get(b"a"), state.scan(b"", 9), state.next_due()) == (None, [], None)


def test_state_comes_back_after_a_loss_of_local_files(world: World) -> None:
    """A process without local files restores all committed state: values, deletions, due times, large values."""
    member = joined(world)
    large = bytes(range(256)) * 400
    for n in range(10):
        puts = [StateChange(f"{n}".encode(), f"{n}".encode(), n), StateChange(f"{n}x".encode(), b"x")]
        member.commit(Commit(state={0: puts, 1: [StateChange(b"large", large + bytes([n]))]}))
    member.commit(Commit(state={0: [StateChange(f"{n}x".encode(), None) for n in range(10)]}))
    member.close()
    restored = world.owner(2, "in", store="s", name="elsewhere", log=world.again())
    state = restored.state(0)
    assert state.scan(b"", 99) == [(f"{n}".encode(), f"{n}".encode()) for n in range(10)]
    assert [key for key, _, _ in state.due(4, 99)] == [b"0", b"1", b"2", b"3", b"4"]
    assert restored.state(1).get(b"large") == large + b"\x09"


def test_state_goes_with_its_partition(world: World) -> None:
    """The new owner of a partition sees the state that the former owner committed."""
    first = joined(world)
    first.commit(Commit(state={p: [StateChange(b"owner", b"first", p)] for p in range(2)}))
    second = world.join("in", store="s", name="second", log=world.again())
    settle([first, second], 2)
    (moved,) = second.assignment()
    assert second.state(moved).get(b"owner") == b"first"
    second.commit(Commit(state={moved: [StateChange(b"owner", b"second")]}))
    second.close()
    settle([first], 2)
    assert first.state(moved).get(b"owner") == b"second"
