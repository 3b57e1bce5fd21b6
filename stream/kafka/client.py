"""Private parts of kafka-python that more than one module needs, each used here alone; a test names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka import errors as kafka_errors


def position_of(consumer: KafkaConsumer, at: TopicPartition) -> int | None:
    """Where the next fetch begins, transaction markers passed; None while that is not known."""
    held = consumer._subscription.assignment.get(at)
    return None if held is None or held.position is None else int(held.position.offset)


def learn_topics(consumer: KafkaConsumer) -> None:
    """Wait until the client knows where its topics lie, which takes it 100 ms and more if left to itself."""
    cluster = consumer._cluster
    patience_ms, cluster.config["retry_backoff_ms"] = cluster.config["retry_backoff_ms"], 0
    try:
        wait_for = consumer._manager.wait_for
        run_on_network(consumer, wait_for, cluster.request_update(), consumer.config["bootstrap_timeout_ms"])
    finally:
        cluster.config["retry_backoff_ms"] = patience_ms


def run_on_network(consumer: KafkaConsumer, work: Callable[..., Any], *values: Any) -> None:
    """Run a coroutine function on the consumer's network thread, and wait for its end."""
    consumer._net.run(work, *values)


def free_slot(consumer: KafkaConsumer) -> None:
    """Let go of records that have all been returned, so that a partition that flows again gets its own back.

    kafka-python 3.0 takes up parked records of a paused partition only while nothing is in the slot for parsed records.
    """
    fetcher = consumer._fetcher
    if fetcher._next_partition_records is not None and not fetcher._next_partition_records:
        fetcher._next_partition_records = None


def left_while_joining(error: kafka_errors.InconsistentGroupProtocolError) -> bool:
    """Whether the client, not the broker, raised this: a heartbeat of the generation before was refused meanwhile.

    kafka-python 3.0 then forgets the generation that it is joining, and finds that the broker's answer is of another.
    """
    return "SyncGroupResponse" in str(error)


def unpack_with(consumer: KafkaConsumer, records: type[Any]) -> None:
    """Let the consumer unpack what it fetches with this class in place of `Fetcher.PartitionRecords`."""
    consumer._fetcher.PartitionRecords = records


def broker_version(client: KafkaAdminClient) -> str:
    """The API level that the broker speaks, as a Kafka version."""
    return ".".join(str(part) for part in client._manager.broker_version)
