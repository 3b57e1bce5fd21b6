"""Checks of a broker by its version, settings and topics."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from stream.kafka.cluster import KafkaSite
from stream.kafka.configuration import check_broker
from stream.kafka.settings import KafkaSettings
from stream.log.errors import StreamError


class _Admin:
    """A broker that refuses to describe its settings."""

    def broker_version(self) -> str:
        return "3.9"

    def broker_settings(self) -> dict[str, str]:
        raise StreamError("ClusterAuthorizationFailed")


def test_the_version_is_found_without_the_right_to_describe_settings() -> None:
    """The refusal is a finding beside the version, which needs no right."""
    site: Any = SimpleNamespace(admin=_Admin(), settings=KafkaSettings(), bootstrap="broker:9092")
    assert check_broker(cast("KafkaSite", site), []) == [
        ("crc32c", True, "in C"),
        ("kafka version", True, "3.9"),
        ("kafka broker broker:9092", False, "ClusterAuthorizationFailed"),
    ]
