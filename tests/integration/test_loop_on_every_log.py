"""A stage on every log: an unreadable or expired input is one dead letter, and the rest is processed."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from structlog.testing import capture_logs

from stream.log.contract import Output
from stream.log.errors import LogUnavailable
from stream.processing.loop import LoopSettings
from stream.processing.metrics import Metrics
from stream.schema.records import Decision, Hit, encode
from stream.schema.topics import DEAD_LETTERS
from tests.support.limits import with_limits
from tests.support.logs.loops import Copying, count, decisions, letters, loop_on, put_hits, refusing
from tests.support.waiting import wait_until
from tests.support.worlds import World

RECORDS = 6
SITE = b"a.example"
GOOD = encode(Hit(id="good", site="a.example", url="https://a.example/", title="title"))
BAD = {
    "invalid UTF-8": GOOD.replace(b"title", b"ti\xff\xfele"),
    "truncated": GOOD[: len(GOOD) // 2],
    "garbage": bytes(range(128, 256)),
    "newer schema": encode(Hit(id="n", site="a.example", url="x", v=7)),
    "another record": encode(Decision(id="d", site="a.example", stop=True, reason="")),
    "empty": b"",
    "large and truncated": encode(Hit(id="l", site="a.example", url="x" * 5000))[:-100],
}


@pytest.fixture
def world(world: World) -> World:
    """A log with an input that can expire, an output and dead letters, of one partition each."""
    world.topics("in", partitions=1, retention_ms=1)
    world.topics("out", DEAD_LETTERS, partitions=1)
    return world


def run(world: World, metrics: Metrics, last: str, *, copies: int = 1, **options: Any) -> None:
    """Run the stage as a separate process until `last` is copied that often and nothing is left.

    With `fails` the first commit fails; the other options are settings of the loop.
    """
    log = world.again()
    member: Any = log.join("g", ["in"], member="one")
    if options.pop("fails", False):
        member = refusing(member, LogUnavailable("away"))
    settings = with_limits(LoopSettings(), linger_s=0.0, backoff_s=0.001, backoff_cap_s=0.01, **options)
    stage, stop = Copying(), threading.Event()
    stage.run = "live"
    loop = loop_on(log, stage, metrics, settings, member)

    def done() -> bool:
        loop.cycle(stop)
        copied = [decision.id for decision in decisions(log, [0])]
        return copied.count(last) >= copies and not any(member.lag().values())

    wait_until(done, f"record {last}")
    stop.set()
    loop.run(stop)


def test_each_bad_value_becomes_one_dead_letter(world: World) -> None:
    """The dead letter has origin, key, value and headers of the record; every good record is processed."""
    for value in BAD.values():
        world.log.append([Output("in", 0, SITE, GOOD, {"run": "live"}), Output("in", 0, SITE, value, {"run": "live"})])
    world.log.append([Output("in", 0, SITE, GOOD)])
    bad = [message for message in world.log.read("in", 0) if message.value != GOOD]
    run(world, Metrics(), "good", copies=len(BAD) + 1)
    assert len(list(world.log.read("out", 0))) == len(BAD) + 1
    found = letters(world.log, [0])
    assert [(letter.topic, letter.partition, letter.offset) for letter in found] == [("in", 0, m.offset) for m in bad]
    assert [letter.value for letter in found] == list(BAD.values())
    assert {(letter.stage, letter.key, letter.run) for letter in found} == {("copying", SITE, "live")}
    newer = "SchemaTooNew: Hit record has schema 7, this farmwatch reads up to 1"
    for name, letter in zip(BAD, found, strict=True):
        assert (newer if name == "newer schema" else "BadRecord: not a Hit record") in letter.error


@pytest.mark.parametrize("fails", [False, True], ids=["at once", "after a rollback"])
def test_expired_records_are_one_dead_letter_and_the_rest_is_processed(world: World, fails: bool) -> None:
    """The letter has offsets and cause, the counter counts them, the breaker stays closed, the rest is processed."""
    put_hits(world.log, *map(str, range(RECORDS)))
    world.lose("in", [4])
    metrics = Metrics()
    with capture_logs() as logged:  # the breaker would open at the first failed record
        run(world, metrics, "5", fails=fails, breaker_least=1, breaker_share=0.0)
    log = world.again()
    assert [d.id for d in decisions(log, [0])] == ["4", "5"]
    (letter,) = letters(log, [0])
    assert (letter.topic, letter.partition, letter.offset, letter.expired) == ("in", 0, 0, 4)
    assert (letter.stage, letter.run, letter.key, letter.value) == ("copying", "live", b"", b"")
    assert letter.error.startswith("RecordsExpired: retention removed offsets 0 to 3 of in-0 before the group")
    assert count(metrics, "log_expired_unread_records_total", topic="in") == 4
    assert count(metrics, "dead_letters_total", stage="copying", reason="RecordsExpired") == 1
    assert count(metrics, "log_records_total", topic="in", direction="in") == 2
    (said,) = [line for line in logged if line["event"] == "records_expired_unread"]
    assert (said["topic"], said["partition"], said["from"], said["to"]) == ("in", 0, 0, 3)
    assert (said["log_level"], said["stage"]) == ("error", "copying")


def test_a_stage_that_falls_behind_reports_each_gap(world: World) -> None:
    """Each time that retention overtakes a group, the newly expired records are reported, none twice."""
    put_hits(world.log, *map(str, range(RECORDS)))
    world.lose("in", [2])
    run(world, Metrics(), str(RECORDS - 1))
    put_hits(world.log, *(f"more-{n}" for n in range(3)))
    begun = world.log.committed("g", "in")[0]
    assert begun is not None
    last = [message.offset for message in world.log.read("in", 0)][-1]
    world.lose("in", [last])
    run(world, Metrics(), "more-2")
    assert [(one.offset, one.expired) for one in letters(world.again(), [0])] == [(0, 2), (begun, last - begun)]
