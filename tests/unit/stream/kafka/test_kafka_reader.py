"""The reader of committed records, without a broker: what it leaves behind when it cannot begin."""

from __future__ import annotations

from typing import Any

import pytest

from stream.log.errors import LogUnavailable

kafka = pytest.importorskip("kafka")


class _Consumer:
    """A client that can do everything but learn where its topics lie."""

    closed = 0

    def __init__(self, options: Any) -> None:
        self.options = options

    def assign(self, partitions: Any) -> None:
        """Nothing is to be done."""

    def seek(self, partition: Any, offset: int) -> None:
        """Nothing is to be done."""

    def learn_topics(self) -> None:
        raise kafka.errors.KafkaTimeoutError("no answer")

    def close(self, *, autocommit: bool) -> None:
        assert autocommit is False
        _Consumer.closed += 1


def test_a_reader_that_cannot_begin_leaves_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the broker does not tell where the topics lie, the error is typed, and the client is closed."""
    from stream.kafka import reader as kafka_reader

    monkeypatch.setattr(_Consumer, "closed", 0)
    monkeypatch.setattr(kafka_reader, "Consumer", _Consumer)
    records = kafka_reader.read_all({}, {kafka.TopicPartition("t", 0): (0, 1)}, 1.0)
    with pytest.raises(LogUnavailable, match="no answer"):
        next(records)
    assert _Consumer.closed == 1
