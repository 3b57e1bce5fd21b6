"""Reads committed records without a group, for replays, audits, and the changelogs of state."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import structlog
from kafka import TopicPartition

from stream.kafka.client import Consumer
from stream.kafka.damage import damage_of
from stream.kafka.errors import translated_errors
from stream.kafka.state import LocalState, decode_change
from stream.log.contract import Clock
from stream.log.errors import LogUnavailable, StreamError

_log = structlog.get_logger()
_STEP_S = 0.2
_TURN_MS = 20
_LOG_EVERY_S = 5.0
_SILENT_S = 5.0  # without a record or a step: the rest of a partition may hold none
_CONFIRM_S = 2.0

Steps = dict[TopicPartition, tuple[list[Any], int]]
"""Partition -> (its next records, the next offset)."""


class KafkaReader:
    """Reads partitions up to a stop position; the last offset may be a marker's, without a record."""

    def __init__(self, options: Mapping[str, Any], ranges: Mapping[TopicPartition, tuple[int, int]]) -> None:
        """`ranges`: partition -> (first offset, end offset, exclusive). Raises LogUnavailable."""
        self._options = options
        self._moved_at = time.monotonic()
        self._stops = {at: stop for at, (start, stop) in ranges.items() if start < stop}
        self._consumer: Consumer | None = None
        if self._stops:
            with translated_errors("reader"):
                self._consumer = Consumer(options)
                try:
                    self._consumer.assign(list(self._stops))
                    for at in self._stops:
                        self._consumer.seek(at, ranges[at][0])
                    self._consumer.learn_topics()
                except BaseException:
                    self.close()
                    raise

    @property
    def finished(self) -> bool:
        return not self._stops

    def step(self, timeout_s: float, max_records: int = 2000) -> Steps:
        if self._consumer is None or not self._stops:
            return {}
        with translated_errors("reader"):
            read = self._poll(self._consumer, timeout_s, max_records)
            steps = {}
            for at, stop in list(self._stops.items()):
                position = _reached(self._consumer, at)
                records = [record for record in read.get(at, ()) if record.offset < stop]
                if records or position >= stop:
                    steps[at] = (records, min(position, stop))
                if position >= stop:
                    del self._stops[at]
                    self._consumer.pause(at)
            now = time.monotonic()
            if steps:
                self._moved_at = now
            elif now - self._moved_at > _SILENT_S:
                self._moved_at = now
                return self._pass_removed(self._consumer)
            return steps

    def _pass_removed(self, consumer: Consumer) -> Steps:
        """Pass ends without a record or marker: the broker has removed them, and would send nothing for ever."""
        steps: Steps = {}
        for at, stop in list(self._stops.items()):
            position = _reached(consumer, at)
            if position >= 0 and _is_removed(self._options, at, position, stop):
                _log.warning("offsets_removed", topic=at.topic, partition=at.partition, first=position, end=stop)
                steps[at] = ([], stop)
                del self._stops[at]
                consumer.pause(at)
        return steps

    def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close(autocommit=False)

    def _poll(self, consumer: Consumer, timeout_s: float, max_records: int) -> Mapping[TopicPartition, list[Any]]:
        """Poll in short turns, because kafka-python waits for records after a stop without one."""
        until = time.monotonic() + timeout_s
        while True:
            left_ms = max(0, int((until - time.monotonic()) * 1000))
            read: Mapping[TopicPartition, list[Any]] = consumer.poll(min(_TURN_MS, left_ms), max_records)
            if read or left_ms <= _TURN_MS or any(_reached(consumer, at) >= stop for at, stop in self._stops.items()):
                return read

    def rounds(self, silence_s: float) -> Iterator[Steps]:
        """All steps with results. Raises LogUnavailable after `silence_s` without one."""
        moved_at = time.monotonic()
        while not self.finished:
            if steps := self.step(_STEP_S):
                yield steps
                moved_at = time.monotonic()
            elif time.monotonic() - moved_at > silence_s:
                left = ", ".join(f"{at.topic}-{at.partition}" for at in self._stops)
                raise LogUnavailable(f"reader: nothing came for {silence_s:.0f} s from {left}; check the broker")


def read_all(
    options: Mapping[str, Any], ranges: Mapping[TopicPartition, tuple[int, int]], silence_s: float
) -> Iterator[Any]:
    """All records of `ranges`, ordered per partition. Raises LogUnavailable after `silence_s` without progress."""
    with closing(KafkaReader(options, ranges)) as reader:
        for steps in reader.rounds(silence_s):
            for records, _ in steps.values():
                yield from records


def _is_removed(options: Mapping[str, Any], at: TopicPartition, position: int, stop: int) -> bool:
    """Whether the broker answers that it has nothing in [position, stop), and no transaction there is open."""
    with closing(Consumer(options)) as consumer:
        consumer.assign([at])
        if consumer.end_offsets([at])[at] < stop:  # the end of committed records
            return False
        consumer.seek(at, position)
        read = consumer.poll(int(_CONFIRM_S * 1000), 1)
        return not read and _reached(consumer, at) == position and (consumer.highwater(at) or 0) >= stop


def _reached(consumer: Consumer, at: TopicPartition) -> int:
    offset = consumer.next_offset(at)
    return -1 if offset is None else offset


class Restore(KafkaReader):
    """Brings local states to the end of their changelogs step by step, so that the member can poll in between."""

    def __init__(
        self,
        options: Mapping[str, Any],
        states: Mapping[TopicPartition, LocalState],
        ends: Mapping[TopicPartition, int],
        clock: Clock,
    ) -> None:
        """`states` and `ends` are by changelog partition. Raises LogUnavailable."""
        super().__init__(options, {at: (state.next_offset, ends[at]) for at, state in states.items()})
        self._states = states
        self._clock = clock
        self._left = self._total = sum(max(0, ends[at] - state.next_offset) for at, state in states.items())
        self._logged_at = time.monotonic()

    def advance(self, timeout_s: float) -> None:
        """Apply records that arrive within `timeout_s`. Raises LogUnavailable; StreamError for a damaged changelog."""
        self._apply(self.step(timeout_s))

    def run(self, silence_s: float) -> None:
        """Run all steps. Raises LogUnavailable after `silence_s` without progress."""
        for steps in self.rounds(silence_s):
            self._apply(steps)

    def _apply(self, steps: Steps) -> None:
        for at, (records, next_offset) in steps.items():
            state = self._states[at]
            if damage := next(filter(None, map(damage_of, records)), ""):
                raise StreamError(
                    f"{damage}: keyed state cannot be restored without it; restore the broker's file from a replica"
                    " or a backup, or remove the store's topic and read the stage's input again"
                )
            changes = [decode_change(record.key or b"", record.value) for record in records]
            before = state.next_offset
            state.apply(changes, max(before, next_offset), self._clock())
            self._left -= max(0, next_offset - before)
        now = time.monotonic()
        if now - self._logged_at > _LOG_EVERY_S:
            self._logged_at = now
            done = 1 - self._left / self._total if self._total else 1.0
            _log.info("state_restoring", partitions=len(self._states), left=self._left, share_done=round(done, 3))
