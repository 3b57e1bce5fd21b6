"""The contract of all logs: members of a group share its partitions, and lose nothing when the shares change."""

from __future__ import annotations

import pytest

from stream.log.contract import At, Commit, Member, Message
from tests.support.waiting import wait_until
from tests.support.worlds import LEASE_MS, World, drain, gather, on_embedded, record, settle, turn_over, values

YEAR_MS = 365 * 86_400_000


def take(member: Member) -> list[Message]:
    messages = member.poll(0.05, 20, 1 << 20)
    if messages:
        member.commit(Commit(offsets={At(m.topic, m.partition): m.offset + 1 for m in messages}))
    return messages


def test_two_members_share_and_lose_nothing(world: World) -> None:
    """Records appended before, during and after a second member joins and leaves are each read once, in order."""
    world.topics("in", partitions=4)
    first = world.owner(4, "in", name="first")

    def write(batch: int) -> None:
        world.log.append([record("in", p, f"k{p}", f"{batch}.{n}") for p in range(4) for n in range(5)])

    write(0)
    found = take(first)
    second = world.join("in", name="second", log=world.again())
    write(1)
    settle([first, second], 4)
    first.rewind()
    second.rewind()
    write(2)
    for _ in range(3):
        found += take(first) + take(second)
    second.close()
    write(3)
    settle([first], 4)
    first.rewind()
    left = 80 - len(found)
    found += gather(lambda: take(first), lambda more: len(more) >= left, "80 records")
    for partition in range(4):
        mine = [m for m in found if m.partition == partition]
        assert values(mine) == [f"{batch}.{n}" for batch in range(4) for n in range(5)]


def test_shares_are_sticky(world: World) -> None:
    """When a member joins, the first keeps the rest under the same epochs; moved ones return under new epochs."""
    world.topics("in", partitions=4)
    first = world.owner(4, "in", name="first")
    before = dict(first.assignment())
    second = world.join("in", name="second", log=world.again())
    settle([first, second], 4)
    kept = dict(first.assignment())
    assert len(kept) == 2
    assert kept.items() <= before.items()
    second.close()
    settle([first], 4)
    after = first.assignment()
    assert all(after[p] == epoch for p, epoch in kept.items())
    assert all(after[p] != before[p] for p in before if p not in kept)


def test_topics_of_a_group_are_owned_together(world: World) -> None:
    """The owner of a partition gets its records of every topic with that number of partitions, and only those."""
    world.topics("left", "right", partitions=4)
    members = [world.join("left", "right", name=name, log=world.again()) for name in ("one", "two")]
    settle(members, 4)
    world.log.append([record(topic, p, "k", "v") for topic in ("left", "right") for p in range(4)])
    found: list[set[tuple[str, int]]] = [set(), set()]

    def all_there() -> bool:
        for member, places in zip(members, found, strict=True):  # every member polls: one that does not may be excluded
            places |= {(message.topic, message.partition) for message in member.poll(0.2, 100, 1 << 24)}
        return len(found[0]) + len(found[1]) >= 8

    wait_until(all_there, "8 records")
    assert found[0] | found[1] == {(topic, p) for topic in ("left", "right") for p in range(4)}
    for places in found:
        assert {p for topic, p in places if topic == "left"} == {p for topic, p in places if topic == "right"}


def test_a_member_that_comes_back_takes_over_at_once(world: World) -> None:
    """A crashed process that joins under its old name gets its partitions at once, and no others move."""
    world.topics("in", partitions=4)
    log = world.again()
    crashing = world.join("in", name="crashing", log=log)
    other = world.join("in", name="other", log=world.again())
    settle([crashing, other], 4)
    others = dict(other.assignment())
    mine = set(crashing.assignment())
    back = world.join("in", name="crashing", log=world.again())

    def is_back() -> bool:
        turn_over([back, other])
        return set(back.assignment()) == mine

    wait_until(is_back, "the old partitions")
    assert dict(other.assignment()) == others


@on_embedded
@pytest.mark.parametrize("wrong_ms", [YEAR_MS, -YEAR_MS], ids=["ahead", "behind"])
def test_a_member_that_died_under_a_wrong_clock_is_taken_over(world: World, wrong_ms: int) -> None:
    """The lease of a dead member ends soon after the clock is corrected: offsets may be set, and another takes over."""
    world.topics("in")
    world.log.append([record("in", p, "k", "v") for p in range(2)])
    world.clock.turn(wrong_ms)
    world.owner(2, "in", name="dead", log=world.again())
    world.clock.turn(LEASE_MS + 1 - wrong_ms)
    assert world.log.members("g") == []
    world.log.reset("g", "in", [0, 0])
    heir = world.join("in", name="heir", log=world.again())
    assert values(drain(heir, 2)) == ["v", "v"]
    assert world.log.members("g") == ["heir"]


def test_members_keep_their_partitions_when_the_clock_is_set(world: World) -> None:
    """If the clock goes back a year, living members share all partitions again, and lose no record."""
    world.topics("in")
    members = [world.join("in", name=name, log=world.again()) for name in "ab"]
    settle(members, 2)
    world.clock.turn(-YEAR_MS)
    settle(members, 2)
    assert world.log.members("g") == ["a", "b"]
