"""Erases records of sites on Kafka: tombstones in compacted topics; other records leave with retention."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from stream.kafka.cluster import KafkaSite
from stream.kafka.configuration import POLICY, RETENTION_MS, SEGMENT_MS, own_limit
from stream.log.contract import At, Erased, Message, Output, partition_of

Read = Callable[[Mapping[At, tuple[int, int]]], Iterator[Message]]
_ALL = (0, 2**63 - 1)
_BROKER_MS = 600_000  # a broker looks for old segments every 5 minutes, and removes them a minute later
_STATE = "state."  # changelogs: their owners write them


def erase(
    site: KafkaSite, read: Read, sites: Collection[str], rows: Collection[bytes], now_ms: int
) -> tuple[list[Output], Erased]:
    """The tombstones to append, and the outcome once they are appended.

    Reads the partitions of these sites completely.
    """
    topics = {name: partitions for name, partitions in site.topics().items() if not name.startswith(_STATE)}
    settings = site.admin.topic_settings([site.full(name) for name in topics], [POLICY, RETENTION_MS, SEGMENT_MS])
    wanted = {name.encode() for name in sites}
    tombstones: list[Output] = []
    records, gone_at_ms = 0, 0
    for name, partitions in topics.items():
        limits = settings[site.full(name)]
        is_compacted = "compact" in limits.get(POLICY, "")
        kept_ms = int(own_limit(RETENTION_MS, limits.get(RETENTION_MS, "-1")))
        kept_ms += int(limits[SEGMENT_MS]) + _BROKER_MS if kept_ms >= 0 else 0  # a segment leaves as a whole
        places = {partition_of(host, partitions) for host in sites} | ({0} if partitions == 1 and rows else set())
        newest: dict[tuple[int, bytes], bool] = {}  # place and key -> whether it has a value
        for message in read({At(name, place): _ALL for place in places}):
            if message.key.partition(b" ")[0] not in wanted and message.key not in rows:
                continue
            newest[message.partition, message.key] = message.value is not None
            if not is_compacted:
                records += 1
                gone_at_ms = max(gone_at_ms, (message.timestamp_ms if kept_ms >= 0 else now_ms) + max(kept_ms, 0))
            elif message.value is not None and message.key not in rows:
                gone_at_ms = max(gone_at_ms, now_ms)  # stored until the broker compacts the topic
        if is_compacted:  # values that `rows` name are current ones
            living = [place for place, has_value in newest.items() if has_value and place[1] not in rows]
            records += len(living)
            tombstones += [Output(name, partition, key, None) for partition, key in living]
    return tombstones, Erased(records, gone_at_ms)
