"""The contract of all logs: the effect of remove(), and errors for users of removed topics."""

from __future__ import annotations

import contextlib

import pytest

from stream.log.contract import At, CleanupPolicy, Commit, Member, StateChange
from stream.log.errors import Fenced, StreamError, UnknownTopic
from tests.support.waiting import wait_until
from tests.support.worlds import LEASE_MS, World, drain, on_embedded, record, settle, values


def write_all(world: World) -> Member:
    """Commit two records' outputs, an offset and state in group g with the store s; the member is closed."""
    world.topics("in", "out", store="s")
    world.log.append([record("in", p, "k", "i" * 5000) for p in range(2)])
    member = world.join("in", store="s")
    drain(member, 2)
    member.commit(
        Commit(
            [record("out", 1, "k", "old")],
            {At("in", p): world.log.end("in")[p] for p in range(2)},
            {p: [StateChange(b"key", b"v" * 100)] for p in range(2)},
        )
    )
    member.close()
    return member


def test_a_removed_topic_is_gone_for_every_process(world: World) -> None:
    """No process lists, reads, joins or appends to a removed topic, even if it used it before; other topics stay."""
    world.topics("a", "kept")
    other = world.again()
    other.append([record("a", 0, "k", "v"), record("kept", 0, "k", "v")])
    assert values(other.read("a", 0)) == ["v"]
    world.log.remove(["a"])
    for log in (world.log, other, world.again()):
        assert log.topics() == {"kept": 2}
        for action in (lambda log=log: list(log.read("a", 0)), lambda log=log: log.end("a")):
            with pytest.raises(UnknownTopic, match="a"):
                action()
        with pytest.raises(UnknownTopic, match="a"):
            log.join("g", ["a"], member="m")
        assert values(log.read("kept", 0)) == ["v"]


def test_a_topic_made_again_begins_anew(world: World) -> None:
    """A new topic under the old name begins at offset 0, also for a process that used the old one."""
    world.topics("b", "a")
    other = world.again()
    other.append([record("a", 0, "k", f"old {n}") for n in range(3)])
    other.reset("g", "a", [1, 0])
    world.log.remove(["a"])
    world.topics("c", "a")
    assert other.committed("g", "a") == [None, None]
    assert (other.beginning("a"), other.end("a")) == ([0, 0], [0, 0])
    assert values(other.read("a", 0)) == []
    other.append([record("a", 0, "k", "new")])
    for log in (world.log, other, world.again()):
        assert [(m.offset, m.value) for m in log.read("a", 0)] == [(0, b"new")]
        assert all(values(log.read(topic, p)) == [] for topic in ("b", "c") for p in range(2))


def test_a_topic_may_be_made_again_with_other_partitions(world: World) -> None:
    """A process that wrote to the old topic gets at most one contract error, and then the new topic."""
    world.topics("a", partitions=1)
    other = world.again()
    other.append([record("a", 0, "k", "old")])
    world.log.remove(["a"])
    wait_until(lambda: "a" not in world.log.topics(), "the removal")
    world.topics("a", partitions=3)

    def appended() -> bool:
        with contextlib.suppress(StreamError):
            other.append([record("a", 2, "k", "new")])
            return True
        return False

    wait_until(appended, "the new partitions")
    assert other.topics() == {"a": 3}
    assert values(world.log.read("a", 2)) == ["new"]


def test_a_commit_of_another_process_finds_the_new_topic(world: World) -> None:
    """Outputs to a topic that was removed and created again are in the new one, though the member used the old one."""
    world.topics("in", "out")
    member = world.owner(2, "in", log=world.again())
    member.commit(Commit([record("out", 0, "k", "old")]))
    world.log.remove(["out"])
    world.topics("other", "out")
    member.commit(Commit([record("out", 0, "k", "new")], {At("in", 0): 0}))
    assert values(world.log.read("out", 0)) == ["new"]
    assert values(world.log.read("other", 0)) == []


def test_a_member_of_a_removed_topic_reads_nothing_of_it(world: World) -> None:
    """A member of another group gets UnknownTopic or nothing, never an old record or one of another topic."""
    world.topics("b", "a")
    world.log.append([record("a", 0, "k", "old"), record("b", 0, "k", "b")])
    member = world.owner(2, "a", group="another", log=world.again())
    world.log.remove(["a"])
    world.topics("c")
    world.log.append([record("c", 0, "k", "c"), record("b", 0, "k", "b")])
    member.rewind()
    with contextlib.suppress(UnknownTopic):
        assert member.poll(0.5, 10, 1 << 20) == []
    assert values(world.log.read("c", 0)) == ["c"]


def test_a_removed_group_and_store_begin_anew(world: World) -> None:
    """A member under the same names reads all and finds no key; the bytes that sizes() had are freed."""
    write_all(world)
    held = world.log.sizes(["out", "state.s"])
    assert world.log.remove(["out"], ["g"], ["s"]) == held["out"].bytes + held["state.s"].bytes > 0
    assert world.again().committed("g", "in") == [None, None]
    assert world.log.topics() == {"in": 2}
    world.topics("out", store="s")
    assert [list(world.again().scan_state("s", p)) for p in range(2)] == [[], []]
    member = world.join("in", store="s")
    drain(member, 2)
    assert [member.state(p).get(b"key") for p in range(2)] == [None, None]
    member.commit(Commit(state={1: [StateChange(b"new", b"w")]}))
    assert list(world.again().scan_state("s", 1)) == [(b"new", b"w")]


def test_a_group_with_live_members_is_not_removed(world: World) -> None:
    """A live member is a StreamError with its name, and nothing changes; after it closes, the group can be removed."""
    write_all(world)
    member = world.owner(2, "in", name="judge.1@host", store="s", log=world.again())
    with pytest.raises(StreamError, match=r"judge\.1@host"):
        world.log.remove(["out"], ["idle", "g"], ["s"])
    assert values(world.log.read("out", 1)) == ["old"]
    assert None not in world.log.committed("g", "in")
    assert list(world.log.scan_state("s", 0)) == [(b"key", b"v" * 100)]
    member.close()
    world.log.remove(["out"], ["idle", "g"], ["s"])
    assert world.log.topics() == {"in": 2}


def test_missing_ones_are_passed_over(world: World) -> None:
    """Removing a missing topic, or removing one twice, frees nothing and does not raise."""
    world.topics("a")
    assert world.log.remove() == 0
    assert world.log.remove(["nowhere"], ["nobody"], ["nothing"]) == 0
    world.log.remove(["a"], ["nobody"])
    assert world.log.remove(["a"], ["nobody"]) == 0


def test_a_store_beside_the_removed_one_stays(world: World) -> None:
    """State of another store whose name has the same prefix is kept."""
    world.topics("in", store="s")
    world.topics("state.s.run", cleanup=CleanupPolicy.COMPACT)
    for store in ("s", "s.run"):
        member = world.owner(2, "in", group=store, store=store)
        member.commit(Commit(state={0: [StateChange(b"of", store.encode())]}))
        member.close()
    world.log.remove(stores=["s.run"])
    assert list(world.again().scan_state("s", 0)) == [(b"of", b"s")]


def test_members_are_listed_by_name(world: World) -> None:
    """members() returns the members' names in another process, with any characters; after close, none."""
    world.topics("in")
    assert world.log.members("g") == []
    names = ["judge_2.näme", "judge.1@host"]
    joined = [world.join("in", name=name, log=world.again()) for name in names]
    settle(joined, 2)
    assert world.again().members("g") == sorted(names)
    joined[0].close()
    assert world.log.members("g") == ["judge.1@host"]
    joined[1].close()
    wait_until(lambda: world.log.members("g") == [], "the group to be empty")
    assert world.log.members("another") == []


def test_sizes_of_topics(world: World) -> None:
    """sizes() returns records and bytes of each existing topic, also in another process, and omits a missing one."""
    world.topics("a", "empty")
    world.log.append([record("a", n % 2, "k", bytes(range(250)) * 40) for n in range(4)])
    for log in (world.log, world.again()):
        sizes = log.sizes(["a", "empty", "nowhere"])
        assert sizes.keys() == {"a", "empty"}
        assert sizes["empty"] == (0, 0)
        if world.embedded:
            assert sizes["a"] == (4, 4 * (len("k") + 10_000))
        else:  # a broker counts transaction markers and compresses
            assert 4 <= sizes["a"].records <= 6
            assert 250 <= sizes["a"].bytes <= 42_000


def test_a_changelog_stands_for_its_store(world: World) -> None:
    """sizes() of "state.<store>" returns the size of the store's state."""
    write_all(world)
    size = world.log.sizes(["state.s"])["state.s"]
    if world.embedded:
        assert size == (2, 2 * (len("key") + 100))
    else:  # with transaction markers, compressed
        assert 2 <= size.records <= 6
        assert size.bytes > 0


@on_embedded
def test_a_member_that_comes_back_too_late_is_fenced(world: World) -> None:
    """A member that paused while its group was removed and joined again cannot commit."""
    world.topics("in", "out", store="s")
    stopped = world.owner(2, "in", store="s", log=world.again())
    world.clock.turn(LEASE_MS + 1)
    assert world.log.members("g") == []
    world.log.remove(["out"], ["g"], ["s"])
    world.topics("out", store="s")
    fresh = world.owner(2, "in", store="s")
    with pytest.raises(Fenced):
        stopped.commit(Commit([record("out", 0, "k", "late")], {At("in", 0): 1}, {0: [StateChange(b"late", b"v")]}))
    fresh.commit(Commit(offsets={At("in", 0): 0}))
    assert values(world.log.read("out", 0)) == []
    assert list(world.log.scan_state("s", 0)) == []
