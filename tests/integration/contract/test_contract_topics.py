"""The contract of all logs, without groups: topics, appends, reads."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest

from stream.log.contract import RECORD_CAP_BYTES, At, CleanupPolicy, Commit, Output, Topic
from stream.log.errors import RecordTooLarge, StreamError, TopicMismatch, UnknownTopic
from stream.log.offsets import renew_offsets
from tests.support.waiting import wait_until
from tests.support.worlds import NOON, World, drain, record, values


def test_a_topic_made_later_works_at_once_in_other_processes(world: World) -> None:
    """A running process can read, write and join a new topic; creating a topic again changes nothing."""
    world.topics("a")
    other = world.again()
    other.append([record("a", 0, "k", "v")])
    member = world.join("a", log=other)
    drain(member, 1)
    world.topics("a")
    assert other.topics() == world.log.topics() == {"a": 2}
    world.topics("later", "verdicts.run-1", store="tally.run-1")
    other.append([record("later", 0, "k", "appended")])
    member.commit(Commit([record("later", 1, "k", "committed")]))
    assert [values(world.log.read("later", p)) for p in range(2)] == [["appended"], ["committed"]]
    assert other.end("verdicts.run-1") == [0, 0]
    wait_until(lambda: other.in_flight("later") == [False, False], "the last commit to be visible in all partitions")
    late = world.join("later", group="late", store="tally.run-1", log=other)
    assert sorted(values(drain(late, 2))) == ["appended", "committed"]


def test_limits_change_only_when_they_are_set(world: World) -> None:
    """Creating a topic again keeps its limits; `set_limits` replaces those of one topic only."""
    day, week = 86_400_000, 7 * 86_400_000
    world.log.create([Topic("a", 2, retention_ms=day, retention_bytes=1 << 30), Topic("b", 1, retention_ms=day)])
    world.topics("newest", cleanup=CleanupPolicy.COMPACT)
    world.again().create([Topic("a", 2, retention_ms=week)])
    before = {
        "a": Topic("a", 2, CleanupPolicy.DELETE, day, 1 << 30),
        "b": Topic("b", 1, CleanupPolicy.DELETE, day),
        "newest": Topic("newest", 2, CleanupPolicy.COMPACT),
    }
    assert world.log.definitions() == before
    world.log.set_limits([Topic("a", 2, retention_ms=week)])
    after, other = {**before, "a": Topic("a", 2, CleanupPolicy.DELETE, week)}, world.again()
    wait_until(lambda: other.definitions() == after, "the log to have heard of it")  # of a broker's controller


def test_unknown_and_other_topics_are_refused_by_name(world: World) -> None:
    """A topic that was never created raises UnknownTopic, another number of partitions TopicMismatch with both."""
    world.topics("a", partitions=2)
    with pytest.raises(TopicMismatch, match=r"2.*3"):
        world.log.create([Topic("b", 1), Topic("a", 3)])
    assert world.log.topics() == {"a": 2}
    uses: list[Callable[[], object]] = [
        lambda: world.log.append([record("nowhere", 0, "k")]),
        lambda: list(world.log.read("nowhere", 0)),
        lambda: world.log.join("g", ["a", "nowhere"], member="m"),
        lambda: world.log.end("nowhere"),
    ]
    for use in uses:
        with pytest.raises(UnknownTopic, match="nowhere"):
            use()


def test_a_record_is_read_as_it_was_appended(world: World) -> None:
    """Key, value, headers, timestamp and place are kept; without a timestamp the log's clock gives one."""
    world.topics("a")
    world.log.append([record("a", 0, "k")])
    (stamped,) = world.log.read("a", 0)
    assert stamped.timestamp_ms == NOON if world.embedded else stamped.timestamp_ms > NOON
    headers = {"run": "live", "traceparent": "00-ü"}
    world.log.append(
        [
            record("a", 1, "k", b"\x00\xff", headers=headers, timestamp_ms=NOON + 5),
            record("a", 1, "k", b"", timestamp_ms=NOON + 6),
            record("a", 1, "", None, timestamp_ms=NOON + 7),
        ]
    )
    found = list(world.again().read("a", 1))
    assert [(m.topic, m.partition, m.key, m.value, dict(m.headers), m.timestamp_ms) for m in found] == [
        ("a", 1, b"k", b"\x00\xff", headers, NOON + 5),
        ("a", 1, b"k", b"", {}, NOON + 6),
        ("a", 1, b"", None, {}, NOON + 7),
    ]


def test_reading_takes_a_range_of_offsets(world: World) -> None:
    """read(start, stop) gives start <= offset < stop in order; by default it stops where the log ends at the call."""
    world.topics("a")
    world.log.append([record("a", 0, "k", str(n)) for n in range(10)])
    end = world.log.end("a")
    world.log.append([])
    assert world.log.end("a") == end
    found = list(world.log.read("a", 0))
    offsets = [m.offset for m in found]
    assert values(found) == [str(n) for n in range(10)]
    assert offsets == sorted(set(offsets))
    assert world.log.beginning("a")[0] <= offsets[0]
    assert world.log.end("a")[0] > offsets[-1]
    assert values(world.log.read("a", 0, offsets[3], offsets[6])) == ["3", "4", "5"]
    assert values(world.log.read("a", 0, offsets[8])) == ["8", "9"]
    assert values(world.log.read("a", 0, offsets[4], offsets[4])) == []
    assert values(world.log.read("a", 0, world.log.end("a")[0])) == []
    reading = world.log.read("a", 0, offsets[9])
    world.log.append([record("a", 0, "k", "after the call")])
    assert values(reading) == ["9"]


def test_records_up_to_the_cap_pass(world: World) -> None:
    """A value of exactly the cap is read whole, next to small ones."""
    world.topics("a")
    body = bytes(range(256)) * (RECORD_CAP_BYTES // 256)
    world.log.append([record("a", 0, "k", "small"), record("a", 0, "k", body), record("a", 0, "k", "small")])
    small, large, _ = world.again().read("a", 0)
    assert (small.value, large.value == body) == (b"small", True)


@pytest.mark.parametrize(
    ("bad", "error"),
    [(record("a", 0, "k", b"x" * (RECORD_CAP_BYTES + 1)), RecordTooLarge), (record("a", 2, "k"), UnknownTopic)],
    ids=["above the cap", "no such partition"],
)
def test_an_append_with_a_record_that_is_refused_leaves_nothing(
    world: World, bad: Output, error: type[Exception]
) -> None:
    """One record above the cap, or for a missing partition, refuses the whole append."""
    world.topics("a")
    with pytest.raises(error):
        world.log.append([record("a", 0, "k"), bad])
    assert list(world.log.read("a", 0)) == []


def test_order_holds_for_each_key_under_concurrent_appends(world: World) -> None:
    """Four threads, two with their own log, append a key each: each is read in order, and none is lost."""
    world.topics("a")
    logs = [world.log, world.again(), world.again(), world.log]

    def write(thread: int) -> None:
        for n in range(15):
            size = 5000 if n % 3 == 0 else 5
            logs[thread].append([record("a", thread % 2, str(thread), f"{n}".ljust(size))])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for partition in range(2):
        by_key: dict[bytes, list[int]] = {}
        for message in world.log.read("a", partition):
            assert message.value is not None
            by_key.setdefault(message.key, []).append(int(message.value))
        assert by_key == {str(t).encode(): list(range(15)) for t in (partition, partition + 2)}


def test_offset_at_is_exact_when_the_clock_steps_back(world: World) -> None:
    """With timestamps that go up and down, during appends and removals, offset_at gives the first one not before.

    On Kafka, transaction markers count too, with the broker's time, so that the answer may be the offset of a preceding
    marker.
    """
    retention_ms = 10**9 if world.embedded else None
    world.log.create([Topic("a", 1, retention_ms=retention_ms)])
    dice = random.Random(11)
    now_ms = NOON
    for _ in range(4 if world.embedded else 1):
        times = []
        for _ in range(700):
            now_ms += dice.choice((0, 1, 2, 30, -25, -400 * dice.randrange(2)))
            times.append(now_ms)
        world.log.append([record("a", 0, "k", "v", timestamp_ms=time_ms) for time_ms in times])
        if world.embedded:
            old = NOON if dice.randrange(2) else dice.choice(times)
            world.log.expire(old + 10**9)
        kept = [(m.offset, m.timestamp_ms) for m in world.log.read("a", 0)]
        ends = min(time_ms for _, time_ms in kept), max(time_ms for _, time_ms in kept)
        asked = [dice.randrange(ends[0] - 5, ends[1] + 5) for _ in range(30 if world.embedded else 9)]
        asked += [ends[0], ends[1], ends[1] + 1]
        for time_ms in asked:
            first = next((offset for offset, of in kept if of >= time_ms), world.log.end("a")[0])
            (found,) = world.log.offset_at("a", time_ms)
            is_marker = not world.embedded and found not in dict(kept)
            assert found == first or (is_marker and found < first)


def test_a_group_begins_where_it_was_set_to(world: World) -> None:
    """A group begins at the offsets that were set before it was joined, on every partition, in any process."""
    world.topics("in", "side")
    world.log.append([record(topic, p, "k", str(n)) for topic in ("in", "side") for p in range(2) for n in range(4)])
    at = world.log.offset_at("in", 0)
    starts = [[m.offset for m in world.log.read("in", p)][2] for p in range(2)]
    world.log.reset("judge.run", "in", starts)
    assert world.again().committed("judge.run", "in") == starts
    assert world.log.committed("judge.run", "side") == [None, None]
    assert at == world.log.beginning("in")
    member = world.join("in", "side", group="judge.run", log=world.again())
    found = drain(member, 12)
    assert [sorted(values(m for m in found if m.topic == topic)) for topic in ("in", "side")] == [
        sorted(["2", "3"] * 2),
        sorted(["0", "1", "2", "3"] * 2),
    ]
    assert sum(member.lag().values()) >= 12


def test_a_group_set_to_the_end_reads_what_comes_then(world: World) -> None:
    """A group set to the end, of an empty topic and of one with records, has no lag, and reads only new records."""
    world.topics("in")
    world.log.append([record("in", 0, "k", "old")])
    world.log.reset("g", "in", world.log.end("in"))
    member = world.owner(2, "in")
    assert member.poll(0.3, 10, 1 << 20) == []
    world.log.append([record("in", p, "k", "new") for p in range(2)])
    assert values(drain(member, 2)) == ["new", "new"]


def test_offsets_are_set_again_once_nobody_is_in_the_group(world: World) -> None:
    """With a living member, reset raises StreamError and changes nothing; after it has left, the group starts again."""
    world.topics("in")
    world.log.append([record("in", 0, "k", str(n)) for n in range(3)])
    member = world.join("in", log=world.again())
    drain(member, 3)
    member.commit(Commit(offsets={At("in", 0): world.log.end("in")[0]}))
    before = world.log.committed("g", "in")
    with pytest.raises(StreamError, match="live members"):
        world.log.reset("g", "in", [0, 0])
    assert world.log.committed("g", "in") == before
    member.close()
    with pytest.raises(StreamError, match=r"2 partitions, 1 offset"):
        world.log.reset("g", "in", [0])
    world.log.reset("g", "in", [world.log.beginning("in")[0], 0])
    assert values(drain(world.join("in", name="next"), 3)) == ["0", "1", "2"]


def test_renewing_offsets_changes_none(world: World) -> None:
    """Renewing keeps the offsets of an idle group; if the log forgets offsets, a group without them reads all."""
    world.topics("in", "side", "unread")
    world.log.append([record("in", p, "k", str(n)) for p in range(2) for n in range(3)])
    member = world.join("in", "side")
    drain(member, 6)
    end = world.log.end("in")[0]
    member.commit(Commit(offsets={At("in", 0): end}))
    assert not renew_offsets(world.log, "g", ["in", "side"])
    assert not renew_offsets(world.log, "nobody", ["in", "side"])
    member.close()
    forgets = world.log.forgets_offsets
    assert renew_offsets(world.again(), "g", ["in", "side", "unread", "nowhere"]) == forgets
    assert world.log.committed("g", "in") == [end, world.log.beginning("in")[1] if forgets else None]
    assert world.log.committed("g", "side") == [None, None]
    assert values(drain(world.join("in", "side", name="next"), 3)) == ["0", "1", "2"]


def test_several_partitions_are_read_at_once(world: World) -> None:
    """Each partition's range is read in order, up to the end of the partition; an empty range gives nothing."""
    world.topics("a", "b")
    for number in range(4):
        world.log.append([Output(topic, p, b"k", str(number).encode()) for topic in "ab" for p in (0, 1)])
    first = {topic: [message.offset for message in world.log.read(topic, 0)] for topic in "ab"}
    found: dict[At, list[bytes | None]] = {}
    for message in world.log.read_all(
        {At("a", 0): (0, first["a"][2]), At("b", 0): (first["b"][1], 10**6), At("b", 1): (0, 0)}
    ):
        found.setdefault(At(message.topic, message.partition), []).append(message.value)
    assert found == {At("a", 0): [b"0", b"1"], At("b", 0): [b"1", b"2", b"3"]}
    assert list(world.log.read_all({})) == []


def test_needed_offsets_are_one_for_each_partition(world: World) -> None:
    """A wrong number raises StreamError and removes nothing; a missing topic is skipped; young records stay."""
    world.topics("a", retention_ms=86_400_000)
    world.log.append([record("a", 0, "k", "v")])
    assert world.log.expire(world.clock.now_ms) == world.log.expire(world.clock.now_ms, most=0.5) == 0
    world.clock.turn(86_400_001)
    with pytest.raises(StreamError, match="'a' has 2"):
        world.log.expire(world.clock.now_ms, {"a": [0]})
    assert values(world.log.read("a", 0)) == ["v"]
    world.log.expire(world.clock.now_ms, {"nowhere": [0], "a": [0, 0]})
    assert values(world.log.read("a", 0)) == ["v"]
