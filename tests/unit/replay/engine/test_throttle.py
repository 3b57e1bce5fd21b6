"""A replay makes way for live: when it waits, for how long at most, and for whom."""

from __future__ import annotations

from typing import Any

from replay.engine.throttle import LEAST_SHARE, LiveFirstThrottle, LiveLag, live_reads
from stream.log.contract import Output, Topic
from stream.memory.log import MemoryLog
from stream.schema.runs import names_of

LIVE = names_of("live")


class Hands:
    """A clock that only moves when somebody sleeps or works."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.slept_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, wait_s: float) -> None:
        self.now_s += wait_s
        self.slept_s += wait_s


class Scene:
    """A log with the live topics, members of the groups named, and a look at the lag."""

    def __init__(self, *groups: str) -> None:
        self.hands = Hands()
        self.log = MemoryLog(lease_ms=10**9)
        self.log.create([Topic(topic, 1) for reads in live_reads(LIVE).values() for topic in reads])
        self.members = [self.log.join(group, live_reads(LIVE)[group], member="m") for group in groups]
        self.lag = LiveLag(self.log, self.hands.monotonic)

    def append(self, topic: str, count: int) -> None:
        self.log.append([Output(topic, 0, b"k", b"v") for _ in range(count)])

    def look(self, after_s: float = 1.0) -> dict[str, int]:
        """Look after so many seconds; who is behind."""
        self.hands.now_s += after_s
        self.lag.look(LIVE)
        return dict(self.lag.behind)

    def gate(self, **more: Any) -> LiveFirstThrottle:
        return LiveFirstThrottle(self.lag, monotonic=self.hands.monotonic, sleep=self.hands.sleep, **more)


def test_a_few_records_are_no_reason_to_wait() -> None:
    """What a live stage has in hand in ordinary work holds nobody up; more does, and its group is named.

    Requests of replays are no lag of live.
    """
    assert live_reads(LIVE)["score"] == ("score.requests",)
    scene = Scene("measure")
    scene.append("pages", 40)
    assert scene.look() == {}
    scene.append("pages", 60)
    assert scene.look() == {"measure": 100}
    assert scene.lag.text == "measure 100"


def test_nobody_waits_for_a_daemon_that_is_down() -> None:
    """A group without members is not waited for, however far it is behind."""
    scene = Scene("judge")
    scene.append("pages", 1000)
    assert scene.look() == {}
    scene.members.append(scene.log.join("measure", ["pages"], member="m"))
    assert scene.look(6.0) == {"measure": 1000}


def test_a_backlog_that_stays_becomes_usual() -> None:
    """A stage that is always so far behind holds a replay up for minutes, not for ever."""
    scene = Scene("score")
    scene.append("score.requests", 1000)
    assert scene.look() == {"score": 1000}
    waited = sum(bool(scene.look()) for _ in range(600))
    assert 30 < waited < 200
    scene.append("score.requests", 2000)
    assert scene.look() == {"score": 3000}


def test_the_gate_holds_while_live_is_behind_and_opens_at_once() -> None:
    """It waits in short slices, within the time that the loop allows, only until live has caught up."""
    scene = Scene("measure")
    gate = scene.gate()
    assert not gate.hold(0.5)
    assert scene.hands.slept_s == 0.0
    scene.append("pages", 500)
    scene.look()
    assert gate.hold(0.5)
    assert 0 < scene.hands.slept_s <= 0.5
    assert not gate.hold(0.0)
    scene.lag.behind = {}
    assert not gate.hold(0.5)


def test_a_replay_moves_on_however_far_live_is_behind() -> None:
    """With live behind all the time it works a tenth of the time, neither much more nor less."""
    scene = Scene("measure")
    waited_s: list[float] = []
    gate = scene.gate(on_wait=waited_s.append)
    scene.append("pages", 10**4)
    scene.look()
    worked_s = 0.0
    for _ in range(5000):
        if not gate.hold(0.5):
            scene.hands.now_s += 0.2
            worked_s += 0.2
    share = worked_s / (worked_s + scene.hands.slept_s)
    assert 0.8 * LEAST_SHARE < share < 1.25 * LEAST_SHARE
    assert abs(sum(waited_s) - scene.hands.slept_s) < 1e-6


def test_work_in_calm_times_buys_no_long_wait() -> None:
    """After an hour without a wait the longest one is ten seconds."""
    scene = Scene("measure")
    gate = scene.gate()
    scene.hands.now_s += 3600
    scene.append("pages", 10**4)
    scene.look()
    while gate.hold(0.5):
        pass
    assert scene.hands.slept_s < 10.5
