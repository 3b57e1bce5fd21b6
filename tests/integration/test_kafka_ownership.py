"""Ownership on Kafka: a member owns the same partitions of all topics, and cannot commit lost ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.structs import OffsetAndMetadata

from stream.kafka.client import build_producer
from stream.kafka.settings import KafkaSettings
from stream.log.contract import At, Commit, StateChange
from stream.log.errors import Fenced
from tests.support.kafka_broker import broker
from tests.support.limits import with_limits
from tests.support.waiting import wait_until
from tests.support.worlds import KafkaWorld, record, settle, values

pytestmark = pytest.mark.kafka
QUICK = with_limits(KafkaSettings(), session_timeout_s=6, heartbeat_s=0.2, max_poll_interval_s=2)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[KafkaWorld]:
    with closing(KafkaWorld(tmp_path, QUICK)) as made:
        yield made


@pytest.mark.parametrize("with_offsets", [True, False], ids=["offsets", "state only"])
def test_a_member_that_slept_through_a_move_is_fenced(world: KafkaWorld, with_offsets: bool) -> None:
    """A member that lost a partition while it was asleep cannot commit to it, not even state alone."""
    world.topics("a", partitions=1, store="s")
    world.log.append([record("a", 0, "k")])
    sleeper = world.owner(1, "a", name="sleeper", store="s")
    awake = world.owner(1, "a", name="awake", store="s", log=world.again())
    assert list(sleeper.assignment()) == [0], "it has not noticed yet"
    late = Commit(offsets={At("a", 0): 1} if with_offsets else {}, state={0: [StateChange(b"k", b"late")]})
    with pytest.raises(Fenced):
        sleeper.commit(late)
    awake.commit(Commit(offsets={At("a", 0): 1}, state={0: [StateChange(b"k", b"right")]}))
    assert list(world.log.scan_state("s", 0)) == [(b"k", b"right")]
    sleeper.rewind()
    awake.close()
    settle([sleeper], 1)
    assert sleeper.state(0).get(b"k") == b"right"


def test_a_namesake_fences_and_the_first_comes_back_when_it_is_gone(world: KafkaWorld) -> None:
    """A second live member of a name fences the first, which stays out until the name is free."""
    world.topics("a", "out")
    first = world.owner(2, "a")
    second = world.owner(2, "a", log=world.again())
    with pytest.raises(Fenced):
        first.commit(Commit([record("out", 0, "k", "zombie")], {At("a", 0): 0}))
    with pytest.raises(Fenced):
        first.poll(0.1, 1, 1)
    second.commit(Commit([record("out", 0, "k", "right")], {At("a", 0): 0}))
    assert values(world.log.read("out", 0)) == ["right"]
    second.close()

    def back() -> bool:
        try:
            first.poll(0.05, 1, 1)
        except Fenced:
            return False
        return len(first.assignment()) == 2

    wait_until(back, "the partitions")
    first.commit(Commit([record("out", 1, "k", "back")], {At("a", 0): 0}))


def test_a_late_heartbeat_while_joining_only_delays(world: KafkaWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a heartbeat of the earlier generation is refused during a join, the client joins again."""
    world.topics("a")
    takes = ConsumerCoordinator._process_sync_group_response
    joins: list[int] = []

    def late(coordinator: Any, response: Any, sent_at: float) -> bytes:
        joins.append(response.error_code)
        if len(joins) == 1:
            coordinator.reset_generation(coordinator._generation.member_id)  # as kafka-python does on the refusal
        taken: bytes = takes(coordinator, response, sent_at)
        return taken

    monkeypatch.setattr(ConsumerCoordinator, "_process_sync_group_response", late)
    world.owner(2, "a")
    assert len(joins) > 1


def test_what_a_dead_process_left_open_holds_nobody_up(world: KafkaWorld) -> None:
    """Polls return the records before a dead process's open transaction; its offsets and records do not count."""
    log, prefix = world.log, world.prefix
    world.topics("in", partitions=1)
    log.append([record("in", 0, "k") for _ in range(5)])
    log.reset("g", "in", [2])
    at, group = TopicPartition(f"{prefix}in", 0), f"{prefix}g"
    options = with_limits(KafkaSettings(), transaction_timeout_s=40).producer_options(broker(), f"{prefix}dead")
    dying = build_producer(options)
    dying.begin_transaction()
    dying.send(at.topic, b"v", b"k", [], 0).get(timeout=30)
    dying.send_offsets_to_transaction({at: OffsetAndMetadata(4, "", -1)}, group)
    dying.kill()
    end = log.end("in")
    for _ in range(2):
        assert log.committed("g", "in") == [2]
        assert log.end("in") == end
        assert log.in_flight("in") == [True]
    assert len(list(log.read("in", 0))) == 5
