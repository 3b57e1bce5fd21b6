"""Offsets of groups: where to resume, records that expired unread, and renewal of offsets on Kafka."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from stream.log.contract import NO_HEADERS, At, Log, Message
from stream.log.errors import LogUnavailable, StreamError

_log = structlog.get_logger()


def expired(at: At, first: int, stop: int, group: str, now_ms: int) -> Message:
    """The message in place of offsets first <= offset < stop, which retention removed before `group` read them."""
    span = f"offset {first}" if stop - first == 1 else f"offsets {first} to {stop - 1}"
    said = f"retention removed {span} of {at.topic}-{at.partition} before the group {group} read them"
    return Message(*at, stop - 1, b"", b"", NO_HEADERS, now_ms, damage=said, expired=stop - first)


def next_offset(committed: int | None, end: int, first: int = 0) -> int:
    """Where a group resumes: at its committed offset, at 0 without one, at `first` if the offset is beyond the end.

    An offset beyond the end belongs to a recreated or truncated topic: waiting there would silently skip records.
    """
    if committed is None:
        return 0
    return committed if committed <= end else first


def log_beyond_end(at: At, committed: int, end: int, group: str) -> None:
    """Log that a group rereads a partition because its offset is beyond the end, see `next_offset`."""
    _log.warning(
        "offset_beyond_end",
        group=group,
        topic=at.topic,
        partition=at.partition,
        committed=committed,
        end=end,
        effect="the partition is read again from its beginning",
    )


def renew_offsets(log: Log, group: str, topics: Sequence[str]) -> bool:
    """Set the offsets of an idle group to their present values, so that they do not expire; True if done.

    Kafka expires committed offsets after `offsets.retention.minutes` without a member (a week), but not set ones. Call
    it once a day: a member that joins, commits and leaves in between would reread records. Raises LogUnavailable.
    """
    if not log.forgets_offsets or log.members(group):
        return False
    existing = log.topics()
    renewed = False
    for topic in [topic for topic in topics if topic in existing]:
        committed = log.committed(group, topic)
        if all(offset is None for offset in committed):
            continue
        first = log.beginning(topic)
        offsets = [start if offset is None else offset for offset, start in zip(committed, first, strict=True)]
        try:
            log.reset(group, topic, offsets)
        except LogUnavailable:
            raise
        except StreamError:  # a member joined, or the topic was removed
            continue
        renewed = True
    return renewed
