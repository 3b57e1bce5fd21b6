"""Where a run begins: at features, or at pages, because the features that are kept mean something else.

A rule change reads features: no HTML, no extraction. Features of another epoch (another extractor, other chunks) mean
something else than this configuration measures, so nothing that is judged by them would hold for the live run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from replay.runs.offsets import between, first_record, last_record
from replay.runs.window import Window, WindowOffsets, kept, offsets_of, refuse_deleted, stops_of, window_text
from stream.log.contract import Log, Message
from stream.processing.topic_reader import records_of
from stream.schema.control import Control
from stream.schema.records import Features
from stream.schema.runs import Run, RunStatus
from stream.schema.topics import FEATURES, PAGES
from stream.text.user_errors import NotFound
from stream.text.wording import moment

_SPREAD = 16  # records looked at between the first and the last of each partition, over all of them


class NothingToReplay(NotFound):
    """The window has no record. The operator takes another one."""


class RunSource(NamedTuple):
    """The topic that a run begins with, its window there, and why that one."""

    topic: str
    offsets: WindowOffsets
    why: str


def choose_source(log: Log, control: Control, window: Window, epoch: str) -> RunSource:
    """Features whose window is of the feature epoch `epoch`, of the run that the window names or of live; else pages.

    Epochs are looked up in samples: first and last record of each partition, and some in between. Raises
    NothingToReplay, OutsideRetention.
    """
    said = []
    there = log.topics()
    candidates = _candidates(window, control.live)
    for topic in [topic for topic in candidates if topic in there]:
        runs = control.runs.values()
        measured_by = next((run for run in runs if run.remeasures and run.features == topic), None)
        if measured_by and not _can_cut(measured_by, window, is_live=measured_by.name == control.alias.run):
            said.append(f"{topic} was measured anew up to {moment(measured_by.ended_at)}: no time before can cut it")
            continue
        offsets = _cut(log, topic, window, measured_by)
        epochs = set(_epochs(_samples(log, topic, offsets)))
        if not epochs:
            said.append(f"{topic} has none in the window")
        elif epochs == {epoch}:
            return RunSource(topic, offsets, f"{topic} is of the feature epoch {epoch}, as this configuration measures")
        elif len(epochs) == 1:
            said.append(f"{topic} is of the feature epoch {epochs.pop()}, this configuration measures {epoch}")
        else:
            said.append(f"{topic} has several feature epochs in the window ({', '.join(sorted(epochs))})")
    why = "; ".join(said) or "there are no features"
    offsets = offsets_of(log, PAGES, window) if PAGES in there else WindowOffsets([], [], [])
    if between(offsets.start, offsets.stop) == 0:
        spans = "; ".join(kept(log, topic)[1] for topic in (*candidates, PAGES))
        asked = window_text(window.from_at, window.to_at)
        raise NothingToReplay(f"nothing to replay in the window {asked}: {why}; {spans}")
    return RunSource(PAGES, offsets, why)


def _can_cut(measured_by: Run, window: Window, *, is_live: bool) -> bool:
    """Whether a window can be found in features that a run has measured anew: they stand at the time of that.

    It can where the window is that of the run, or begins with the earliest and ends after; where the run has followed
    until it became live, only all that is there can be taken.
    """
    if measured_by.state == RunStatus.RUNNING and not measured_by.ended_at:
        return is_live and not window.from_at and (window.follows or window.to_end)
    if window.of is not None and window.of.name == measured_by.name:
        return True
    return not window.from_at and (window.follows or window.to_at > measured_by.ended_at)


def _cut(log: Log, topic: str, window: Window, measured_by: Run | None) -> WindowOffsets:
    if measured_by is None or window.of is None or window.of.name != measured_by.name:
        return offsets_of(log, topic, window)
    start = [0] * log.topics()[topic]
    refuse_deleted(log, measured_by, topic, start)
    if window.to_at != measured_by.to_at:
        return WindowOffsets(start, stops_of(log, topic, window), [])
    return WindowOffsets(start, measured_by.stop.get(topic) or log.offset_at(topic, measured_by.ended_at), [])


def _candidates(window: Window, live: Run | None) -> list[str]:
    """Topics of features that may serve, best first."""
    features = FEATURES if live is None else live.features
    of = window.of
    measured = of is not None and (of.state == RunStatus.DONE or not of.remeasures)
    return list(dict.fromkeys((of.features if of is not None and measured else features, features)))


def _samples(log: Log, topic: str, window: WindowOffsets) -> Iterator[Message]:
    """The first and the last record of each partition in the window, and some in even steps between."""
    steps = 1 + _SPREAD // max(1, len(window.start))
    for partition, (first, last) in enumerate(zip(window.start, window.stop, strict=True)):
        if first < last:
            places = (first + (last - first) * step // steps for step in range(steps))
            found = [first_record(log, topic, partition, place, last) for place in places]
            found.append(last_record(log, topic, partition, first, last))
            yield from filter(None, found)


def _epochs(messages: Iterable[Message]) -> Iterator[str]:
    """Of features records: a header says it, and else the record itself. One that cannot be read says none."""
    for message in messages:
        said = message.headers.get("feature_epoch")
        if said is not None and not message.damage:
            yield said
        else:
            yield from (features.epoch for _, features in records_of(Features, [message]))
