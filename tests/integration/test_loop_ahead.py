"""The loop with two batches in flight: concurrency, order of commits, and dropped batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from stream.log.contract import Commit, Log, Message, Topic
from stream.log.errors import Fenced, LogUnavailable
from stream.memory.log import MemoryLog
from stream.processing.batch import InFlightBatch
from stream.processing.loop import LoopSettings
from stream.processing.stage import Context
from stream.schema.records import Hit, Record
from tests.support.limits import with_limits
from tests.support.logs.loops import Ahead, Around, Transient, cycle, decisions, letters, loop_on, put_hits, refusing
from tests.support.waiting import wait_until
from tests.support.worlds import World

PARTITIONS = 2


class Fatal(Exception):
    """A permanent error that concerns no single record."""

    fatal = True


@pytest.fixture
def memory() -> MemoryLog:
    log = MemoryLog()
    log.create([Topic(name, PARTITIONS) for name in ("in", "out", "dead-letters")])
    return log


def put(log: Log, count: int, partition: int = 0, first: int = 0) -> None:
    put_hits(log, *ids(*range(first, first + count)), partition=partition)


def out(log: Log) -> list[str]:
    return [decision.id for decision in decisions(log)]


def ids(*numbers: int) -> list[str]:
    return [str(number) for number in numbers]


def beside_the_next(stage: Ahead, batch: Sequence[str]) -> None:
    """A gate: the first batch waits until the second one begins."""
    if "0" in batch:
        wait_until(lambda: len(stage.begun) > 1, "the second batch to begin")


def behind_the_next(stage: Ahead, batch: Sequence[str]) -> None:
    """A gate: the first batch ends last."""
    if "0" in batch:
        wait_until(lambda: len(stage.begun) > 1 and stage.running == 1, "the second batch to end")


def test_the_next_batch_begins_while_one_is_worked_on(memory: MemoryLog) -> None:
    """Two batches are in flight at once and never a third; each record is committed once."""
    put(memory, 12)

    def gate(stage: Ahead, batch: Sequence[str]) -> None:
        beside_the_next(stage, batch)
        time.sleep(0.05)

    stage = Ahead(gate)
    cycle(loop_on(memory, stage))
    assert stage.most == 2
    assert out(memory) == ids(*range(12))


def test_batches_are_committed_in_the_order_of_reading(memory: MemoryLog) -> None:
    """A second batch that is ready first waits for the first; offsets of commits only grow."""
    put(memory, 6)
    member = memory.join("group", ["in"], member="one")
    offsets: list[int] = []

    def commit(commit: Commit) -> None:
        offsets.extend(commit.offsets.values())
        member.commit(commit)

    stage = Ahead(behind_the_next)
    cycle(loop_on(memory, stage, member=Around(member, commit=commit)))
    assert offsets == [2, 4, 6]
    assert out(memory) == ids(*range(6))


def test_a_stage_that_does_not_ask_has_one_batch_in_flight(memory: MemoryLog) -> None:
    """With ahead = 1, nothing is read while a batch is processed."""
    put(memory, 6)
    stage = Ahead(lambda *_: time.sleep(0.05))
    stage.ahead = 1
    cycle(loop_on(memory, stage))
    assert stage.most == 1
    assert out(memory) == ids(*range(6))


@pytest.mark.parametrize("fault", [Transient("comes back"), Fenced("moved"), LogUnavailable("away")])
def test_a_rollback_of_the_first_drops_the_second(memory: MemoryLog, fault: Exception) -> None:
    """If the slow work of the first batch fails, neither batch is committed and both are read again, once."""
    put(memory, 4)
    faults = [fault]
    seen: list[list[str]] = []

    def gate(stage: Ahead, batch: Sequence[str]) -> None:
        if faults:
            behind_the_next(stage, batch)
            if "0" in batch:
                raise faults.pop()

    stage = Ahead(gate)
    loop = loop_on(memory, stage)
    stop = threading.Event()
    assert loop.cycle(stop) is False
    seen.append(out(memory))
    assert memory.committed("group", "in") == [None, None]
    assert stage.dropped, "the stage was told to drop what it cached"
    cycle(loop, 6)
    assert seen == [[]]
    assert stage.begun == [ids(0, 1), ids(2, 3), ids(0, 1), ids(2, 3)]
    assert out(memory) == ids(0, 1, 2, 3)


def test_a_failed_commit_of_the_first_drops_the_second(memory: MemoryLog) -> None:
    """If the commit of the first batch is refused, the second is not committed, because it would leave a gap."""
    put(memory, 4)
    member = memory.join("group", ["in"], member="one")
    stage = Ahead(beside_the_next)
    cycle(loop_on(memory, stage, member=refusing(member, LogUnavailable("the disk is full"))))
    assert stage.begun == [ids(0, 1), ids(2, 3)] * 2
    assert out(memory) == ids(0, 1, 2, 3)


def test_a_fault_of_the_second_leaves_the_first_committed(memory: MemoryLog) -> None:
    """If the second batch fails, the first is committed, and only the second is read again."""
    put(memory, 4)
    faults = [Transient("comes back")]

    def gate(stage: Ahead, batch: Sequence[str]) -> None:
        beside_the_next(stage, batch)
        if "2" in batch and faults:
            raise faults.pop()

    stage = Ahead(gate)
    cycle(loop_on(memory, stage))
    assert stage.begun == [ids(0, 1), ids(2, 3), ids(2, 3)]
    assert out(memory) == ids(0, 1, 2, 3)


def test_a_fatal_fault_ends_the_run_and_buries_nothing(memory: MemoryLog) -> None:
    """After a fatal error the loop ends without dead letters or commits, and the next process reads all again."""
    put(memory, 4)

    def gate(_stage: Ahead, _batch: Sequence[str]) -> None:
        raise Fatal("the card is gone")

    with pytest.raises(Fatal):
        loop_on(memory, Ahead(gate)).run(threading.Event())
    assert memory.committed("group", "in") == [None, None]
    assert letters(memory) == []


@pytest.mark.parametrize("in_time", [True, False])
def test_stop_drains_both_batches_in_flight_and_reads_no_more(memory: MemoryLog, in_time: bool) -> None:
    """Both are committed within one drain limit, or neither; no third begins; the loop leaves and closes the stage."""
    put(memory, 8)
    release, stop = threading.Event(), threading.Event()
    stage = Ahead(lambda *_: release.wait(20))
    settings = with_limits(LoopSettings(), linger_s=0.0, drain_s=10.0 if in_time else 0.2)
    thread = threading.Thread(target=loop_on(memory, stage, settings=settings).run, args=(stop,))
    thread.start()
    wait_until(lambda: stage.running == 2, "two batches in flight")
    stop.set()
    if in_time:
        release.set()
    thread.join(20)
    release.set()
    assert not thread.is_alive()
    assert out(memory) == (ids(0, 1, 2, 3) if in_time else [])
    assert memory.committed("group", "in")[0] == (4 if in_time else None)
    assert len(stage.begun) == 2
    assert (stage.closed, memory.members("group")) == (True, [])


def test_a_crash_with_two_in_flight_costs_no_record_and_doubles_none(memory: MemoryLog) -> None:
    """If the process dies between the two commits, its successor repeats only the uncommitted batch."""
    put(memory, 8)
    dead = loop_on(memory, Ahead(beside_the_next))
    dead.cycle(threading.Event())  # one committed, one in flight; then the loop is not called again
    assert out(memory) == ids(0, 1)
    again = Ahead()
    cycle(loop_on(memory, again))
    assert out(memory) == ids(*range(8))
    assert again.begun[0] == ids(2, 3)


def test_partitions_lost_in_between_are_left_to_the_new_owner(world: World) -> None:
    """If a member joins while two batches are in flight, each record is committed once, by either member."""
    world.topics("in", "out", "dead-letters", partitions=PARTITIONS)
    appended = 0  # to each partition; records remain until both have taken part

    def append(count: int) -> None:
        nonlocal appended
        for partition in range(PARTITIONS):
            put(world.log, count, partition, first=1000 * partition + appended)
        appended += count

    append(10)
    first, second = Ahead(lambda *_: time.sleep(0.02)), Ahead(lambda *_: time.sleep(0.02))
    loops = [loop_on(world.log, first, member=world.join("in", name="one"))]
    stop = threading.Event()

    def some() -> bool:
        loops[0].cycle(stop)
        return len(out(world.log)) >= 2

    wait_until(some, "the first commits")
    loops.append(loop_on(world.log, second, member=world.join("in", name="two", log=world.again())))

    def done() -> bool:
        for loop in loops:
            loop.cycle(stop)
        left = PARTITIONS * appended - len(out(world.log))
        if not second.begun and left <= 4 * PARTITIONS:
            append(4)
            return False
        return left == 0

    wait_until(done, "all records")
    for loop in loops:
        cycle(loop, 3)
    assert sorted(out(world.log), key=int) == ids(*range(appended), *range(1000, 1000 + appended))
    assert second.begun, "the second member had a part in it"


def test_records_of_a_partition_that_came_back_are_left_out() -> None:
    """Its batch is dropped, because its epoch is new; the batches of other partitions stay."""
    work: Future[dict[int, Any]] = Future()
    work.set_result({0: "of 0", 1: "of 1", 2: "of 0 again", 3: "of 1 again"})
    messages = [Message("in", n % 2, n // 2, b"k", b"v", {}, 0) for n in range(4)]
    flight = InFlightBatch(messages, [7, 7, 7, 7], work, 0.0)
    assert flight.still_owned({0: 8, 1: 7}) == ([messages[1], messages[3]], {0: "of 1", 1: "of 1 again"})
    assert flight.still_owned({1: 7}) == ([messages[1], messages[3]], {0: "of 1", 1: "of 1 again"})
    assert flight.still_owned({0: 7, 1: 7})[0] == messages


@pytest.mark.parametrize(
    ("moves", "starting", "healthy"), [(True, False, True), (False, True, True), (False, False, False)]
)
def test_a_long_batch_is_distinguished_from_one_that_stands_still(
    memory: MemoryLog, moves: bool, starting: bool, healthy: bool
) -> None:
    """Beyond the watchdog's limit, a batch is healthy while the stage reports progress or loading."""
    put(memory, 1)
    now, looks, release = [0.0], [0], threading.Event()
    seen: list[bool] = []

    class Long(Ahead):
        def advanced(self) -> int:
            seen.append(loop.health().ok)
            looks[0] += 1
            now[0] += 50.0
            if looks[0] == 8:
                release.set()
            return looks[0] if moves else 0

        def starting(self) -> bool:
            return starting

    stage = Long(lambda *_: release.wait(20))
    loop = loop_on(
        memory, stage, settings=with_limits(LoopSettings(), linger_s=0.0, watchdog_s=120.0), monotonic=lambda: now[0]
    )
    assert loop.cycle(threading.Event())
    assert all(seen) is healthy
    assert loop.health().ok, "it was committed"


def test_a_stage_that_loads_again_is_not_ready_meanwhile(memory: MemoryLog) -> None:
    """Readiness follows the stage during a batch, not only between batches."""
    put(memory, 1)
    release = threading.Event()
    seen: list[bool] = []

    class Reloading(Ahead):
        works = True

        def ready(self) -> bool:
            return self.works

        def advanced(self) -> int:
            seen.append(loop.health().ready)
            self.works = len(seen) > 2
            if len(seen) == 5:
                release.set()
            return 0

    loop = loop_on(memory, Reloading(lambda *_: release.wait(20)))
    loop.cycle(threading.Event())
    assert seen[:5] == [True, False, False, True, True]


def test_a_batch_of_the_background_is_not_waited_with(memory: MemoryLog) -> None:
    """A background batch is not filled by further polls, which would only add background records."""

    class Both(Ahead):
        inputs: Mapping[str, type[Record]] = {"in": Hit, "out": Hit}
        background = ("out",)

        def process(self, record: Hit, prepared: Any, ctx: Context) -> None:
            pass

    member = memory.join("group", ["in", "out"], member="one", background=["out"])
    left = [0, 1]

    def later() -> None:
        put_hits(memory, *[str(left.pop(0))] if left else [], topic="out")

    def poll(*limits: Any) -> list[Message]:
        found = list(member.poll(*limits))
        if found:
            later()
        return found

    later()
    stage = Both()
    cycle(
        loop_on(memory, stage, settings=with_limits(LoopSettings(), linger_s=0.5), member=Around(member, poll=poll)), 4
    )
    assert stage.begun == [ids(0), ids(1)]
