"""A bounded member: which records it delivers, that it leaves the rest alone, and when the throttle holds it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.engine.bounded_member import BoundedMember
from replay.engine.throttle import MIN_WORK_SHARE, LiveFirstThrottle, LiveLag, live_reads
from replay.runs.topology import Stops, first_record, is_at_stops, last_record, processed_by
from stream.embedded.log import EmbeddedLog
from stream.log.contract import At, CleanupPolicy, Commit, Log, Message, Output, Topic
from stream.memory.log import MemoryLog
from stream.processing.heartbeat import HEADER
from stream.schema.runs import Gap, names_of


@pytest.fixture
def log() -> Iterator[Log]:
    """A log with two topics of two partitions."""
    made: Log = MemoryLog()
    made.create([Topic("a", 2), Topic("b", 2)])
    yield made
    made.close()


def put(log: Log, topic: str, partition: int, count: int) -> None:
    log.append([Output(topic, partition, b"k", b"v") for _ in range(count)])


def join(log: Log, stops: Stops, name: str = "m", topics: Sequence[str] = ("a", "b"), **more: Any) -> BoundedMember:
    return BoundedMember(log.join("g", topics, member=name), log, "g", topics, stops, **more)


def commit(member: BoundedMember, batch: list[Message]) -> list[Message]:
    if batch:
        member.commit(Commit(offsets={At(m.topic, m.partition): m.offset + 1 for m in batch}))
    return batch


def work(log: Log, member: BoundedMember, stops: Stops) -> list[Message]:
    """Read and commit batches until the group is at its stops."""
    found: list[Message] = []
    for _ in range(200):
        if is_at_stops(log, "g", stops):
            return found
        found += commit(member, member.poll(0.05, 3, 1 << 20))
    raise AssertionError("it never was at its stops")


def read(member: BoundedMember, number: int) -> list[Message]:
    """Read this many records without a commit."""
    found: list[Message] = []
    while len(found) < number:
        found += member.poll(0.05, 3, 1 << 20)
    return found


def test_expired_records_are_reported(log: Log) -> None:
    """Records that expired unread are reported, whether before it joins or while it reads."""
    log.create([Topic("old", 2, retention_ms=1)])
    for partition in (0, 1):
        put(log, "old", partition, 10)
    log.reset("g", "old", [2, 0])
    log.expire(2**44, {"old": [4, 0]})
    lost: list[Gap] = []
    stops = {"old": [10, 10]}
    member = join(log, stops, topics=["old"], on_gap=lost.append)
    for _ in range(3):
        commit(member, member.poll(0.05, 2, 1 << 20))
    assert lost == [Gap("old", 0, 2, 4)]
    done = processed_by(log, "g", "old")
    log.expire(2**44, {"old": [8, 8]})
    work(log, member, stops)
    member.close()
    assert sum(gap.last - gap.first for gap in lost[1:]) == sum(max(0, 8 - at) for at in done)


def test_an_expired_record_is_reported_and_not_delivered(log: Log) -> None:
    """The loop does not get it; otherwise it would also write a dead letter."""
    log.create([Topic("old", 1, retention_ms=1)])
    put(log, "old", 0, 3)
    lost: list[Gap] = []
    member = join(log, {"old": [3]}, topics=["old"], on_gap=lost.append)
    member.pause()
    member.poll(0, 1, 1)
    log.expire(2**44, {"old": [1]})
    member.resume()
    assert [(m.offset, m.expired) for m in read(member, 2)] == [(1, 0), (2, 0)]
    member.close()
    assert lost == [Gap("old", 0, 0, 1)]


def test_a_gap_before_the_stop_is_passed(tmp_path: Path) -> None:
    """If compaction left no record before the stop, the stop is committed."""
    log = EmbeddedLog(tmp_path / "log", clock=lambda: 1)
    log.create([Topic("a", 2, CleanupPolicy.COMPACT), Topic("b", 2)])
    log.append([Output("a", 0, b"same", b"%d" % n, timestamp_ms=1) for n in range(5)])
    log.append([Output("a", 0, b"gone", None, timestamp_ms=1), Output("a", 0, b"last", b"v", timestamp_ms=1)])
    log.expire(400 * 86_400_000)
    assert [m.offset for m in log.read("a", 0)] == [4, 6]
    stops = {"a": [6, 0], "b": [0, 0]}
    member = join(log, stops)
    assert [m.offset for m in work(log, member, stops)] == [4]
    member.close()
    log.close()


def test_uncommitted_records_are_not_passed(log: Log) -> None:
    """Only a commit brings the group to its stops; a rewind delivers the records again."""
    put(log, "a", 0, 3)
    stops = {"a": [3, 0], "b": [0, 0]}
    member = join(log, stops)
    read(member, 3)
    for _ in range(10):
        assert member.poll(0.05, 3, 1 << 20) == []
    assert not is_at_stops(log, "g", stops)
    member.rewind()
    assert [m.offset for m in work(log, member, stops)] == [0, 1, 2]
    member.close()


def test_lag_ends_at_the_stops(log: Log) -> None:
    """Records beyond the stops are no lag: a finished replay is not behind."""
    put(log, "a", 0, 10)
    stops = {"a": [4, 0], "b": [0, 0]}
    member = join(log, stops)
    while not member.assignment():
        member.pause()
        member.poll(0.02, 1, 1)
    member.resume()
    assert sum(member.lag().values()) == 4
    work(log, member, stops)
    assert sum(member.lag().values()) == 0
    member.close()


def test_paused_partitions_stay_paused(log: Log) -> None:
    """Partitions paused by the loop stay paused while finished ones are paused, and continue after a resume."""
    put(log, "a", 0, 2)
    stops = {"a": [2, 0], "b": [0, 0]}
    member = join(log, stops)
    member.pause()
    for _ in range(5):
        assert member.poll(0.05, 3, 1 << 20) == []
    member.resume()
    assert len(work(log, member, stops)) == 2
    member.close()


@settings(max_examples=30)
@given(
    sizes=st.lists(st.integers(0, 12), min_size=4, max_size=4),
    cuts=st.lists(st.integers(0, 12), min_size=4, max_size=4),
    rewinds=st.sets(st.integers(0, 8)),
)
def test_each_record_below_the_stops_is_committed_once(sizes: list[int], cuts: list[int], rewinds: set[int]) -> None:
    """With any rollbacks, each record below the stops is delivered and committed once.

    The offsets end at the stops; later records stay.
    """
    log = MemoryLog()
    log.create([Topic("a", 2), Topic("b", 2)])
    places = [At("a", 0), At("a", 1), At("b", 0), At("b", 1)]
    stops: dict[str, list[int]] = {"a": [], "b": []}
    for at, count, cut in zip(places, sizes, cuts, strict=True):
        if count:
            put(log, at.topic, at.partition, count)
        stops[at.topic].append(min(count, cut))
    seconds = itertools.count()
    member = join(log, stops, monotonic=lambda: float(next(seconds)))
    committed: list[tuple[At, int]] = []
    for number in range(300):
        if is_at_stops(log, "g", stops):
            break
        batch = member.poll(0.0, 4, 1 << 20)
        if batch and number in rewinds:
            member.rewind()
        else:
            committed += [(At(m.topic, m.partition), m.offset) for m in commit(member, batch)]
    assert is_at_stops(log, "g", stops)
    member.close()
    assert {topic: processed_by(log, "g", topic) for topic in stops} == stops
    assert sorted(committed) == sorted((at, n) for at in places for n in range(stops[at.topic][at.partition]))


def test_first_and_last_record_pass_heartbeats(log: Log) -> None:
    """Heartbeats and tombstones are skipped."""
    beat = Output("a", 0, b"heartbeat", b"", {HEADER: "1"})
    log.append([beat, Output("a", 0, b"x", b"1"), Output("a", 0, b"y", b"2"), beat, Output("a", 0, b"z", None)])
    first, last = first_record(log, "a", 0, 0, 5), last_record(log, "a", 0, 0, 5)
    assert first is not None and first.key == b"x"
    assert last is not None and last.key == b"y"
    assert first_record(log, "a", 0, 3, 5) is None
    assert last_record(log, "a", 0, 3, 5) is None


LIVE = names_of("live")


class Hands:
    """A clock that moves only by sleeping or working."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.slept_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, wait_s: float) -> None:
        self.now_s += wait_s
        self.slept_s += wait_s


class Scene:
    """A log with the live topics, members of these groups, and their lag."""

    def __init__(self, *groups: str) -> None:
        self.hands = Hands()
        self.log = MemoryLog(lease_ms=10**9)
        self.log.create([Topic(topic, 1) for reads in live_reads(LIVE).values() for topic in reads])
        self.members = [self.log.join(group, live_reads(LIVE)[group], member="m") for group in groups]
        self.lag = LiveLag(self.log, self.hands.monotonic)

    def append(self, topic: str, count: int) -> None:
        self.log.append([Output(topic, 0, b"k", b"v") for _ in range(count)])

    def refresh(self, after_s: float = 1.0) -> dict[str, int]:
        """The groups behind after this many seconds."""
        self.hands.now_s += after_s
        self.lag.refresh(LIVE)
        return dict(self.lag.behind)

    def gate(self, **more: Any) -> LiveFirstThrottle:
        return LiveFirstThrottle(self.lag, monotonic=self.hands.monotonic, sleep=self.hands.sleep, **more)


def test_a_few_records_are_no_reason_to_wait() -> None:
    """The normal lag of a live stage causes no wait; a larger lag does, and its group is named.

    Requests of replays are no lag of live.
    """
    assert live_reads(LIVE)["score"] == ("score.requests",)
    scene = Scene("measure")
    scene.append("pages", 40)
    assert scene.refresh() == {}
    scene.append("pages", 60)
    assert scene.refresh() == {"measure": 100}
    assert scene.lag.text == "measure 100"


def test_groups_without_members_cause_no_wait() -> None:
    """A group without members is ignored, whatever its lag."""
    scene = Scene("judge")
    scene.append("pages", 1000)
    assert scene.refresh() == {}
    scene.members.append(scene.log.join("measure", ["pages"], member="m"))
    assert scene.refresh(6.0) == {"measure": 1000}


def test_a_backlog_that_stays_becomes_usual() -> None:
    """A permanent backlog delays a replay for minutes, not for ever."""
    scene = Scene("score")
    scene.append("score.requests", 1000)
    assert scene.refresh() == {"score": 1000}
    waited = sum(bool(scene.refresh()) for _ in range(600))
    assert 30 < waited < 200
    scene.append("score.requests", 2000)
    assert scene.refresh() == {"score": 3000}


def test_the_throttle_ends_once_live_has_caught_up() -> None:
    """It waits in short slices, within the allowed time, until live has caught up."""
    scene = Scene("measure")
    gate = scene.gate()
    assert not gate.hold(0.5)
    assert scene.hands.slept_s == 0.0
    scene.append("pages", 500)
    scene.refresh()
    assert gate.hold(0.5)
    assert 0 < scene.hands.slept_s <= 0.5
    assert not gate.hold(0.0)
    scene.lag.behind = {}
    assert not gate.hold(0.5)


def test_a_replay_works_a_tenth_of_the_time() -> None:
    """If live is always behind, it works a tenth of the time, neither much more nor less."""
    scene = Scene("measure")
    waited_s: list[float] = []
    gate = scene.gate(on_wait=waited_s.append)
    scene.append("pages", 10**4)
    scene.refresh()
    worked_s = 0.0
    for _ in range(5000):
        if not gate.hold(0.5):
            scene.hands.now_s += 0.2
            worked_s += 0.2
    share = worked_s / (worked_s + scene.hands.slept_s)
    assert 0.8 * MIN_WORK_SHARE < share < 1.25 * MIN_WORK_SHARE
    assert abs(sum(waited_s) - scene.hands.slept_s) < 1e-6


def test_work_in_calm_times_buys_no_long_wait() -> None:
    """After an hour without a wait the longest wait is ten seconds."""
    scene = Scene("measure")
    gate = scene.gate()
    scene.hands.now_s += 3600
    scene.append("pages", 10**4)
    scene.refresh()
    while gate.hold(0.5):
        pass
    assert scene.hands.slept_s < 10.5
