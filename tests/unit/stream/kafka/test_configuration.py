"""Checks of a broker: its version, settings and topics."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from stream.kafka.cluster import KafkaSite
from stream.kafka.configuration import check_broker
from stream.log.errors import StreamError


class _Admin:
    """A broker that names its version."""

    def broker_version(self) -> str:
        return "3.9"


def _refuse() -> dict[str, int]:
    raise StreamError("ClusterAuthorizationFailed")


def test_the_version_is_found_without_the_right_to_list_topics() -> None:
    """Without the right to list topics, the refusal is a finding, and the version is still reported."""
    site: Any = SimpleNamespace(admin=_Admin(), topics=_refuse, bootstrap="broker:9092")
    assert check_broker(cast("KafkaSite", site), []) == [
        ("crc32c", True, "in C"),
        ("kafka version", True, "3.9"),
        ("kafka broker broker:9092", False, "ClusterAuthorizationFailed"),
    ]
