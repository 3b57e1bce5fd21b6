"""A stage, on every log, whose input expired unread: one dead letter, one count, and the rest is processed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from stream.log.contract import Log, Output
from stream.log.errors import LogUnavailable
from stream.processing.dead_letters import DeadLetter
from stream.processing.loop import LoopSettings, StageLoop
from stream.processing.metrics import Metrics
from stream.processing.stage import Context, Stage
from stream.schema.records import Decision, Hit, Record, encode
from stream.schema.topics import DEAD_LETTERS
from tests.support.loops import count, decisions, refusing
from tests.support.worlds import World, patiently

RECORDS = 6


class Copying(Stage):
    name = "copying"
    run = "live"
    inputs: Mapping[str, type[Record]] = {"in": Hit}
    poll_s = 0.1

    def process(self, record: Hit, prepared: Any, ctx: Context) -> None:
        ctx.emit("out", Decision(id=record.id, site=record.site, stop=False, reason="copied"))


@pytest.fixture
def world(world: World) -> World:
    """A log with an input that can be taken away, an output and dead letters, of one partition each."""
    world.topics("in", partitions=1, retention_ms=1)
    world.topics("out", DEAD_LETTERS, partitions=1)
    world.log.append([Output("in", 0, b"s", encode(Hit(id=str(n), site="s", url="u"))) for n in range(RECORDS)])
    return world


def letters(log: Log) -> list[DeadLetter]:
    return [DeadLetter.read(message) for message in log.read(DEAD_LETTERS, 0)]


def run(world: World, metrics: Metrics, last: str, *, fails: bool = False) -> None:
    """Run the stage as a process of its own until the record `last` is copied and nothing is left.

    Its breaker opens at the first record that fails.
    """
    log = world.again()
    member: Any = log.join("g", ["in"], member="one")
    if fails:
        member = refusing(member, LogUnavailable("away"))
    settings = LoopSettings(linger_s=0.0, backoff_s=0.001, backoff_cap_s=0.01, breaker_least=1, breaker_share=0.0)
    loop = StageLoop(Copying(), member, metrics=metrics, settings=settings)
    stop = threading.Event()

    def done() -> bool:
        loop.cycle(stop)
        return last in [d.id for d in decisions(log, [0])] and not any(member.lag().values())

    patiently(done, f"record {last}")
    stop.set()
    loop.run(stop)


@pytest.mark.parametrize("fails", [False, True], ids=["at once", "after a rollback"])
def test_what_expired_is_buried_once_and_the_rest_goes_on(world: World, fails: bool) -> None:
    """One letter names the offsets and the cause, the counter has them, the breaker stays closed, the rest is done."""
    world.lose("in", [4])
    metrics = Metrics()
    with capture_logs() as logged:
        run(world, metrics, "5", fails=fails)
    log = world.again()
    assert [d.id for d in decisions(log, [0])] == ["4", "5"]
    (letter,) = letters(log)
    assert (letter.topic, letter.partition, letter.offset, letter.expired) == ("in", 0, 0, 4)
    assert (letter.stage, letter.run, letter.key, letter.value) == ("copying", "live", b"", b"")
    assert letter.error.startswith("RecordsExpired: retention removed offsets 0 to 3 of in-0 before the group")
    assert count(metrics, "log_expired_unread_records_total", topic="in") == 4
    assert count(metrics, "dead_letters_total", stage="copying", reason="RecordsExpired") == 1
    assert count(metrics, "log_records_total", topic="in", direction="in") == 2
    (said,) = [line for line in logged if line["event"] == "records_expired_unread"]
    assert (said["topic"], said["partition"], said["from"], said["to"]) == ("in", 0, 0, 3)
    assert (said["log_level"], said["stage"]) == ("error", "copying")


def test_a_stage_that_falls_behind_tells_each_gap(world: World) -> None:
    """Retention that overtakes a group again is told again, with what it took this time; nothing is told twice."""
    world.lose("in", [2])
    run(world, Metrics(), str(RECORDS - 1))
    world.log.append([Output("in", 0, b"s", encode(Hit(id=f"more-{n}", site="s", url="u"))) for n in range(3)])
    begun = world.log.committed("g", "in")[0]
    assert begun is not None
    last = [message.offset for message in world.log.read("in", 0)][-1]
    world.lose("in", [last])
    run(world, Metrics(), "more-2")
    assert [(letter.offset, letter.expired) for letter in letters(world.again())] == [(0, 2), (begun, last - begun)]
