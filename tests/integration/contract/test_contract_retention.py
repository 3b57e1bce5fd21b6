"""The contract of all logs: records removed and kept by retention and compaction."""

from __future__ import annotations

import pytest

from stream.log.contract import CleanupPolicy, Topic
from stream.log.errors import TooMuchExpired
from tests.support.worlds import NOON, World, drain, on_embedded, record, values

DAY_MS = 86_400_000
pytestmark = on_embedded


def test_old_records_are_removed(world: World) -> None:
    """Records older than retention_ms go, small and large; the beginning moves, offsets and the end stay."""
    world.topics("a", retention_ms=DAY_MS)
    world.log.append([record("a", 0, "k", b"o" * 5000), record("a", 0, "k", "old")])
    world.clock.turn(DAY_MS)
    world.log.append([record("a", 0, "k", "young")])
    world.clock.turn(1)
    freed = world.log.expire(world.clock.now_ms)
    assert freed >= 5003
    assert (world.log.beginning("a"), world.log.end("a")) == ([2, 0], [3, 0])
    assert [(m.offset, m.value) for m in world.again().read("a", 0)] == [(2, b"young")]
    world.clock.turn(DAY_MS)
    world.log.expire(world.clock.now_ms)
    assert (world.log.beginning("a"), world.log.end("a")) == ([3, 0], [3, 0])
    world.log.append([record("a", 0, "k", "next")])
    assert [(m.offset, m.value) for m in world.log.read("a", 0)] == [(3, b"next")]


def test_a_partition_is_held_to_its_bytes(world: World) -> None:
    """Its oldest records are removed until it is within retention_bytes; other partitions do not change."""
    world.topics("a", retention_bytes=35_000)
    world.log.append([record("a", 0, "k", f"{n}".ljust(10_000)) for n in range(6)])
    world.log.append([record("a", 1, "k", "small")])
    world.log.expire(world.clock.now_ms)
    assert [int(v) for v in values(world.log.read("a", 0))] == [3, 4, 5]
    assert values(world.log.read("a", 1)) == ["small"]
    world.log.append([record("a", 0, "k", f"{6}".ljust(10_000))])
    world.log.expire(world.clock.now_ms)
    assert [int(v) for v in values(world.log.read("a", 0))] == [4, 5, 6]


def test_without_limits_all_is_kept(world: World) -> None:
    """A topic without retention keeps all records; a new limit takes effect."""
    world.topics("a")
    world.log.append([record("a", 0, "k", "v")])
    assert world.log.expire(NOON + 10_000 * DAY_MS) == 0
    world.log.set_limits([Topic("a", 2, CleanupPolicy.DELETE, retention_ms=DAY_MS)])
    world.log.expire(NOON + 10_000 * DAY_MS)
    assert values(world.log.read("a", 0)) == []


def test_compaction_keeps_the_newest_of_each_key(world: World) -> None:
    """Of each key the newest record stays, at its offset; reading over the gaps works."""
    world.topics("a", cleanup=CleanupPolicy.COMPACT)
    large = "L" * 10_000
    world.log.append([record("a", 0, key, value) for key, value in [("x", "1"), ("y", large), ("x", "2"), ("z", "3")]])
    world.log.expire(world.clock.now_ms)
    world.log.append([record("a", 0, key, value) for key, value in [("y", "4"), ("x", "5")]])
    freed = world.log.expire(world.clock.now_ms, {"a": [1, 0]})  # needed offsets do not keep superseded records
    assert freed >= 10_000
    found = [(3, b"3"), (4, b"4"), (5, b"5")]
    assert [(m.offset, m.value) for m in world.again().read("a", 0)] == found
    assert (world.log.beginning("a"), world.log.end("a")) == ([3, 0], [6, 0])
    assert [(m.offset, m.value) for m in drain(world.join("a"), 3)] == found
    assert world.log.expire(world.clock.now_ms) == 0


def test_what_is_needed_stays(world: World) -> None:
    """Records from the needed offset on stay, however old or many, until a call without it or with a later one."""
    world.topics("old", "other", retention_ms=DAY_MS)
    world.topics("many", retention_bytes=15_000)
    for topic in ("old", "other", "many"):
        world.log.append([record(topic, p, "k", f"{n}".ljust(10_000)) for n in range(4) for p in range(2)])
    world.clock.turn(DAY_MS + 1)
    needed = {"old": [1, 4], "many": [2, 0]}
    world.log.expire(world.clock.now_ms, needed)
    assert (world.log.beginning("old"), world.log.end("old")) == ([1, 4], [4, 4])
    assert [int(v) for v in values(world.again().read("old", 0))] == [1, 2, 3]
    assert world.log.beginning("many") == [2, 0]
    assert world.log.beginning("other") == [4, 4]
    world.log.expire(world.clock.now_ms, needed)
    assert world.log.beginning("old") == [1, 4]
    world.log.expire(world.clock.now_ms, {"old": [3, 4]})
    assert world.log.beginning("old") == [3, 4]
    assert world.log.expire(world.clock.now_ms) == 10_001
    assert world.log.beginning("old") == [4, 4]


def test_most_of_a_topic_goes_only_when_it_may(world: World) -> None:
    """A topic that would lose more by age than `most` keeps everything, and TooMuchExpired names it; others shrink."""
    world.topics("a", "b", retention_ms=DAY_MS)
    world.topics("newest", partitions=1, cleanup=CleanupPolicy.COMPACT)
    world.topics("capped", partitions=1, retention_ms=DAY_MS, retention_bytes=15_000)
    world.log.append([record("newest", 0, "k", str(n)) for n in range(3)])
    world.log.append([record("capped", 0, "k", f"{n}".ljust(10_000)) for n in range(4)])
    world.log.append([record(topic, p, "k", f"{n}") for topic in "ab" for n in range(2) for p in range(2)])
    world.clock.turn(DAY_MS + 1)
    world.log.append([record("a", 0, "k", f"young{n}") for n in range(4)])
    with pytest.raises(TooMuchExpired, match="4 of the 4 records of topic 'b', 4 of the 4 records of topic 'capped'"):
        world.log.expire(world.clock.now_ms, most=0.5)
    assert (world.log.beginning("a"), world.log.beginning("b")) == ([2, 2], [0, 0])
    assert values(world.log.read("newest", 0)) == ["2"]
    assert [int(v) for v in values(world.log.read("capped", 0))] == [3]
    world.log.expire(world.clock.now_ms, {"b": [2, 0], "capped": [0]}, most=0.5)  # needed records are not removed
    assert (world.log.beginning("a"), world.log.beginning("b")) == ([2, 2], [2, 0])
    world.log.expire(world.clock.now_ms)
    assert world.log.beginning("b") == [2, 2]


def test_records_of_a_clock_that_was_ahead_do_not_stay_for_ever(world: World) -> None:
    """A record dated a year ahead expires with the next old record after it, not before."""
    world.topics("a", retention_ms=DAY_MS)
    ahead = world.clock.now_ms + 365 * DAY_MS
    world.log.append([record("a", 0, "k", "ahead", timestamp_ms=ahead) for _ in range(2500)])
    world.log.append([record("a", 0, "k", "behind"), record("a", 0, "k", "last", timestamp_ms=ahead)])
    world.log.expire(world.clock.now_ms)
    assert world.log.beginning("a") == [0, 0]
    world.clock.turn(DAY_MS + 1)
    world.log.expire(world.clock.now_ms)
    assert values(world.log.read("a", 0)) == ["last"]
    world.clock.turn(366 * DAY_MS)
    world.log.expire(world.clock.now_ms)
    assert values(world.log.read("a", 0)) == []


def test_tombstones_are_removed_later(world: World) -> None:
    """A tombstone removes its key at once, and is removed itself a day later, so that readers see it."""
    world.topics("a", cleanup=CleanupPolicy.COMPACT)
    world.log.append([record("a", 0, "k", "v"), record("a", 0, "k", None), record("a", 0, "other", "v")])
    world.log.expire(world.clock.now_ms)
    assert values(world.log.read("a", 0)) == ["-", "v"]
    world.clock.turn(DAY_MS + 1)
    world.log.expire(world.clock.now_ms)
    assert values(world.log.read("a", 0)) == ["v"]
