"""Contract: a value that is no record becomes one dead letter with its origin, and the stage goes on."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from stream.log.contract import Message, Output
from stream.processing.dead_letters import DeadLetter
from stream.processing.loop import LoopSettings, StageLoop
from stream.processing.metrics import Metrics
from stream.processing.stage import Context, Stage
from stream.processing.topic_reader import UnreadableCounter, records_of
from stream.schema.records import Decision, Hit, Record, encode
from tests.support.worlds import World, patiently

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


class Naming(Stage):
    """Says the id of each hit on `out`."""

    name = "naming"
    inputs: Mapping[str, type[Record]] = {"in": Hit}
    poll_s = 0.01

    def process(self, record: Hit, prepared: Any, ctx: Context) -> None:
        del prepared
        ctx.emit("out", Decision(id=record.id, site=record.site, stop=False, reason=""))


def put_all(world: World) -> None:
    """Every bad value, each behind a good one, and a good one last."""
    world.topics("in", "out", "dead-letters", partitions=1)
    for value in BAD.values():
        world.log.append([Output("in", 0, SITE, GOOD, {"run": "live"}), Output("in", 0, SITE, value, {"run": "live"})])
    world.log.append([Output("in", 0, SITE, GOOD)])


def letters(world: World) -> list[Message]:
    return list(world.log.read("dead-letters", 0))


def test_each_bad_value_becomes_one_dead_letter(world: World) -> None:
    """Its origin, key, value and headers are those of the record; every good record around it is processed."""
    put_all(world)
    bad = [message for message in world.log.read("in", 0) if message.value != GOOD]
    loop = StageLoop(Naming(), world.join("in", group="naming"), metrics=Metrics(), settings=LoopSettings(linger_s=0.0))

    def done() -> bool:
        loop.cycle(threading.Event())
        return len(list(world.log.read("out", 0))) >= len(BAD) + 1 and len(letters(world)) >= len(BAD)

    patiently(done, "the good records to be processed and the bad ones to be buried")
    loop.cycle(threading.Event())
    assert len(list(world.log.read("out", 0))) == len(BAD) + 1
    found = [DeadLetter.read(message) for message in letters(world)]
    assert [(letter.topic, letter.partition, letter.offset) for letter in found] == [("in", 0, m.offset) for m in bad]
    assert [letter.value for letter in found] == list(BAD.values())
    assert {(letter.stage, letter.key, letter.run) for letter in found} == {("naming", SITE, "live")}
    newer = "SchemaTooNew: Hit record has schema 7, this farmwatch reads up to 1"
    for name, letter in zip(BAD, found, strict=True):
        assert (newer if name == "newer schema" else "BadRecord: not a Hit record") in letter.error


def test_who_reads_outside_of_a_loop_goes_on_too(world: World) -> None:
    """All good records are read, and the bad ones told in one line."""
    put_all(world)
    bad = UnreadableCounter()
    assert [record.id for _, record in records_of(Hit, world.log.read("in", 0), bad)] == ["good"] * (len(BAD) + 1)
    (line,) = bad.lines()
    assert line.startswith(f"{len(BAD)} records of in could not be read: the first is partition 0 offset ")
