"""Offsets of groups without members: kept, though a broker would forget them."""

from __future__ import annotations

from collections.abc import Sequence

from stream.log.contract import Log
from stream.log.errors import LogUnavailable, StreamError


def renew_offsets(log: Log, group: str, topics: Sequence[str]) -> bool:
    """Set the offsets of a group without members to their present values, so that they stay; True if that was done.

    Kafka forgets what members committed after `offsets.retention.minutes` without a member (a week), not what was set.
    Call it once a day: a member that joins, commits and leaves meanwhile reads records again. Raises LogUnavailable.
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
        except StreamError:  # somebody joined, or the topic was removed meanwhile
            continue
        renewed = True
    return renewed
