"""Dead letters that are retried: processed once by the stage that failed, in order, and by no other, on both logs."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from replay.rows.dead_letters import MAX_RETRIES, LetterState, Settled, read_letters, settle
from stream.log.contract import Output
from stream.processing.loop import StageLoop
from stream.processing.stage import Context
from stream.schema.records import Decision, Hit, Record
from stream.schema.runs import Alias, Run
from stream.schema.topics import CONTROL, DEAD_LETTERS, FEATURES, HITS, RETRIES
from tests.support.logs.loops import Copying, decisions, loop_on, put_hits
from tests.support.runs.replay_world import put_rows
from tests.support.waiting import wait_until
from tests.support.worlds import World, on_embedded

READERS = ("crawl", "tally")  # stages that read hits


class Reading(Copying):
    """Copies hits to `out.NAME`; fails on the ids in `broken`."""

    inputs: Mapping[str, type[Record]] = {HITS: Hit}

    def __init__(self, name: str, *broken: str) -> None:
        self.name = name  # type: ignore[misc]
        self.broken = set(broken)

    def process(self, record: Hit, prepared: Any, ctx: Context) -> None:
        if record.id in self.broken:
            raise ValueError(f"no {record.id}")
        ctx.emit(f"out.{self.name}", Decision(id=record.id, site=record.site, stop=False, reason=""))


@pytest.fixture
def world(world: World) -> World:
    """A log of one partition."""
    world.topics(HITS, DEAD_LETTERS, RETRIES, CONTROL, *(f"out.{name}" for name in READERS), partitions=1)
    return world


def begin(world: World, stage: Reading) -> StageLoop:
    log = world.again()
    return loop_on(log, stage, member=log.join(stage.name, [HITS, RETRIES], member=stage.name))


def work(world: World, *loops: StageLoop) -> None:
    """Cycle until nothing is left to read."""
    stop = threading.Event()

    def done() -> bool:
        for loop in loops:
            loop.cycle(stop)
        ends = {topic: world.log.end(topic)[0] for topic in (HITS, RETRIES)}
        committed = {name: [world.log.committed(name, topic)[0] or 0 for topic in ends] for name in READERS}
        return all(offsets == list(ends.values()) for offsets in committed.values())

    wait_until(done, "both stages to read all")


def made(world: World, name: str) -> list[str]:
    return [decision.id for decision in decisions(world.log, [0], f"out.{name}")]


def states(world: World) -> list[str]:
    return [stored.state for stored in read_letters(world.log)]


def retry(world: World, **options: Any) -> Settled:
    return settle(world.log, lambda stored: stored.state is LetterState.OPEN, retry=True, **options)


def test_a_retried_record_is_processed_once_by_the_stage_that_failed(world: World) -> None:
    """The stage reads its retries in their order while it runs; the other reader of the topic gets each record once."""
    crawl, tally = Reading("crawl", "b", "d"), Reading("tally")
    loops = [begin(world, crawl), begin(world, tally)]
    put_hits(world.log, "a", "b", "c", "d", topic=HITS)
    work(world, *loops)
    assert (made(world, "crawl"), states(world)) == (["a", "c"], ["open", "open"])
    crawl.broken.clear()
    assert retry(world, dry_run=True).count == 2 and states(world) == ["open", "open"]
    assert retry(world).settled == Counter({("crawl", "ValueError"): 2})
    assert states(world) == ["waiting", "waiting"]
    assert retry(world).count == 0  # settled letters are not retried twice
    put_hits(world.log, "e", topic=HITS)
    work(world, *loops)
    assert sorted(made(world, "crawl")) == ["a", "b", "c", "d", "e"]
    assert [name for name in made(world, "crawl") if name in "bd"] == ["b", "d"]
    assert made(world, "tally") == ["a", "b", "c", "d", "e"]
    assert states(world) == ["retried", "retried"]


@on_embedded
def test_a_record_that_keeps_failing_is_refused_after_three_retries(world: World) -> None:
    """Each failed retry is a new letter with the record's own origin and one more retry; `again` goes on."""
    loops = [begin(world, Reading("crawl", "b")), begin(world, Reading("tally"))]
    put_hits(world.log, "a", "b", topic=HITS)
    work(world, *loops)
    for _ in range(MAX_RETRIES):
        assert retry(world).count == 1
        work(world, *loops)
    first, *_, newest = (stored.letter for stored in read_letters(world.log))
    assert (newest.topic, newest.offset, newest.retries) == (HITS, first.offset, 3)
    refused = retry(world)
    assert refused.count == 0 and len(refused.refused) == 1
    assert retry(world, again=True).count == 1


@on_embedded
def test_a_dropped_letter_is_settled_and_stays(world: World) -> None:
    """Dropping changes its state alone; no stage reads it, and `again` can still retry it."""
    loops = [begin(world, Reading("crawl", "b")), begin(world, Reading("tally"))]
    put_hits(world.log, "b", topic=HITS)
    work(world, *loops)
    assert settle(world.log, lambda _: True, retry=False).count == 1
    work(world, *loops)
    assert (states(world), made(world, "crawl")) == (["dropped"], [])
    assert list(settle(world.log, lambda _: True, retry=True).refused) == ["already dropped"]
    assert settle(world.log, lambda _: True, retry=True, again=True).count == 1


@on_embedded
def test_a_letter_of_a_run_that_is_not_live_is_refused(world: World) -> None:
    """No stage would read its retry: the refusal names the run."""
    world.topics(FEATURES, partitions=1)
    headers = {"origin-topic": FEATURES, "origin-partition": "0", "origin-offset": "0"}
    headers |= {"stage": "judge", "error": "ValueError: x", "attempts": "1"}
    letters = [Output(DEAD_LETTERS, 0, b"s", b"x", {**headers, "run": run}) for run in ("live", "r1")]
    world.log.append(letters)
    assert list(retry(world).refused) == ["of judge of the run r1, which is not live: no stage would read the retry"]
    run = Run(name="r1", ruleset="default", digest="d", detector="x/1", epoch="e")
    put_rows(world.log, run, Alias(run="r1", before="live", number=1))
    assert retry(world).count == 1


@on_embedded
def test_an_unreadable_record_is_retried_as_its_topic_has_it_now(world: World) -> None:
    """A letter of a damaged record has no content: the retry takes the record from its topic, or is refused."""
    loops = [begin(world, Reading("crawl")), begin(world, Reading("tally"))]
    put_hits(world.log, "a", topic=HITS)
    place = {"origin-topic": HITS, "origin-partition": "0"} | {"stage": "crawl", "error": "BadRecord: gone"}
    (there,) = (str(message.offset) for message in world.log.read(HITS, 0))
    for offset in (there, "77"):
        world.log.append([Output(DEAD_LETTERS, 0, b"", b"", {**place, "origin-offset": offset, "attempts": "1"})])
    found = retry(world)
    assert found.count == 1
    assert list(found.refused) == ["the record on hits is unreadable: restore it first (docs/how-to/recover.md)"]
    work(world, *loops)
    assert made(world, "crawl") == ["a", "a"]
