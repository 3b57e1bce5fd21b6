"""Offsets that retention removed before a group read them: one message replaces them."""

from __future__ import annotations

import structlog

from stream.log.contract import NO_HEADERS, At, Message

log = structlog.get_logger(__name__)


def expired(at: At, first: int, stop: int, group: str, now_ms: int) -> Message:
    """The message in place of the offsets first <= offset < stop, which retention removed before `group` read them.

    A loop commits the offset after the last of them with it, as with any other message.
    """
    span = f"offset {first}" if stop - first == 1 else f"offsets {first} to {stop - 1}"
    said = f"retention removed {span} of {at.topic}-{at.partition} before the group {group} read them"
    return Message(*at, stop - 1, b"", b"", NO_HEADERS, now_ms, damage=said, expired=stop - first)


def next_offset(committed: int | None, end: int, first: int = 0) -> int:
    """Where a group resumes: at its committed offset; at 0 where it has none; at `first` where that is beyond the end.

    An offset beyond the end was committed on records that are gone: the topic was made anew, or its end was cut off. To
    wait there would skip in silence all records until the end is reached. The offsets below `first` were read then, or
    never held a record that this group missed: nothing is reported as expired.
    """
    if committed is None:
        return 0
    return committed if committed <= end else first


def log_beyond_end(at: At, committed: int, end: int, group: str) -> None:
    """Log that a group reads a partition again, since its offset lies beyond the end, see `next_offset`."""
    log.warning(
        "offset_beyond_end",
        group=group,
        topic=at.topic,
        partition=at.partition,
        committed=committed,
        end=end,
        effect="the partition is read again from its beginning",
    )
