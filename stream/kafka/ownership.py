"""The partitions of a member, ready or being restored, with state and offsets of each."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence

import structlog
from kafka import TopicPartition

from stream.kafka.client import GroupConsumer
from stream.kafka.cluster import KafkaSite
from stream.kafka.reader import Restore
from stream.kafka.state import LocalState
from stream.log.contract import At, StateChange
from stream.log.errors import LogUnavailable, StreamError

_log = structlog.get_logger()
_OFFSETS_WAIT_S = 1.0  # wait for open transactions of an earlier owner; the next poll asks again
_SURELY_ENDED = 2.0  # transaction timeouts, after which the broker has aborted open ones


class Ownership:
    """Ready partitions with their epochs; restores newly assigned ones."""

    def __init__(self, site: KafkaSite, topics: Sequence[str], *, group: str, member: str, store: str | None) -> None:
        self.epochs: dict[int, int] = {}  # ready partitions
        self.pending: set[int] = set()  # assigned, not ready
        self.delivered: dict[TopicPartition, int] = {}  # next offset after the last record returned by a poll
        self.states: dict[int, LocalState] = {}
        self._site = site
        self._topics = topics
        self._owner = (site.full(group), member, store or "")
        self._changelog = None if store is None else site.full(f"state.{store}")
        self._changelog_id = ""
        self._offsets: dict[TopicPartition, int] = {}
        self._restore: Restore | None = None
        self._restoring: frozenset[int] = frozenset()
        self._epoch = 0
        self._waits_since: float | None = None  # start of the wait for open transactions

    @property
    def restoring(self) -> bool:
        return self._restore is not None

    def inputs(self, partitions: Iterable[int]) -> list[TopicPartition]:
        return [
            TopicPartition(self._site.full(topic), p)
            for topic in self._topics
            for p in partitions
            if p < self._site.partitions(topic)
        ]

    def changelog(self, partition: int) -> TopicPartition:
        assert self._changelog is not None
        return TopicPartition(self._changelog, partition)

    def positions(self) -> dict[TopicPartition, int | None]:
        """Committed offset of every input of the ready partitions; None if there is none."""
        return {at: self._offsets.get(at) for at in self.inputs(self.epochs)}

    def lose(self, partitions: Collection[int]) -> None:
        for partition in partitions:
            self.epochs.pop(partition, None)
            self.pending.discard(partition)
            state = self.states.pop(partition, None)
            if state is not None:
                state.close()
            for known in (self._offsets, self.delivered):
                for at in [at for at in known if at.partition == partition]:
                    del known[at]
        if self._restoring & set(partitions):
            self._end_restore()

    def win(self, partitions: Collection[int]) -> None:
        """Mark partitions as pending: newly assigned, or to be restored again."""
        self.lose(partitions)
        self.pending |= set(partitions)
        self._waits_since = None

    def make_ready(self, consumer: GroupConsumer, timeout_s: float) -> list[int]:
        """Advance the pending partitions one step; returns those that became ready. Raises LogUnavailable."""
        if self._restore is None and not self._begin(consumer):
            return []
        restore = self._restore
        assert restore is not None
        try:
            restore.advance(timeout_s)
        except StreamError:
            self._end_restore()
            raise
        if not restore.finished:
            return []
        ready = sorted(self._restoring)
        self._end_restore()
        for partition in ready:
            self.pending.discard(partition)
            self._epoch += 1
            self.epochs[partition] = self._epoch
        return ready

    def committed(self, offsets: Mapping[At, int], state: Mapping[int, tuple[Sequence[StateChange], int]]) -> None:
        """Apply a durable commit; `state`: (changes, next offset). If the local disk fails, restore the partition."""
        for at, offset in offsets.items():
            self._offsets[TopicPartition(self._site.full(at.topic), at.partition)] = offset
        for partition, (changes, next_offset) in state.items():
            try:
                self.states[partition].apply(changes, next_offset, self._site.clock())
            except StreamError as error:
                _log.warning("local_state_failed", partition=partition, error=str(error))
                self.win([partition])

    def _begin(self, consumer: GroupConsumer) -> bool:
        """Fetch the offsets, then open the states; False if an earlier owner's transaction is still open."""
        partitions = sorted(self.pending)
        asked = self.inputs(partitions)
        if self._changelog is not None:
            asked += [self.changelog(p) for p in partitions]
        try:
            self._offsets |= consumer.stable_offsets(asked, _OFFSETS_WAIT_S)
        except LogUnavailable:
            if not consumer.reachable():
                self._waits_since = None
                raise
            self._wait_on(partitions)
            return False
        self._waits_since = None
        states: dict[TopicPartition, LocalState] = {}
        if self._changelog is not None:
            self._changelog_id = self._changelog_id or self._site.admin.topic_id(self._changelog)
            for partition in partitions:
                if partition not in self.states:
                    at = self.changelog(partition)
                    self.states[partition] = self._site.local_state(self._owner, at, self._changelog_id)
                states[self.changelog(partition)] = self.states[partition]
        self._restore = self._site.restore(states)
        self._restoring = frozenset(partitions)
        return True

    def _wait_on(self, partitions: Sequence[int]) -> None:
        """Wait for an earlier transaction. Raises LogUnavailable if it should have ended long ago: KAFKA-20734."""
        now = time.monotonic()
        if self._waits_since is None:
            self._waits_since = now
        patience_s = _SURELY_ENDED * self._site.settings.transaction_timeout_s
        if now - self._waits_since > patience_s:
            self._waits_since = now
            raise LogUnavailable(
                f"group {self._owner[0]!r} member {self._owner[1]!r}: for {patience_s:.0f} s the broker has given no "
                f"offsets of partitions {list(partitions)}. If it is well, a transaction on them hangs: end every one "
                "that `kafka-transactions.sh find-hanging` finds with `kafka-transactions.sh abort`"
            )

    def _end_restore(self) -> None:
        restore, self._restore, self._restoring = self._restore, None, frozenset()
        if restore is not None:
            restore.close()
