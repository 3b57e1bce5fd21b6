"""Offsets that retention removed before a group read them: one message replaces them."""

from __future__ import annotations

import structlog

from stream.log.contract import NO_HEADERS, At, Message

log = structlog.get_logger(__name__)


def expired(at: At, first: int, stop: int, group: str, now_ms: int) -> Message:
    """The message in place of offsets first <= offset < stop, which retention removed before `group` read them."""
    span = f"offset {first}" if stop - first == 1 else f"offsets {first} to {stop - 1}"
    said = f"retention removed {span} of {at.topic}-{at.partition} before the group {group} read them"
    return Message(*at, stop - 1, b"", b"", NO_HEADERS, now_ms, damage=said, expired=stop - first)


def next_offset(committed: int | None, end: int, first: int = 0) -> int:
    """Where a group resumes: at its committed offset, at 0 without one, at `first` where that is beyond the end.

    An offset beyond the end is of a topic that was made anew or cut: to wait there would skip records in silence.
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
