"""Settings of the Kafka log, and the options of kafka-python derived from them."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any, ClassVar

import msgspec

from stream.log.contract import RECORD_CAP_BYTES, CleanupPolicy, Topic
from stream.text.times import DAY_MS
from stream.text.user_errors import MissingExtra

# Room for keys, headers and framing of a record at the cap.
BATCH_CAP_BYTES = RECORD_CAP_BYTES + 512 * 1024
UNAVAILABLE_AFTER_S = 2.0  # without a group coordinator for this long, poll raises LogUnavailable
TOMBSTONES_KEPT_MS = 7 * DAY_MS  # delete.retention.ms of compacted topics
LOCAL_STATE_MAX_AGE_MS = 3 * DAY_MS  # local state untouched for longer is rebuilt; below TOMBSTONES_KEPT_MS

_SEGMENT_BYTES, _LEAST_SEGMENT_BYTES = 1024**3, 16 * 1024**2  # the broker's default; a few records at the cap


class KafkaSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Times and sizes of the Kafka log. The defaults suit one broker in the same data centre."""

    session_timeout_s: ClassVar[float] = 45.0  # a silent member's partitions go to others after this
    max_poll_interval_s: ClassVar[float] = 300.0  # a member that does not poll for this long loses its partitions
    heartbeat_s: ClassVar[float] = 0.5  # also how soon a member learns that another one joins or leaves
    transaction_timeout_s: ClassVar[float] = 30.0  # the broker aborts a transaction that is left open for this long
    commit_timeout_s: ClassVar[float] = 20.0  # a commit without an answer for this long is in doubt: LogUnavailable
    request_timeout_s: ClassVar[float] = 10.0
    connect_timeout_s: ClassVar[float] = 3.0  # of the first contact with the broker
    compression: ClassVar[str] = "zstd"  # it gives up at once on page bodies, which are zstd already
    replication_factor: Annotated[int, msgspec.Meta(ge=-1, le=32_767)] = -1
    """Replicas of new topics; -1: the broker's default."""
    client: dict[str, Any] = {}
    """Further options of kafka-python: security_protocol, ssl_cafile, sasl_mechanism."""

    def connection_options(self, bootstrap: str) -> dict[str, Any]:
        """The options of every client."""
        return {
            "bootstrap_servers": bootstrap.split(","),
            "client_id": "farmwatch",
            "bootstrap_timeout_ms": _ms(self.connect_timeout_s),
            "request_timeout_ms": _ms(self.request_timeout_s),
            "reconnect_backoff_ms": 50,
            "reconnect_backoff_max_ms": 1000,
            **self.client,
        }

    def reader_options(self, bootstrap: str) -> dict[str, Any]:
        """Options of a consumer of committed records, without a group."""
        return {
            **self.connection_options(bootstrap),
            "isolation_level": "read_committed",
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "allow_auto_create_topics": False,
            "fetch_max_wait_ms": 250,  # longest wait of an empty fetch at the broker
            "fetch_max_bytes": 4 * BATCH_CAP_BYTES,
            "max_partition_fetch_bytes": BATCH_CAP_BYTES,
            "metrics_enabled": False,
        }

    def member_options(self, bootstrap: str, group: str, member: str) -> dict[str, Any]:
        """Options of a static group member; the member itself resets offsets that the broker lacks."""
        return {
            **self.reader_options(bootstrap),
            "auto_offset_reset": "none",
            "group_id": group,
            "group_instance_id": instance_name(member),
            "session_timeout_ms": _ms(self.session_timeout_s),
            "heartbeat_interval_ms": _ms(self.heartbeat_s),
            "max_poll_interval_ms": _ms(self.max_poll_interval_s),
        }

    def producer_options(self, bootstrap: str, transactional_id: str) -> dict[str, Any]:
        """Options of an idempotent, transactional producer with large batches."""
        return {
            **self.connection_options(bootstrap),
            "transactional_id": transactional_id,
            "transaction_timeout_ms": _ms(self.transaction_timeout_s),
            "acks": "all",
            "compression_type": self.compression,
            "batch_size": 1024 * 1024,
            "linger_ms": 20,  # batches a commit's records; its flush sends at once
            "max_request_size": 2 * BATCH_CAP_BYTES,
            "max_block_ms": _ms(self.request_timeout_s),
            "delivery_timeout_ms": _ms(self.commit_timeout_s + self.request_timeout_s),
            "retry_backoff_ms": 5,  # limits transactions per second (100 ms: 14/s, 5 ms: 100/s)
            "allow_auto_create_topics": False,
            "metrics_enabled": False,
        }


def require_crc32c() -> None:
    """Raise MissingExtra without crc32c in C: kafka-python in pure Python is about 3700 times slower."""
    from kafka.record import util

    if getattr(util, "crc32c_c", None) is None:
        raise MissingExtra("crc32c is not installed; Kafka is unusably slow without its C code", extra="kafka")


def instance_name(name: str) -> str:
    """Encode `name` reversibly for static members and folders (ASCII letters, digits, ".", "_", "-")."""
    return re.sub(r"^\.|[^A-Za-z0-9.-]", lambda match: f"_{ord(match[0]):x}_", name)


def name_of(instance: str) -> str:
    """Decode `instance_name`; other names stay unchanged."""

    def character(match: re.Match[str]) -> str:
        number = int(match[1], 16)
        return match[0] if number > sys.maxunicode or 0xD800 <= number <= 0xDFFF else chr(number)  # surrogates

    return re.sub(r"_([0-9a-f]{1,6})_", character, instance)


def configs_of(topic: Topic) -> dict[str, str]:
    """The topic's settings by Kafka's names. Batches keep the producer's compression."""
    common = {"max.message.bytes": str(BATCH_CAP_BYTES), "compression.type": "producer"}
    if topic.cleanup is CleanupPolicy.COMPACT:
        return {
            **common,
            "cleanup.policy": "compact",
            "delete.retention.ms": str(TOMBSTONES_KEPT_MS),
            "segment.ms": str(DAY_MS),  # the newest segment is never compacted: roll it daily instead of weekly
            "segment.bytes": str(128 * 1024 * 1024),
            "min.cleanable.dirty.ratio": "0.2",  # bounds the excess that a restore reads
        }
    cap = topic.retention_bytes
    if cap is not None:  # the broker deletes whole segments, and never the newest
        common["segment.bytes"] = str(min(_SEGMENT_BYTES, max(_LEAST_SEGMENT_BYTES, cap // 4)))
    return {
        **common,
        "cleanup.policy": "delete",
        "retention.ms": str(-1 if topic.retention_ms is None else topic.retention_ms),
        "retention.bytes": str(-1 if topic.retention_bytes is None else topic.retention_bytes),
    }


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
