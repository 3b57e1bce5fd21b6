"""The throttle of a replay: when it waits, for how long, and for which groups."""

from __future__ import annotations

from typing import Any

from replay.engine.throttle import MIN_WORK_SHARE, LiveFirstThrottle, LiveLag, live_reads
from stream.log.contract import Output, Topic
from stream.memory.log import MemoryLog
from stream.schema.runs import names_of

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
