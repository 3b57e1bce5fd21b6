"""Errors of the broker that pass are asked away; others are raised."""

from __future__ import annotations

from typing import ClassVar

import pytest
from kafka import errors as kafka_errors

from stream.kafka import admin
from stream.log.errors import LogUnavailable


class _Client:
    """Raises the next of `raised` at each question, then answers."""

    raised: ClassVar[list[Exception]] = []

    def __init__(self, **_: object) -> None:
        pass

    def broker_version(self) -> str:
        if self.raised:
            raise self.raised.pop(0)
        return "4.3.1"

    def close(self) -> None:
        pass


def test_a_partition_without_a_leader_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a leader is elected, kafka-python looks for the broker -1, and does not mark that error as retriable."""
    monkeypatch.setattr(admin, "AdminClient", _Client)
    _Client.raised = [kafka_errors.UnknownBrokerIdError("-1")] * 3
    assert admin.KafkaAdmin({}, patience_s=60).broker_version() == "4.3.1"
    _Client.raised = [kafka_errors.UnknownBrokerIdError("-1")] * 2
    with pytest.raises(LogUnavailable):
        admin.KafkaAdmin({}, patience_s=-1).broker_version()
