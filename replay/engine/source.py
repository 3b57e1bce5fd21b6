"""Chooses where a run begins: at features, or at pages if the stored features have another feature epoch.

A rule change reads features: no HTML, no extraction. Features of another epoch (another extractor, other chunks) are
measured differently from this configuration, so their verdicts would not hold for the live run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from replay.runs.topology import between, first_record, last_record
from replay.runs.window import Window
from stream.log.contract import Log
from stream.processing.topic_reader import records_of
from stream.schema.control import Control
from stream.schema.records import Features
from stream.schema.runs import Gap, Run, RunStatus
from stream.schema.topics import FEATURES, PAGES
from stream.text.user_errors import FarmwatchError, NotFound
from stream.text.wording import moment

_SPREAD = 16  # records sampled between the first and the last of each partition, over all partitions


class OutsideRetention(FarmwatchError):
    """Records of the window were deleted. The operator chooses a window within the range in the message."""


class NothingToReplay(NotFound):
    """The window has no record. The operator chooses another window."""


class WindowOffsets(NamedTuple):
    """A window as offsets per partition, with the gaps where records were deleted."""

    start: list[int]
    stop: list[int]  # exclusive
    gaps: list[Gap]


class RunSource(NamedTuple):
    """The topic that a run begins with, its window on that topic, and the reason."""

    topic: str
    offsets: WindowOffsets
    why: str


def choose_source(log: Log, control: Control, window: Window, epoch: str) -> RunSource:
    """The features of the window if they are all of feature epoch `epoch`; otherwise the pages.

    The features are those of the run that the window names, or of the live run. Epochs are sampled: first and last
    record of each partition, and some in between. Raises NothingToReplay, OutsideRetention.
    """
    reasons = []
    there = log.topics()
    features = FEATURES if control.live is None else control.live.features
    named = window.run
    is_measured = named is not None and (named.state == RunStatus.DONE or not named.remeasures)
    candidates = list(dict.fromkeys((named.features if named is not None and is_measured else features, features)))
    for topic in [topic for topic in candidates if topic in there]:
        runs = control.runs.values()
        measuring_run = next((run for run in runs if run.remeasures and run.features == topic), None)
        if measuring_run and not _can_cut(measuring_run, window, is_live=measuring_run.name == control.alias.run):
            reasons.append(
                f"{topic} was measured again until {moment(measuring_run.ended_at)}: an earlier end has no offset there"
            )
            continue
        offsets = _cut(log, topic, window, measuring_run)
        epochs = set(_sampled_epochs(log, topic, offsets))
        if not epochs:
            reasons.append(f"{topic} has no record in the window")
        elif epochs == {epoch}:
            return RunSource(topic, offsets, f"{topic} is of the feature epoch {epoch}, as this configuration measures")
        elif len(epochs) == 1:
            reasons.append(f"{topic} is of the feature epoch {epochs.pop()}, this configuration measures {epoch}")
        else:
            reasons.append(f"{topic} has several feature epochs in the window ({', '.join(sorted(epochs))})")
    why = "; ".join(reasons) or "there are no features"
    offsets = offsets_of(log, PAGES, window) if PAGES in there else WindowOffsets([], [], [])
    if between(offsets.start, offsets.stop) == 0:
        spans = "; ".join(retained_range(log, topic)[1] for topic in (*candidates, PAGES))
        raise NothingToReplay(f"nothing to replay in the window {window.text}: {why}; {spans}")
    return RunSource(PAGES, offsets, why)


def _can_cut(measuring_run: Run, window: Window, *, is_live: bool) -> bool:
    """Whether the window has offsets in features that a run measured again; they are stored at the time of that run.

    It has if the window is that of the run, or begins with the earliest record and ends after the run. If the run
    followed new records until it became live, only the window of all records has.
    """
    if measuring_run.state == RunStatus.RUNNING and not measuring_run.ended_at:
        return is_live and not window.from_at and (window.follows or window.to_end)
    if window.run is not None and window.run.name == measuring_run.name:
        return True
    return not window.from_at and (window.follows or window.to_at > measuring_run.ended_at)


def _cut(log: Log, topic: str, window: Window, measuring_run: Run | None) -> WindowOffsets:
    if measuring_run is None or window.run is None or window.run.name != measuring_run.name:
        return offsets_of(log, topic, window)
    start = [0] * log.topics()[topic]
    refuse_deleted(log, measuring_run, topic, start)
    if window.to_at != measuring_run.to_at:
        return WindowOffsets(start, stops_of(log, topic, window), [])
    return WindowOffsets(start, measuring_run.stop.get(topic) or log.offset_at(topic, measuring_run.ended_at), [])


def _sampled_epochs(log: Log, topic: str, window: WindowOffsets) -> Iterator[str]:
    """Epochs of the first and last readable record of each partition in the window, and of some in between."""
    steps = 1 + _SPREAD // max(1, len(window.start))
    for partition, (first, last) in enumerate(zip(window.start, window.stop, strict=True)):
        if first < last:
            places = (first + (last - first) * step // steps for step in range(steps))
            samples = [first_record(log, topic, partition, place, last) for place in places]
            samples.append(last_record(log, topic, partition, first, last))
            for message in filter(None, samples):
                epoch = message.headers.get("feature_epoch")
                if epoch is not None and not message.damage:
                    yield epoch
                else:
                    yield from (features.epoch for _, features in records_of(Features, [message]))


def retained_range(log: Log, topic: str) -> tuple[int, str]:
    """The time of the first record of a topic (ms, 0 = none), and the range of its records as text."""
    times: list[int] = []
    spans = zip(log.beginning(topic), log.end(topic), strict=True) if topic in log.topics() else ()
    for partition, (start, stop) in enumerate(spans):
        for find in (first_record, last_record):
            message = find(log, topic, partition, start, stop) if start < stop else None
            times += [] if message is None else [message.timestamp_ms]
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

    A partition without a record in between may have lost nothing, which its offsets do not show. So only a window of
    which no partition with records is complete is refused, with OutsideRetention.
    """
    ends, gaps = log.end(topic), []
    for partition, (begun, end) in enumerate(zip(log.beginning(topic), ends, strict=True)):
        if begun == 0:
            continue
        first = first_record(log, topic, partition, begun, end, lambda _: True) if begun < end else None
        if first is None or first.timestamp_ms > from_at:
            gaps.append(Gap(topic, partition, 0, begun, first.timestamp_ms if first is not None else 0))
    if gaps and len(gaps) == sum(end > 0 for end in ends):
        whole_at = max(gap.kept_at or 0 for gap in gaps)
        raise OutsideRetention(
            f"the window begins at {moment(from_at)}, {retained_range(log, topic)[1]}, and older records are deleted",
            kept=f"{round_up_to_second(whole_at)} or later" if whole_at else "a later time",
        )
    return gaps


def round_up_to_second(at_ms: int) -> str:
    """A time rounded up to whole seconds, in the format of a time that users give."""
    return moment(-(-at_ms // 1000) * 1000).replace(" ", "T")
