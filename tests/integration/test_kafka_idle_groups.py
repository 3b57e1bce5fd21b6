"""Offsets of groups that nobody is in, on Kafka: those that were set outlive the broker's patience."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

from stream.kafka.admin import _Client
from stream.kafka.log import KafkaLog
from stream.log.contract import At, Commit, Output, Topic
from stream.log.idle_groups import renew_offsets
from tests.support.kafka_broker import Broker
from tests.support.worlds import settle

pytestmark = pytest.mark.kafka
YEAR_MS = 365 * 86_400_000


def test_offsets_that_are_set_name_a_time_of_their_own() -> None:
    """The request keeps them for years, in the last version that can say so."""
    at = TopicPartition("in", 0)
    request = _Client._alter_group_offsets_request("g", {at: OffsetAndMetadata(7, "", -1)})
    assert request.retention_time_ms > YEAR_MS
    assert request._max_version == 4
    (topic,) = request.topics
    assert (topic.name, topic.partitions[0].partition_index, topic.partitions[0].committed_offset) == ("in", 0, 7)


@pytest.mark.skipif(
    not os.environ.get("FARMWATCH_LONG"), reason="a minute is the least time for which offsets are kept"
)
def test_offsets_that_are_set_outlive_those_that_members_left(tmp_path: Path) -> None:
    """On a broker that forgets after a minute: what a member left is forgotten, what was set or renewed stays."""
    broker = Broker("offsets.retention.minutes=1", "offsets.retention.check.interval.ms=1000")
    try:
        log = KafkaLog(broker.start().address, state_folder=tmp_path)
        log.create([Topic("in", 1)])
        log.append([Output("in", 0, b"k", b"v")])
        for group in ("left", "renewed"):
            member = log.join(group, ["in"], member="m")
            settle([member], 1)
            member.commit(Commit(offsets={At("in", 0): 1}))
            member.close()
        log.reset("set", "in", [1])
        assert renew_offsets(log, "renewed", ["in"])
        deadline = time.monotonic() + 120
        while log.committed("left", "in") != [None]:
            assert time.monotonic() < deadline
            time.sleep(1)
        time.sleep(5)
        assert [log.committed(group, "in") for group in ("set", "renewed")] == [[1], [1]]
        log.close()
    finally:
        broker.close()
