"""Heartbeats: empty records that pass through all stages, to measure the latency."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice

from stream.log.contract import Headers, Log, Message, Output
from stream.schema.topics import HITS

HEADER = "heartbeat"  # value: the start in ms
KEY = b"heartbeat"
_LOOKED_AT = 10_000  # records of a partition


def is_heartbeat(message: Message) -> bool:
    """Whether a message is a heartbeat; False for a damaged message, because its headers may be wrong."""
    return HEADER in message.headers and not message.damage


def beat(log: Log, partitions: int, now_ms: int) -> None:
    """Send one heartbeat into the first topic, on a random partition."""
    partition = random.randrange(partitions)  # noqa: S311  # any partition will do; nothing secret
    log.append([travelling(HITS, partition, {HEADER: str(now_ms)})])


def travelling(topic: str, partition: int, headers: Headers) -> Output:
    """The heartbeat's record on its next topic."""
    return Output(topic, partition, KEY, b"", {HEADER: headers[HEADER]})


def started_at(message: Message) -> int | None:
    """When the heartbeat started, ms; None if the header is not a number."""
    value = message.headers[HEADER]
    return int(value) if value.isascii() and value.isdigit() else None


def holds_records(log: Log, topic: str, until: Sequence[int | None] | None = None) -> bool:
    """Whether the topic has a record besides heartbeats, of the first of each partition, before the offsets `until`."""
    ends = log.end(topic) if until is None else [offset or 0 for offset in until]
    return any(
        not is_heartbeat(message)
        for partition, end in enumerate(ends)
        for message in islice(log.read(topic, partition, stop=end), _LOOKED_AT)
    )
