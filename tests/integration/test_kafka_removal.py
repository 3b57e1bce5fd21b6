"""Removal on Kafka: local copies of state, other stores and groups, and topics whose beginning moved."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import NewTopic

from stream.kafka.log import KafkaLog
from stream.log.contract import CleanupPolicy, Commit, StateChange, Topic
from stream.schema.control import Control, exclusive
from stream.schema.runs import Alias, Run
from stream.schema.topics import CONTROL
from tests.support.kafka_broker import broker
from tests.support.worlds import record, settle

pytestmark = pytest.mark.kafka


@pytest.fixture
def log(tmp_path: Path) -> Iterator[KafkaLog]:
    made = KafkaLog(broker(), prefix=f"d{uuid.uuid4().hex[:10]}.", state_folder=tmp_path)
    yield made
    made.close()


def test_local_state_of_a_removed_store_is_deleted(log: KafkaLog, tmp_path: Path) -> None:
    """The files of the store are gone, whichever member had them; those of other groups and stores stay."""
    log.create([Topic("in", 1), *(Topic(f"state.{store}", 1, CleanupPolicy.COMPACT) for store in ("tally", "tally.a"))])
    for group, store in (("tally", "tally"), ("tally.a", "tally.a")):
        for name in ("tally.1@host", "tally.2@host"):
            member = log.join(group, ["in"], member=name, store=store)
            settle([member], 1)
            member.commit(Commit(state={0: [StateChange(b"k", name.encode())]}))
            member.close()
    assert len(list(tmp_path.rglob("*.sqlite"))) == 4
    log.remove(groups=["tally.a"], stores=["tally.a"])
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.sqlite")}
    assert len(left) == 2
    assert all(path.startswith(f"{log._site.prefix}tally/") for path in left)
    assert [folder.name for folder in tmp_path.iterdir()] == [f"{log._site.prefix}tally"]
    assert dict(log.scan_state("tally", 0)) == {b"k": b"tally.2@host"}


def test_bytes_freed_are_those_on_disk(log: KafkaLog) -> None:
    """remove() tells what sizes() told: bytes of one replica, of the changelog too."""
    log.create([Topic("in", 2), Topic("state.s", 2, CleanupPolicy.COMPACT)])
    log.append([record("in", 0, "k", bytes(range(256)) * 100)])
    sizes = log.sizes(["in", "state.s"])
    assert sizes["in"].bytes > 0
    assert log.remove(["in"], stores=["s"]) == sum(size.bytes for size in sizes.values())


def test_control_is_read_though_its_beginning_moved(log: KafkaLog) -> None:
    """Who had read nothing, and who had read what is gone by now, take in all that is there."""
    name = log._site.full(CONTROL)
    admin = KafkaAdminClient(bootstrap_servers=broker())
    admin.create_topics([NewTopic(name, 1, 1, topic_configs={"cleanup.policy": "compact,delete"})])
    log.create([Topic(CONTROL, 1, CleanupPolicy.COMPACT)])
    early = Control(log)
    for number in range(4):
        with exclusive(log) as writer:
            writer.put(Alias(run=f"r{number}"), Run(name="a", ruleset="r", digest="d", detector="x", epoch="e"))
    middle = log.end(CONTROL)[0]
    with exclusive(log) as writer:
        writer.put(Alias(run="last"))
    admin.delete_records({TopicPartition(name, 0): middle})
    admin.close()
    assert log.beginning(CONTROL) == [middle]
    assert early.refresh()
    assert early.alias.run == Control(log).alias.run == "last"
    assert not early.refresh()
