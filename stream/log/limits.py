"""What a log refuses to take."""

from __future__ import annotations

from collections.abc import Sequence

from stream.log.contract import RECORD_CAP_BYTES, Output, Topic
from stream.log.errors import RecordTooLarge, StreamError, TopicMismatch


def check_size(output: Output) -> None:
    """Raises RecordTooLarge when the value of a record is above the log's cap."""
    if output.value is not None and len(output.value) > RECORD_CAP_BYTES:
        raise RecordTooLarge(
            f"a record of {len(output.value)} bytes for topic {output.topic!r} is above the cap of "
            f"{RECORD_CAP_BYTES} bytes"
        )


def check_partitions(topic: Topic, partitions: int) -> None:
    """Raises TopicMismatch where a topic exists with another number of partitions than is wanted."""
    if partitions != topic.partitions:
        raise TopicMismatch(
            f"topic {topic.name!r} has {partitions} partitions, {topic.partitions} are configured: "
            "restore the old number, or start a new topic prefix"
        )


def check_offsets(topic: str, offsets: Sequence[int], partitions: int) -> None:
    """Raises StreamError where the offsets are not one for each partition."""
    if len(offsets) != partitions:
        raise StreamError(f"topic {topic!r} has {partitions} partitions, {len(offsets)} offsets were given")


def check_idle(group: str, members: Sequence[str], doing: str) -> None:
    """Raises StreamError while a group has live members; `doing`: what must wait for their end."""
    if members:
        raise StreamError(f"group {group!r} has live members ({', '.join(members)}): stop them before {doing}")
