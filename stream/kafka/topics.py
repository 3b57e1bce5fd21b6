"""How a topic of the contract is configured on Kafka."""

from __future__ import annotations

from stream.kafka.settings import BATCH_CAP_BYTES, KafkaSettings
from stream.log.contract import CleanupPolicy, Topic

_COMPACT_SEGMENT_MS = 86_400_000  # the newest segment is never compacted: roll it daily, not weekly as by default
_COMPACT_SEGMENT_BYTES = 128 * 1024 * 1024
_DIRTY_SHARE = 0.2  # compact when this share is outdated; bounds how much more than the state a restore reads


def configs_of(topic: Topic, settings: KafkaSettings) -> dict[str, str]:
    """The topic's settings, as Kafka names them.

    Compression is "producer": batches stay as they were sent, the broker does not pack them anew.
    """
    common = {"max.message.bytes": str(BATCH_CAP_BYTES), "compression.type": "producer"}
    if topic.kept is CleanupPolicy.COMPACT:
        return {
            **common,
            "cleanup.policy": "compact",
            "delete.retention.ms": str(settings.tombstones_kept_s * 1000),
            "segment.ms": str(_COMPACT_SEGMENT_MS),
            "segment.bytes": str(_COMPACT_SEGMENT_BYTES),
            "min.cleanable.dirty.ratio": str(_DIRTY_SHARE),
        }
    return {
        **common,
        "cleanup.policy": "delete",
        "retention.ms": str(-1 if topic.retention_ms is None else topic.retention_ms),
        "retention.bytes": str(-1 if topic.retention_bytes is None else topic.retention_bytes),
    }
