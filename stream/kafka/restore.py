"""Catching local state up with its changelog, a step at a time, so that the member keeps polling meanwhile."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import structlog
from kafka import TopicPartition

from stream.kafka.admin import KafkaAdmin
from stream.kafka.damage import damage_of
from stream.kafka.reader import KafkaReader
from stream.kafka.state import LocalState, decode_change
from stream.log.clock import Clock
from stream.log.errors import StreamError

log = structlog.get_logger(__name__)
_LOG_EVERY_S = 5.0


class Restore:
    """Brings the states of some partitions to the end of their changelogs."""

    def __init__(
        self, admin: KafkaAdmin, options: Mapping[str, Any], states: Mapping[TopicPartition, LocalState], clock: Clock
    ) -> None:
        """Look up the ends; `states` are by changelog partition, `options` those of a reader. Raises LogUnavailable.

        The end is that of everything written, not the last stable offset: a committed transaction whose marker has not
        arrived here yet counts too, and the reader waits for it.
        """
        ends = admin.written_end(list(states))
        self._states = states
        self._clock = clock
        self._left = sum(max(0, ends[at] - state.next_offset) for at, state in states.items())
        self._total = self._left
        self._logged_at = time.monotonic()
        self._reader = KafkaReader(options, {at: (state.next_offset, ends[at]) for at, state in states.items()})

    @property
    def finished(self) -> bool:
        return self._reader.finished

    def step(self, timeout_s: float) -> None:
        """Apply what comes within `timeout_s`. Raises LogUnavailable, and StreamError for a damaged changelog."""
        self._apply(self._reader.step(timeout_s))

    def run(self, silence_s: float) -> None:
        """All steps at once. Raises LogUnavailable after `silence_s` without progress."""
        for steps in self._reader.rounds(silence_s):
            self._apply(steps)

    def close(self) -> None:
        self._reader.close()

    def _apply(self, steps: Mapping[TopicPartition, tuple[list[Any], int]]) -> None:
        for at, (records, next_offset) in steps.items():
            state = self._states[at]
            if damage := next(filter(None, map(damage_of, records)), ""):
                raise StreamError(
                    f"{damage}: keyed state cannot be read back without it; bring the broker's file back from a replica"
                    " or a backup, or remove the store's topic and read the input of its stage again"
                )
            changes = [decode_change(record.key or b"", record.value) for record in records]
            before = state.next_offset
            state.apply(changes, max(before, next_offset), self._clock())
            self._left -= max(0, next_offset - before)
        now = time.monotonic()
        if now - self._logged_at > _LOG_EVERY_S:
            self._logged_at = now
            done = 1 - self._left / self._total if self._total else 1.0
            log.info("state_restoring", partitions=len(self._states), left=self._left, share_done=round(done, 3))
