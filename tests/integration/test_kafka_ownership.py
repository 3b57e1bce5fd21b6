"""Who owns what on Kafka: partitions go together, and a member that lost them cannot commit."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.structs import OffsetAndMetadata

from stream.kafka.log import KafkaLog
from stream.kafka.producer import build_producer
from stream.kafka.settings import KafkaSettings, producer_options
from stream.log.contract import At, CleanupPolicy, Commit, Member, Output, StateChange, Topic
from stream.log.errors import Fenced, StreamError
from tests.support.kafka_broker import broker
from tests.support.worlds import patiently

pytestmark = pytest.mark.kafka
PATIENCE_S = 40.0
QUICK = KafkaSettings(session_timeout_s=6, heartbeat_s=0.2, max_poll_interval_s=2)


@pytest.fixture
def open_log(tmp_path: Path) -> Iterator[Callable[..., KafkaLog]]:
    """Opens logs of one prefix, each as another process would."""
    opened: list[KafkaLog] = []
    prefix = f"o{uuid.uuid4().hex[:10]}."

    def open_one(settings: KafkaSettings | None = None) -> KafkaLog:
        folder = tmp_path / str(len(opened))
        opened.append(KafkaLog(broker(), prefix=prefix, state_folder=folder, settings=settings or QUICK))
        return opened[-1]

    yield open_one
    for log in opened:
        log.close()


def owns(member: Member, count: int) -> bool:
    member.poll(0.05, 1, 1)
    return len(member.assignment()) == count


@pytest.mark.parametrize("with_offsets", [True, False], ids=["offsets", "state only"])
def test_a_member_that_slept_through_a_move_is_fenced(open_log: Callable[..., KafkaLog], with_offsets: bool) -> None:
    """A member that lost a partition while it was asleep cannot commit to it, not even state alone."""
    log, other = open_log(), open_log()
    log.create([Topic("a", 1), Topic("state.s", 1, CleanupPolicy.COMPACT)])
    log.append([Output("a", 0, b"k", b"v")])
    sleeper = log.join("g", ["a"], member="sleeper", store="s")
    patiently(lambda: bool(sleeper.poll(0.1, 10, 1000)), "the partitions", PATIENCE_S)
    awake = other.join("g", ["a"], member="awake", store="s")
    patiently(lambda: owns(awake, 1), "the partitions", PATIENCE_S)
    assert list(sleeper.assignment()) == [0], "it has not noticed yet"
    late = Commit(offsets={At("a", 0): 1} if with_offsets else {}, state={0: [StateChange(b"k", b"late")]})
    with pytest.raises(Fenced):
        sleeper.commit(late)
    awake.commit(Commit(offsets={At("a", 0): 1}, state={0: [StateChange(b"k", b"right")]}))
    assert list(log.scan_state("s", 0)) == [(b"k", b"right")]
    sleeper.rewind()
    awake.close()
    patiently(lambda: owns(sleeper, 1), "the partitions", PATIENCE_S)
    assert sleeper.state(0).get(b"k") == b"right"
    sleeper.close()


def test_a_namesake_fences_and_the_first_comes_back_when_it_is_gone(open_log: Callable[..., KafkaLog]) -> None:
    """The second live member of a name fences the first, which stays out until the name is free."""
    log, other = open_log(), open_log()
    log.create([Topic("a", 2), Topic("out", 2)])
    first = log.join("g", ["a"], member="m")
    patiently(lambda: owns(first, 2), "the partitions", PATIENCE_S)
    second = other.join("g", ["a"], member="m")
    patiently(lambda: owns(second, 2), "the partitions", PATIENCE_S)
    with pytest.raises(Fenced):
        first.commit(Commit([Output("out", 0, b"k", b"zombie")], {At("a", 0): 0}))
    with pytest.raises(Fenced):
        first.poll(0.1, 1, 1)
    second.commit(Commit([Output("out", 0, b"k", b"right")], {At("a", 0): 0}))
    assert [m.value for m in log.read("out", 0)] == [b"right"]
    second.close()

    def back() -> bool:
        try:
            return owns(first, 2)
        except Fenced:
            return False

    patiently(back, "the partitions", PATIENCE_S)
    first.commit(Commit([Output("out", 1, b"k", b"back")], {At("a", 0): 0}))
    first.close()


def test_a_late_heartbeat_while_joining_only_delays(
    open_log: Callable[..., KafkaLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A heartbeat of the generation before, refused during a join, makes the client forget the join: it joins anew."""
    log = open_log()
    log.create([Topic("a", 2)])
    member = log.join("g", ["a"], member="m")
    takes = ConsumerCoordinator._process_sync_group_response
    joins: list[int] = []

    def late(coordinator: Any, response: Any, sent_at: float) -> bytes:
        joins.append(response.error_code)
        if len(joins) == 1:
            coordinator.reset_generation(coordinator._generation.member_id)  # as kafka-python does on the refusal
        taken: bytes = takes(coordinator, response, sent_at)
        return taken

    monkeypatch.setattr(ConsumerCoordinator, "_process_sync_group_response", late)
    patiently(lambda: owns(member, 2), "the partitions", PATIENCE_S)
    assert len(joins) > 1
    member.close()


def test_what_a_dead_process_left_open_holds_nobody_up(open_log: Callable[..., KafkaLog]) -> None:
    """Offsets and records of its last transaction do not count: those before it are told, time and again."""
    log = open_log()
    log.create([Topic("in", 1)])
    log.append([Output("in", 0, b"k", b"v") for _ in range(5)])
    log.reset("g", "in", [2])
    prefix = log._site.prefix
    at, group = TopicPartition(f"{prefix}in", 0), f"{prefix}g"
    options = producer_options(KafkaSettings(transaction_timeout_s=PATIENCE_S), broker(), "dead", f"{prefix}dead")
    dying = build_producer(options)
    dying.begin_transaction()
    dying.send(at.topic, b"v", b"k", [], 0).get(timeout=30)
    dying.send_offsets_to_transaction({at: OffsetAndMetadata(4, "", -1)}, group)
    dying.kill()
    end = log.end("in")
    for _ in range(2):
        assert log.committed("g", "in") == [2]
        assert log.end("in") == end
    assert len(list(log.read("in", 0))) == 5


def test_a_topic_that_is_made_again_with_more_partitions_is_written_to(open_log: Callable[..., KafkaLog]) -> None:
    """A process that wrote to the old one meets an error of the contract at most, and then the new one."""
    log, other = open_log(), open_log()
    log.create([Topic("a", 1)])
    log.append([Output("a", 0, b"k", b"old")])
    other.remove(topics=["a"])
    patiently(lambda: "a" not in other.topics(), "the removal", PATIENCE_S)
    other.create([Topic("a", 3)])

    def appended() -> bool:
        try:
            log.append([Output("a", 2, b"k", b"new")])
        except StreamError:
            return False
        return True

    patiently(appended, "the new partitions", PATIENCE_S)
    assert [message.value for message in other.read("a", 2)] == [b"new"]
