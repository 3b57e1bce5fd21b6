"""The contract of all logs: a commit is visible whole or not at all, and positions follow commits."""

from __future__ import annotations

import pytest

from stream.log.contract import RECORD_CAP_BYTES, At, Commit, Member, Output, StateChange
from stream.log.errors import Fenced, RecordTooLarge, UnknownTopic
from tests.support.worlds import World, drain, on_embedded, record, settle, values


def ready(world: World, count: int = 3) -> Member:
    """A member of `in` with a store that has polled the values 0, 1, … of partition 0; `out` is for outputs."""
    world.topics("in", "out", store="s")
    world.log.append([record("in", 0, "k", str(n)) for n in range(count)])
    member = world.join("in", store="s")
    assert values(drain(member, count)) == [str(n) for n in range(count)]
    return member


def all_of(world: World, offset: int) -> Commit:
    """A commit with two outputs, an offset and state."""
    outputs = [record("out", 0, "k", "small"), record("out", 1, "k", b"L" * 5000)]
    return Commit(outputs, {At("in", 0): offset}, {0: [StateChange(b"k", b"state", 7)]})


def visible(world: World) -> tuple[int, int | None, int]:
    """(records on out, committed offset of in-0, rows of state) as another process sees them."""
    log = world.again()
    records = sum(1 for p in range(2) for _ in log.read("out", p))
    return records, log.committed("g", "in")[0], len(list(log.scan_state("s", 0)))


def test_a_commit_is_visible_whole(world: World) -> None:
    """Another process sees outputs, offset and state of a commit when it returns, and not before."""
    member = ready(world)
    end = world.log.end("in")[0]
    assert visible(world) == (0, None, 0)
    member.commit(all_of(world, end))
    assert visible(world) == (2, end, 1)
    assert member.state(0).get(b"k") == b"state"


@pytest.mark.parametrize(
    ("bad", "error"),
    [(record("out", 0, "k", b"x" * (RECORD_CAP_BYTES + 1)), RecordTooLarge), (record("nowhere", 0, "k"), UnknownTopic)],
    ids=["too large", "unknown topic"],
)
def test_a_commit_with_a_record_that_is_refused_leaves_nothing(
    world: World, bad: Output, error: type[Exception]
) -> None:
    """No output, offset or state of a refused commit is visible, and a valid commit follows."""
    member = ready(world)
    good = all_of(world, 2)
    with pytest.raises(error):
        member.commit(Commit([*good.outputs, bad], good.offsets, good.state))
    assert visible(world) == (0, None, 0)
    assert member.state(0).get(b"k") is None
    member.rewind()
    drain(member, 3)
    member.commit(good)
    assert visible(world) == (2, 2, 1)


def test_a_zombie_of_the_same_name_is_fenced(world: World) -> None:
    """A second member of a name owns the first one's partitions; commits of the first are Fenced without effect."""
    zombie = ready(world)
    heir = world.owner(2, "in", store="s", log=world.again())
    with pytest.raises(Fenced):
        zombie.commit(all_of(world, 3))
    assert visible(world) == (0, None, 0)
    assert values(drain(heir, 3)) == ["0", "1", "2"]
    end = world.log.end("in")[0]  # the committed offset moves past transaction markers, so that 3 may become 4
    heir.commit(all_of(world, end))
    with pytest.raises(Fenced):
        zombie.commit(Commit([record("out", 0, "k", "names no partition")]))
    assert visible(world) == (2, end, 1)


@on_embedded
def test_a_member_whose_lease_expired_is_fenced(world: World) -> None:
    """A silent member loses its partitions after the lease; its commit raises Fenced, and later polls win others."""
    silent = ready(world)
    world.clock.turn(30_000)
    other = world.join("in", name="other", store="s", log=world.again())
    other.poll(0, 1, 1)
    assert other.assignment() == {}
    world.clock.turn(31_000)
    assert values(drain(other, 3)) == ["0", "1", "2"]
    with pytest.raises(Fenced):
        silent.commit(all_of(world, 3))
    assert visible(world) == (0, None, 0)
    settle([silent, other], 2)


def test_a_partition_that_is_not_owned_cannot_be_committed(world: World) -> None:
    """Offsets or state of a partition without ownership raise Fenced; its state cannot be read."""
    first = ready(world)
    second = world.join("in", name="second", store="s", log=world.again())
    settle([first, second], 2)
    (foreign,) = second.assignment()
    with pytest.raises(Fenced):
        first.commit(Commit([record("out", 0, "k")], {At("in", foreign): 1}))
    with pytest.raises(Fenced):
        first.commit(Commit([record("out", 0, "k")], {}, {foreign: [StateChange(b"k", b"v")]}))
    with pytest.raises(Fenced):
        first.state(foreign)
    assert visible(world) == (0, None, 0)


def test_poll_keeps_to_the_number_of_records_and_to_bytes(world: World) -> None:
    """poll returns at most max_records and max_bytes, but one record even above max_bytes."""
    world.topics("in")
    world.log.append([record("in", n % 2, "k", b"x" * 4000) for n in range(12)])
    member = world.owner(2, "in")
    sizes: list[int] = []
    while sum(sizes) < 12:
        sizes.append(len(member.poll(5, 3, 1 << 20)))
    assert max(sizes) <= 3
    member.rewind()
    seen = 0
    while seen < 12:
        got = len(member.poll(5, 100, 10_000))
        assert 1 <= got <= 2
        seen += got
    member.rewind()
    assert len(member.poll(5, 100, 1)) == 1


@on_embedded
def test_poll_takes_turns_between_partitions_and_topics(world: World) -> None:
    """A long backlog of one partition does not delay another partition or topic."""
    world.topics("in", "side")
    world.log.append([record("in", 0, "k", str(n)) for n in range(500)])
    world.log.append([record("in", 1, "k", "quiet"), record("side", 0, "k", "quiet"), record("side", 1, "k", "quiet")])
    member = world.join("in", "side")
    assert values(member.poll(1, 40, 1 << 20)).count("quiet") == 3


def test_paused_partitions_are_held_back(world: World) -> None:
    """poll returns no records of paused partitions; after resume, it returns all of them in order."""
    world.topics("in")
    world.log.append([record("in", p, "k", f"{p}.{n}") for n in range(3) for p in range(2)])
    member = world.owner(2, "in")
    member.pause([0])
    assert values(drain(member, 3)) == ["1.0", "1.1", "1.2"]
    member.pause()
    world.log.append([record("in", 1, "k", "1.3")])
    assert member.poll(0.2, 10, 1 << 20) == []
    member.resume()
    assert sorted(values(drain(member, 4))) == ["0.0", "0.1", "0.2", "1.3"]


def test_lag_counts_to_the_end_from_the_committed_offset(world: World) -> None:
    """Lag falls with commits, not with polls, and is zero when all is committed."""
    member = ready(world)
    assert member.lag()[At("in", 0)] >= 3
    assert member.lag()[At("in", 1)] == 0
    before = member.lag()[At("in", 0)]
    member.commit(Commit(offsets={At("in", 0): list(world.log.read("in", 0))[2].offset}))
    assert member.lag()[At("in", 0)] == before - 2
    member.commit(Commit(offsets={At("in", 0): world.log.end("in")[0]}))
    assert set(member.lag().values()) == {0}


def test_polling_wakes_for_a_record_of_another_process(world: World) -> None:
    """A member that waits in poll gets the records that another process appends, once."""
    member = ready(world)
    member.commit(Commit([record("out", 0, "k")]))
    world.again().append([record("in", 1, "k", "news")])
    assert values(drain(member, 1)) == ["news"]
