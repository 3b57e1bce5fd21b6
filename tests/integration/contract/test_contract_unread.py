"""The contract of all logs: records that expired unread are reported, never skipped silently."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from structlog.testing import capture_logs

from stream.log.contract import At, CleanupPolicy, Commit, Member, Message
from tests.support.waiting import wait_until
from tests.support.worlds import World, drain, gather, record, values

FIRST = At("a", 0)


def put(world: World, count: int, partition: int = 0) -> None:
    """Append records one by one: on Kafka, the marker of a transaction follows each."""
    for n in range(count):
        world.log.append([record("a", partition, "k", str(n))])


def offsets(world: World) -> list[int]:
    return [message.offset for message in world.log.read("a", 0)]


def read(member: Member, until: Callable[[Sequence[Message]], bool]) -> list[Message]:
    return gather(lambda: member.poll(0.2, 2, 1 << 20), until, "enough records")


def spans(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """First offset and number of offsets of each expired span."""
    return [(m.offset + 1 - m.expired, m.expired) for m in messages if m.expired]


@pytest.fixture
def world(world: World) -> World:
    """A log with a topic whose old records can be expired."""
    world.topics("a", partitions=1, retention_ms=1)
    return world


def test_what_expired_before_a_group_began_is_reported_once(world: World) -> None:
    """A group without offsets gets one message for all expired records, committed like any other, then the rest."""
    put(world, 5)
    kept = offsets(world)[3]
    world.lose("a", [kept])
    member = world.join("a")
    found = read(member, lambda found: len(found) >= 3)
    gap, *rest = found
    assert (gap.topic, gap.partition, gap.offset, gap.expired) == ("a", 0, kept - 1, kept)
    assert (gap.key, gap.value, gap.headers) == (b"", b"", {})
    assert f"offsets 0 to {kept - 1} of a-0" in gap.damage
    assert "group g" in gap.damage
    assert values(rest) == ["3", "4"]
    member.commit(Commit(offsets={FIRST: gap.offset + 1}))
    member.close()
    again = world.join("a", log=world.again())
    assert values(drain(again, 2)) == ["3", "4"]


def test_it_comes_again_until_it_is_committed(world: World) -> None:
    """After a rewind, and for the next owner, an uncommitted span is reported again."""
    put(world, 3)
    world.lose("a", [offsets(world)[2]])
    member = world.join("a")
    first = read(member, lambda found: len(found) >= 2)
    member.rewind()
    assert spans(read(member, lambda found: len(found) >= 2)) == spans(first)
    member.close()
    assert spans(read(world.join("a"), lambda found: len(found) >= 2)) == spans(first)


def test_what_retention_overtakes_while_a_member_reads_is_reported(world: World) -> None:
    """Records that expire while a member reads are reported between the read and the kept records.

    The committed offset does not change; on the embedded log the lag counts kept records only.
    """
    put(world, 6)
    at = offsets(world)
    member = world.join("a")
    member.pause()
    wait_until(lambda: member.poll(0.1, 1, 1) == [] and 0 in member.assignment(), "the partition")
    member.commit(Commit(offsets={FIRST: at[1]}))
    member.rewind()
    world.lose("a", [at[4]])
    assert world.log.committed("g", "a") == [at[1]]
    assert not world.embedded or member.lag()[FIRST] == world.log.end("a")[0] - at[4]
    assert member.poll(0.3, 10, 1 << 20) == []  # an expired span of a paused partition waits as its records do
    member.resume()
    found = read(member, lambda found: len(found) >= 3)
    assert spans(found) == [(at[1], at[4] - at[1])]
    assert [m.offset for m in found] == [at[4] - 1, at[4], at[5]]
    assert values(found)[1:] == ["4", "5"]


def test_all_of_a_partition_may_be_gone(world: World) -> None:
    """If a partition has no records left, the gap is still reported, and later records are read."""
    put(world, 3)
    end = world.log.end("a")[0]
    world.lose("a", [end])
    member = world.join("a")
    found = read(member, bool)
    assert spans(found) == [(0, end)]
    member.commit(Commit(offsets={FIRST: found[-1].offset + 1}))
    assert member.lag()[FIRST] == 0
    world.log.append([record("a", 0, "k", "next")])
    assert values(drain(member, 1)) == ["next"]


def test_what_was_read_and_expired_later_is_not_reported(world: World) -> None:
    """Records that expire after a group read them are not reported; transaction markers are not records."""
    put(world, 3)
    member = world.join("a")
    found = drain(member, 3)
    member.commit(Commit(offsets={FIRST: found[-1].offset + 1}))
    member.close()
    world.lose("a", [world.log.end("a")[0]])
    world.log.append([record("a", 0, "k", "next")])
    assert values(drain(world.join("a", log=world.again()), 1)) == ["next"]


def test_of_a_compacted_topic_nothing_is_unread(world: World) -> None:
    """A reader of a compacted topic gets the newer records of its keys, without a report about removed ones."""
    world.topics("c", partitions=1, cleanup=CleanupPolicy.COMPACT)
    for n in range(4):
        world.log.append([record("c", 0, "k", str(n))])
    if world.embedded:
        world.log.expire(world.clock.now_ms)
    member = world.join("c", group="other")
    assert spans(read(member, lambda found: values(found)[-1:] == ["3"])) == []


@pytest.mark.parametrize("lost", [0, 2])
def test_a_group_beyond_the_end_begins_anew(world: World, lost: int) -> None:
    """The partition is read from its first kept record, with a log line; nothing is reported as expired."""
    put(world, lost + 2)
    kept = offsets(world)[lost]
    member = world.owner(1, "a")
    member.commit(Commit(offsets={FIRST: 1000}))
    member.close()
    if lost:
        world.lose("a", [kept])
    again = world.join("a", log=world.again())
    with capture_logs() as logged:
        found = drain(again, 2)
    assert (spans(found), values(found)) == ([], [f"{lost}", f"{lost + 1}"])
    (said,) = [line for line in logged if line["event"] == "offset_beyond_end"]
    assert (said["topic"], said["committed"], said["log_level"]) == ("a", 1000, "warning")
    assert said["group"].endswith("g")
    assert again.lag()[FIRST] == world.log.end("a")[0] - world.log.beginning("a")[0]
    again.commit(Commit(offsets={FIRST: found[-1].offset + 1}))
    assert again.lag()[FIRST] == 0
