"""The contract of all logs: a background topic is read only while no record of another topic waits."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from stream.log.contract import At, Commit, Member, Message
from stream.schema.records import Hit, Record
from tests.support.logs.loops import Ahead, loop_on, put_hits
from tests.support.waiting import wait_until
from tests.support.worlds import World, drain, gather, record, turn_over, values

ROOM = 1 << 20


def joined(world: World) -> Member:
    """A member that owns both partitions of a live topic and of a background topic."""
    world.topics("live", "later", partitions=2)
    return world.owner(2, "live", "later", background=["later"])


def put(world: World, topic: str, *numbers: int) -> None:
    world.log.append([record(topic, number % 2, "k", f"{topic} {number}") for number in numbers])


def some(member: Member, most: int = 3) -> list[Message]:
    return gather(lambda: member.poll(0.5, most, ROOM), bool, "records")


def test_live_records_go_first(world: World) -> None:
    """All live records come before the first background record, even if that is older; both count as lag."""
    member = joined(world)
    put(world, "later", *range(20))
    turn_over([member])
    lag = member.lag()
    assert sum(lag[At("later", p)] for p in range(2)) >= 20
    assert sum(lag[At("live", p)] for p in range(2)) == 0
    member.rewind()
    put(world, "live", *range(20))
    topics = [message.topic for message in drain(member, 40, max_records=7)]
    assert topics == ["live"] * 20 + ["later"] * 20


def test_a_live_record_overtakes_the_background(world: World) -> None:
    """A live record that arrives while the background is read is returned alone by the next poll."""
    member = joined(world)
    put(world, "later", *range(40))
    for number in range(4):
        assert {message.topic for message in some(member)} == {"later"}
        put(world, "live", number)
        assert values(some(member)) == [f"live {number}"]


def test_no_record_of_the_background_is_lost_or_doubled(world: World) -> None:
    """With live records in between, each partition's background records come once and in order."""
    member = joined(world)
    put(world, "later", *range(60))
    found: list[Message] = []
    for number in range(6):
        found += some(member)
        put(world, "live", number)
        found += some(member)
    found += drain(member, 66 - len(found), max_records=5)
    for partition in range(2):
        later = [m for m in found if m.topic == "later" and m.partition == partition]
        assert values(later) == [f"later {n}" for n in range(60) if n % 2 == partition]
        assert values(m for m in found if m.topic == "live" and m.partition == partition) == [
            f"live {n}" for n in range(6) if n % 2 == partition
        ]


def test_a_rewind_takes_both_back(world: World) -> None:
    """Positions return to the committed ones in both topics, and the live records are first again."""
    member = joined(world)
    put(world, "later", 0, 1)
    put(world, "live", 0, 1)
    messages = drain(member, 4)
    first = messages[0]
    member.commit(Commit(offsets={At(first.topic, first.partition): first.offset + 1}))
    member.rewind()
    assert [message.topic for message in drain(member, 3)] == ["live", "later", "later"]


def test_paused_live_records_do_not_wait(world: World) -> None:
    """Paused live records do not block the background of other partitions."""
    member = joined(world)
    put(world, "live", 0)
    put(world, "later", 0, 1)
    member.pause([0])
    assert values(drain(member, 1)) == ["later 1"]
    member.resume()
    assert values(drain(member, 2)) == ["live 0", "later 0"]


class Slow(Ahead):
    """Two records a batch, two batches in flight."""

    inputs: Mapping[str, type[Record]] = {"live": Hit, "later": Hit}
    background = ("later",)


def test_a_live_request_waits_for_the_batches_in_flight_at_most(world: World) -> None:
    """A live request that arrives while two background batches are in flight is in the third batch."""
    world.topics("live", "later", "out", "dead-letters", partitions=1)
    put_hits(world.log, *(f"later {n}" for n in range(20)), topic="later")
    let, stop = threading.Event(), threading.Event()
    stage = Slow(lambda *_: let.wait(20))
    loop = loop_on(world.log, stage, member=world.owner(1, "live", "later", background=["later"]))
    thread = threading.Thread(target=loop.run, args=(stop,))
    thread.start()
    try:
        wait_until(lambda: len(stage.begun) == 2, "two batches in flight")
        put_hits(world.log, "urgent", topic="live")
        let.set()
        wait_until(lambda: len(stage.begun) >= 4, "further batches")
    finally:
        let.set()
        stop.set()
        thread.join(30)
    assert stage.most == 2 and stage.begun[2] == ["urgent"]
    assert all(i.startswith("later") for batch in [*stage.begun[:2], *stage.begun[3:]] for i in batch)
