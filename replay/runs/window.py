"""The window of a run: as text, as times and as offsets of a topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from replay.runs.offsets import first_record, last_record
from stream.log.contract import Log
from stream.schema.runs import Gap, Run, RunStatus
from stream.text.times import DAY_MS, is_day, read_time
from stream.text.user_errors import FarmwatchError, UsageError
from stream.text.wording import moment, one_line

EARLIEST, NOW, FOLLOW = "earliest", "now", "follow"


class OutsideRetention(FarmwatchError):
    """Records of the window were deleted. The operator chooses a window within the range in the message."""


class WindowOffsets(NamedTuple):
    """A window as offsets per partition, with the gaps where records were deleted."""

    start: list[int]
    stop: list[int]  # exclusive
    gaps: list[Gap]


@dataclass(frozen=True, slots=True)
class Window:
    """The records of a window: appended at or after `from_at` and before `to_at`, ms UTC.

    If `run` is set, the window is taken over from that run, with its offsets where possible.
    """

    from_at: int = 0  # 0 = the earliest that is kept
    to_at: int = 0  # 0 = no end
    run: Run | None = None
    to_end: bool = False  # `to_at` is now: up to the ends of the topics

    @property
    def follows(self) -> bool:
        """Whether it has no end."""
        return self.to_at == 0


def window_text(from_at: int, to_at: int) -> str:
    """A window as text."""
    begin = moment(from_at) if from_at else EARLIEST
    return f"{begin} .. {moment(to_at) if to_at else FOLLOW}"


def run_window(run: Run) -> str:
    """The window of a run as text."""
    return window_text(run.from_at, run.to_at)


def read_window(from_: str | None, to: str | None, runs: Mapping[str, Run], now_ms: int) -> Window:
    """Parse the window of its two ends. None = earliest, and now or the end of the run that `from_` names.

    Raises UsageError.
    """
    of = runs.get(from_ or "")
    if of is not None and of.state == RunStatus.REMOVED:
        of = None
    from_at = of.from_at if of is not None else _begin(from_ or EARLIEST, runs, now_ms)
    if of is not None and (to is None or (of.follows and to == FOLLOW)):
        return Window(from_at, of.to_at or now_ms, of, to_end=not of.to_at)
    end = _end(to or NOW, now_ms)
    to_at = min(end, now_ms)
    if to_at and from_at >= to_at:
        raise UsageError(f"the window begins at {moment(from_at)}, not before its end at {moment(to_at)}")
    return Window(from_at, to_at, of, to_end=end > now_ms or to in (None, NOW))


def retained_range(log: Log, topic: str) -> tuple[int, str]:
    """The time of the first record of a topic (ms, 0 = none), and the range of its records as text."""
    times: list[int] = []
    spans = zip(log.beginning(topic), log.end(topic), strict=True) if topic in log.topics() else ()
    for partition, (start, stop) in enumerate(spans):
        for find in (first_record, last_record):
            found = find(log, topic, partition, start, stop) if start < stop else None
            times += [] if found is None else [found.timestamp_ms]
    if not times:
        return 0, f"{topic} has none"
    return min(times), f"{topic} has records from {moment(min(times))} to {moment(max(times))}"


def offsets_of(log: Log, topic: str, window: Window) -> WindowOffsets:
    """The offsets of a window on a topic. A window without an end stops at the present ends.

    If the window is that of a run that read the same topic, its offsets are used. Raises OutsideRetention if records
    that this run read were deleted, or if every partition lost records of the window.
    """
    of = window.run
    gaps: list[Gap] = []
    if of is not None and topic in of.start:
        start = list(of.start[topic])
        refuse_deleted(log, of, topic, start)
        gaps = [gap for gap in of.gaps if gap.topic == topic and gap.kept_at is not None]
    elif window.from_at:
        start = log.offset_at(topic, window.from_at)
        gaps = _deleted(log, topic, window.from_at)
    else:
        start = log.beginning(topic)
    stop = [max(first, last) for first, last in zip(start, stops_of(log, topic, window), strict=True)]
    return WindowOffsets(start, stop, gaps)


def stops_of(log: Log, topic: str, window: Window) -> list[int]:
    """The end of a window on a topic; the present ends if it has no end."""
    of = window.run
    if of is not None and of.to_at == window.to_at and topic in of.stop:
        return list(of.stop[topic])
    return log.end(topic) if window.follows or window.to_end else log.offset_at(topic, window.to_at)


def refuse_deleted(log: Log, of: Run, topic: str, start: Sequence[int]) -> None:
    """Raises OutsideRetention if records of a topic were deleted that a run read from these offsets on."""
    if any(first > begun for first, begun in zip(log.beginning(topic), start, strict=True)):
        raise OutsideRetention(
            f"records that the run {of.shown} read were deleted: {retained_range(log, topic)[1]}", kept="a time"
        )


def _deleted(log: Log, topic: str, from_at: int) -> list[Gap]:
    """Gaps of the partitions whose oldest record is newer than `from_at`.

    Retention deletes in each partition separately. A partition without a record in between may have lost nothing; its
    offsets do not show that. So the window is refused only if no partition with records is complete. Raises
    OutsideRetention.
    """
    gaps, had_records = [], 0
    for partition, (begun, end) in enumerate(zip(log.beginning(topic), log.end(topic), strict=True)):
        had_records += end > 0
        if begun == 0:
            continue
        first = first_record(log, topic, partition, begun, end, lambda _: True) if begun < end else None
        if first is None or first.timestamp_ms > from_at:
            gaps.append(Gap(topic, partition, 0, begun, first.timestamp_ms if first is not None else 0))
    if gaps and len(gaps) == had_records:
        whole_at = max(gap.kept_at or 0 for gap in gaps)
        raise OutsideRetention(
            f"the window begins at {moment(from_at)}, {retained_range(log, topic)[1]}, and older records are deleted",
            kept=f"{round_up_to_second(whole_at)} or later" if whole_at else "a later time",
        )
    return gaps


def round_up_to_second(at_ms: int) -> str:
    """A time rounded up to whole seconds, in the format of a time that users give."""
    return moment(-(-at_ms // 1000) * 1000).replace(" ", "T")


def _begin(text: str, runs: Mapping[str, Run], now_ms: int) -> int:
    if text == EARLIEST:
        return 0
    known = ", ".join(sorted(run.shown for run in runs.values() if run.state != RunStatus.REMOVED)) or "none yet"
    return _time(text, "begin", now_ms, also=f", {EARLIEST}, or the name of a run ({known})")


def _end(text: str, now_ms: int) -> int:
    """The end of a window, ms. A day ends at its midnight; it may be today."""
    if text == NOW:
        return now_ms
    if text == FOLLOW:
        return 0
    at = _time(text, "end", now_ms, also=f", {NOW}, or {FOLLOW}")
    if at > now_ms:
        raise UsageError(f"the end of the window, {one_line(text)}, is in the future; take {NOW}, or {FOLLOW}")
    return at + DAY_MS if is_day(text) else at


def _time(text: str, end: str, now_ms: int, also: str) -> int:
    try:
        return read_time(text, now_ms, may_come=True)
    except ValueError as error:
        raise UsageError(f"the {end} of the window: {error}{also}") from None
