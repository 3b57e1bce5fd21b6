"""The contract of all logs: the operations that only `farmwatch log copy` needs."""

from __future__ import annotations

import pytest

from stream.log.contract import At, Commit, StateChange
from stream.log.errors import StreamError
from tests.support.worlds import World, record, values


def test_append_returns_the_offsets(world: World) -> None:
    """append returns one offset per record, in order, for small and large records in two partitions."""
    world.topics("a")
    world.log.append([record("a", 0, "k", "before")])
    offsets = world.log.append([record("a", n % 2, "k", f"{n}" * (1 + 4000 * (n % 3))) for n in range(5)])
    for partition in range(2):
        read = [message.offset for message in world.log.read("a", partition)][partition == 0 :]
        assert read == offsets[partition::2]
    assert world.log.append([]) == []


def test_truncate_removes_what_is_below(world: World) -> None:
    """Small and large records below go, others keep their offsets, and a group with unread ones gets a report."""
    world.topics("a")
    offsets = world.log.append([record("a", 0, "k", f"{n}" * 3000) for n in range(4)])
    world.log.truncate("a", [offsets[2], 0])
    assert (world.log.beginning("a"), world.log.end("a")[1]) == ([offsets[2], 0], 0)
    assert [message.offset for message in world.again().read("a", 0)] == offsets[2:]
    world.log.truncate("a", world.log.end("a"))
    assert values(world.log.read("a", 0)) == []
    with pytest.raises(StreamError, match="2 partitions, 1 offsets"):
        world.log.truncate("a", [1])


def test_groups_are_listed(world: World) -> None:
    """Groups that committed or were set are listed, and removed groups are not."""
    world.topics("a", store="s")
    member = world.owner(2, "a", group="worked")
    member.commit(Commit(offsets={At("a", 0): 0}))
    member.close()
    world.log.reset("set", "a", [0, 0])
    assert world.again().groups() == ["set", "worked"]


def test_state_is_loaded_and_dumped(world: World) -> None:
    """State is loaded and dumped with due times, page by page, in key order; a later member uses it."""
    world.topics("a", store="s")
    changes = [StateChange(f"{n:04}".encode(), b"v" * (n % 7), n if n % 2 else None) for n in range(450)]
    world.log.load_state("s", 1, changes[:300])
    world.log.load_state("s", 1, changes[300:])
    assert list(world.again().dump_state("s", 1)) == changes
    assert list(world.log.dump_state("s", 0)) == []
    member = world.owner(2, "a", store="s")
    assert (member.state(1).next_due(), member.state(1).get(b"0449")) == (1, b"v")
    member.commit(Commit(state={1: [StateChange(b"0001", None)]}))
    assert list(world.again().dump_state("s", 1)) == [changes[0], *changes[2:]]
