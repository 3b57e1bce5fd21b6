"""The private parts of kafka-python on which the Kafka log relies: each is there, and used in one module."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

kafka = pytest.importorskip("kafka")

from kafka.consumer.fetcher import Fetcher  # noqa: E402
from kafka.coordinator.base import BaseCoordinator  # noqa: E402
from kafka.coordinator.consumer import ConsumerCoordinator  # noqa: E402

import stream.kafka  # noqa: E402

PARTS = [
    ("client", kafka.KafkaConsumer, ["_subscription", "_cluster", "_net", "_manager", "_fetcher"]),
    ("client", kafka.KafkaAdminClient, ["_manager"]),
    ("client", Fetcher, ["_next_partition_records"]),
    ("consumer", kafka.KafkaConsumer, ["_coordinator"]),
    ("consumer", BaseCoordinator, ["_join_task", "_heartbeat_enabled", "_enable_heartbeat", "_generation"]),
    ("consumer", ConsumerCoordinator, ["_on_join_complete_async"]),
    ("damage", Fetcher.PartitionRecords, ["_contains_abort_marker"]),
    ("producer", kafka.KafkaProducer, ["_transaction_manager", "_sender", "_unregister_cleanup"]),
    ("admin", kafka.KafkaAdminClient, ["_alter_group_offsets_request", "_list_group_offsets_requests"]),
]
NAMES = [(module, kind, name) for module, kind, names in PARTS for name in names]


@pytest.mark.parametrize(("module", "kind", "name"), NAMES)
def test_a_private_part_is_there_and_used_in_one_module(module: str, kind: type, name: str) -> None:
    """A kafka-python without it fails here, by its name; no second module relies on it."""
    assert hasattr(kind, name) or f"self.{name}" in inspect.getsource(kind)
    using = [path.stem for path in Path(stream.kafka.__path__[0]).glob("*.py") if _uses(path, name)]
    assert using == [module]


def _uses(path: Path, name: str) -> bool:
    return bool(re.search(rf"\.{name}\b|def {name}\b", path.read_text()))
