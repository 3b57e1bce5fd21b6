"""Records that the log does not take for their size: one dead letter each, and the stage goes on."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from stream.kafka.log import KafkaLog
from stream.log.contract import CleanupPolicy, Output, Topic
from stream.log.errors import LogUnavailable, RecordTooLarge
from stream.memory.log import MemoryLog
from stream.processing.stage import Context
from stream.schema.records import Decision, Hit, encode
from stream.schema.topics import DEAD_LETTERS
from tests.support.loops import FAST, Around, Copying, cycle, decisions, letters, loop_on, put_hits, refusing
from tests.support.waiting import wait_until

LIMIT, LARGE = 20_000, 60_000


class Growing(Copying):
    """Writes as many bytes as a hit's URL says, on the topic or in the state that its title names."""

    name = "growing"
    store = "sizes"

    def process(self, record: Hit, prepared: Any, ctx: Context) -> None:
        noise = os.urandom(int(record.url))
        ctx.state.put(record.id.encode(), noise if record.title == "state" else b"")
        reason = noise.hex() if record.title == "out" else ""
        ctx.emit("out", Decision(id=record.id, site=record.site, stop=False, reason=reason))


def put(log: KafkaLog, sizes: Mapping[str, int], place: str) -> None:
    hits = [Hit(id=id, site="a.example", url=str(size), title=place) for id, size in sizes.items()]
    log.append([Output("in", 0, b"a.example", encode(hit)) for hit in hits])


@pytest.mark.kafka
@pytest.mark.parametrize(("place", "refusing_topic"), [("out", "out"), ("state", "state.sizes")])
def test_a_record_that_the_broker_refuses_is_one_dead_letter(
    kafka_log: KafkaLog, place: str, refusing_topic: str
) -> None:
    """An output or row above max.message.bytes sends its input to the dead letters; the setting is named.

    The records around it are processed, once each, although together they are above the limit too.
    """
    kafka_log.create([*(Topic(name, 1) for name in ("in", "out", DEAD_LETTERS)), _changelog()])
    _limit(kafka_log, refusing_topic)
    before, after = ({f"{when} {n}": LIMIT // 4 for n in range(4)} for when in ("before", "after"))
    put(kafka_log, {**before, "large": LARGE, "larger": 2 * LARGE, **after}, place)
    loop, stop = loop_on(kafka_log, Growing()), threading.Event()
    wait_until(lambda: loop.cycle(stop) and not any(loop._member.lag().values()), "all records to be read")
    found = letters(kafka_log, [0])
    assert [(letter.stage, letter.offset) for letter in found] == [("growing", 4), ("growing", 5)]
    assert all("max.message.bytes" in letter.error and refusing_topic in letter.error for letter in found)
    assert [decision.id for decision in decisions(kafka_log, [0])] == [*before, *after]


@pytest.mark.kafka
def test_a_dead_letter_that_the_broker_refuses_has_no_record(kafka_log: KafkaLog) -> None:
    """If the letter with its record is too large, it is written without: origin and error remain."""
    kafka_log.create([*(Topic(name, 1) for name in ("in", "out", DEAD_LETTERS)), _changelog()])
    _limit(kafka_log, DEAD_LETTERS)
    bad = os.urandom(LARGE)
    kafka_log.append([Output("in", 0, b"a.example", bad)])
    put_hits(kafka_log, "after")
    loop, stop = loop_on(kafka_log, Copying()), threading.Event()
    wait_until(lambda: loop.cycle(stop) and not any(loop._member.lag().values()), "all records to be read")
    (letter,) = letters(kafka_log, [0])
    assert (letter.topic, letter.offset, letter.value) == ("in", 0, None)
    assert [decision.id for decision in decisions(kafka_log, [0])] == ["after"]


def test_a_record_refused_for_its_size_is_not_tried_again() -> None:
    """The first refusal of a size rolls back once; the batch then goes on without records of that size."""
    log = MemoryLog()
    log.create([Topic(name, 1) for name in ("in", "out", DEAD_LETTERS)])
    put_hits(log, "one")
    refused = [RecordTooLarge("the limit", "out", 1), RecordTooLarge("the limit again", "out", 1)]
    loop = loop_on(log, Copying(), member=refusing(log.join("group", ["in"], member="one"), refused[0]))
    cycle(loop)
    assert [letter.error for letter in letters(log, [0])] == ["RecordTooLarge: the limit"]
    loop = loop_on(log, Copying(), member=refusing(log.join("other", ["in"], member="one"), *refused))
    with pytest.raises(RecordTooLarge, match="again"):  # a log that refuses what is not larger is broken
        cycle(loop)


def test_commits_between_failures_do_not_end_the_back_off() -> None:
    """Failures that follow each other soon wait longer and longer, also if other commits succeed in between."""
    log, now, waits = MemoryLog(), [0.0], list[float]()
    log.create([Topic(name, 1) for name in ("in", "out", DEAD_LETTERS)])
    joined, turn = log.join("group", ["in"], member="one"), itertools.count()

    def commit(work: Any) -> None:
        if next(turn) % 2:
            raise LogUnavailable("now and then")
        joined.commit(work)

    class Waiting(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            now[0] += timeout or 0.0
            return False

    settings = type(FAST)(linger_s=0.0, backoff_s=0.1, backoff_cap_s=1.0)
    loop = loop_on(log, Copying(), settings=settings, member=Around(joined, commit=commit), monotonic=lambda: now[0])
    stop = Waiting()
    for number in range(8):
        put_hits(log, str(number))
        loop.cycle(stop)
        loop.cycle(stop)
    assert len(waits) >= 4
    assert waits == sorted(waits)
    assert waits[-1] > 4 * waits[0]
    now[0] += 10 * settings.backoff_cap_s
    put_hits(log, "later", "still later")
    for _ in range(3):
        loop.cycle(stop)
    assert waits[-1] < 2 * settings.backoff_s


def _changelog() -> Topic:
    return Topic("state.sizes", 1, CleanupPolicy.COMPACT)


def _limit(log: KafkaLog, topic: str) -> None:
    log._site.admin.set_topic_settings({log._site.full(topic): {"max.message.bytes": str(LIMIT)}})
