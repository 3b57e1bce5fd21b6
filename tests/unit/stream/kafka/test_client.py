"""The clients of kafka-python: private parts that the Kafka log uses, names, and a reader that cannot begin."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

kafka = pytest.importorskip("kafka")

from kafka.consumer.fetcher import Fetcher  # noqa: E402
from kafka.coordinator.base import BaseCoordinator  # noqa: E402
from kafka.coordinator.consumer import ConsumerCoordinator  # noqa: E402
from kafka.protocol.consumer import OffsetCommitRequest  # noqa: E402

import stream.kafka  # noqa: E402
from stream.kafka import reader as kafka_reader  # noqa: E402
from stream.kafka.settings import instance_name, name_of  # noqa: E402
from stream.log.errors import LogUnavailable  # noqa: E402

PARTS = [
    (kafka.KafkaConsumer, ["_subscription", "_cluster", "_net", "_manager", "_fetcher", "_coordinator"]),
    (kafka.KafkaAdminClient, ["_manager", "_alter_group_offsets_request", "_list_group_offsets_requests"]),
    (kafka.KafkaProducer, ["_transaction_manager", "_sender", "_unregister_cleanup", "_closed"]),
    (OffsetCommitRequest, ["_max_version"]),
    (Fetcher, ["_next_partition_records"]),
    (Fetcher.PartitionRecords, ["_contains_abort_marker"]),
    (BaseCoordinator, ["_join_task", "_heartbeat_enabled", "_enable_heartbeat", "_generation", "_lock"]),
    (ConsumerCoordinator, ["_on_join_complete_async"]),
]
NAMES = [(kind, name) for kind, names in PARTS for name in names]


@pytest.mark.parametrize(("kind", "name"), NAMES)
def test_a_private_part_is_there(kind: type, name: str) -> None:
    """This test fails by name if a kafka-python lacks a private part."""
    assert hasattr(kind, name) or f"self.{name}" in inspect.getsource(kind)


def test_private_parts_are_used_in_one_module() -> None:
    """The client module uses the listed private parts and its own; other modules use none."""
    texts = {path.stem: path.read_text() for path in Path(stream.kafka.__path__[0]).glob("*.py")}
    client = texts.pop("client")
    used = set(re.findall(r"\.(_[a-z]\w*)", client))
    own = set(re.findall(r"(?:self\.|def )(_[a-z]\w*)(?:\(| =|: )", client))
    assert used - own <= {name for _, name in NAMES} <= used | own
    assert {module: re.findall(r"(?<!self)\._[a-z]\w*", text) for module, text in texts.items()} == {
        module: [] for module in texts
    }


class _Consumer:
    """A client that can do everything except fetch the metadata of topics."""

    closed = 0

    def __init__(self, options: Any) -> None:
        self.options = options

    def assign(self, partitions: Any) -> None:
        """Do nothing."""

    def seek(self, partition: Any, offset: int) -> None:
        """Do nothing."""

    def learn_topics(self) -> None:
        raise kafka.errors.KafkaTimeoutError("no answer")

    def close(self, *, autocommit: bool) -> None:
        assert autocommit is False
        _Consumer.closed += 1


def test_a_reader_that_cannot_begin_leaves_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the broker does not return the metadata of topics, the error is typed, and the client is closed."""
    monkeypatch.setattr(_Consumer, "closed", 0)
    monkeypatch.setattr(kafka_reader, "Consumer", _Consumer)
    records = kafka_reader.read_all({}, {kafka.TopicPartition("t", 0): (0, 1)}, 1.0)
    with pytest.raises(LogUnavailable, match="no answer"):
        next(records)
    assert _Consumer.closed == 1


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_name_reads_back(name: str) -> None:
    """Every name survives a round trip."""
    assert name_of(instance_name(name)) == name


@pytest.mark.parametrize("name", ["x_fffffff_", "x_110000_", "_ffffffffffffffffffff_", "_d800_", "__", "a_b", "_xyz_"])
def test_a_name_that_is_not_ours_stays_as_it_is(name: str) -> None:
    """Any client may join a group: no member name is an error, and all are printable."""
    assert name_of(name) == name
