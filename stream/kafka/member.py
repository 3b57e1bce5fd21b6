"""A member of a consumer group on Kafka: a consumer, a transactional producer and local state.

Rebalances happen only inside `poll`. A newly assigned partition is *pending* until it is *ready*:
  1. the producer fences earlier producers of this member's name and ends their transactions;
  2. the member fetches the committed offsets, which waits for open transactions of earlier owners;
  3. the member restores the state up to everything written by then, so it matches those offsets.

The outcome of a commit without an answer is unknown. All partitions then become pending again, and the three steps find
out. A commit of outputs alone leaves no such trace: `stream.schema.control` checks its own.

Two members of one name share a transactional id, so the second fences the first. If a partition moved to another name,
the group's generation fences its former owner: every commit for a partition carries the generation, with the input
offsets or, if only state changed, with an offset on the changelog.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence

import structlog
from kafka import TopicPartition
from kafka import errors as kafka_errors
from kafka.structs import OffsetAndMetadata

from stream.kafka.buffer import FetchBuffer
from stream.kafka.client import GroupConsumer, ProducerRecord, RecordRefused, TransactionalProducer, build_producer
from stream.kafka.cluster import KafkaSite
from stream.kafka.errors import FENCING, translated_errors
from stream.kafka.ownership import Ownership
from stream.kafka.settings import UNAVAILABLE_AFTER_S, instance_name
from stream.kafka.state import encode_change
from stream.log.contract import At, Commit, Message, Output, StateReader
from stream.log.errors import Fenced, LogUnavailable, StreamError
from stream.log.offsets import expired, log_beyond_end, next_offset
from stream.log.shares import Pauses

_log = structlog.get_logger()
# Longest single wait of a poll; rebalances and restores are handled in between.
_SLICE_S = 0.25
_BUSY_SLICE_S = 0.05  # while there is such work
_NAME_CHECK_S = 5.0  # interval at which a fenced member checks whether its name is free
_SURELY_FENCED = 0.9  # of the transaction timeout: the broker does not time out a younger transaction


class KafkaMember:
    """See `Member`."""

    def __init__(
        self,
        site: KafkaSite,
        group: str,
        topics: Sequence[str],
        name: str,
        store: str | None,
        background: Collection[str] = (),
    ) -> None:
        """Join as `name`; if the broker is unavailable, the polls retry. Raises UnknownTopic."""
        self._site = site
        self._group = group
        self._topics = topics
        self._name = name
        self._store = store
        self._said = f"group {group!r} member {name!r}"
        self._consumer: GroupConsumer | None = None
        self._producer: TransactionalProducer | None = None
        self._owned = Ownership(site, topics, group=group, member=name, store=store)
        self._background = background
        self._buffer = FetchBuffer(background)
        self._pauses = Pauses()
        self._superseded = False
        self._closed = False
        self._reached_at = time.monotonic()
        self._name_checked_at = 0.0
        try:
            self._open()
        except LogUnavailable as error:
            _log.warning("kafka_unavailable", member=self._said, error=str(error))

    def poll(self, timeout_s: float, max_records: int, max_bytes: int) -> list[Message]:
        deadline = time.monotonic() + timeout_s
        while True:
            consumer = self._joined(deadline)
            messages = self._take(consumer, max_records, max_bytes)
            if not messages:
                calm = consumer.settled() and not self._owned.pending
                wait_s = min(max(0.0, deadline - time.monotonic()), _SLICE_S if calm else _BUSY_SLICE_S)
                # a restore waits for its own records
                self._fetch(consumer, 0.0 if self._owned.restoring else wait_s, max_records)
                if self._owned.pending:
                    self._producing()  # first, because it ends an open transaction of this name
                    if ready := self._owned.make_ready(consumer, wait_s):
                        positions = self._owned.positions()
                        consumer.place({at: positions[at] for at in self._owned.inputs(ready)})
                        self._update_pauses()
                messages = self._take(consumer, max_records, max_bytes)
            for message in messages:
                at = TopicPartition(self._site.full(message.topic), message.partition)
                self._owned.delivered[at] = message.offset + 1
            if messages or time.monotonic() >= deadline:
                return messages

    def assignment(self) -> Mapping[int, int]:
        return dict(self._owned.epochs)

    def state(self, partition: int) -> StateReader:
        self._require([partition], state=True)
        return self._owned.states[partition]

    def commit(self, commit: Commit) -> None:
        if not (commit.outputs or commit.offsets or commit.state):
            return
        self._require({at.partition for at in commit.offsets} | set(commit.state), state=bool(commit.state))
        changes = [(p, change) for p, changes in commit.state.items() for change in changes]
        changelog = f"state.{self._store}"
        changed = [Output(changelog, p, change.key, encode_change(change)) for p, change in changes]
        records = [self._site.record(output) for output in (*commit.outputs, *changed)]
        offsets = self._past_markers(commit.offsets)
        sent = {TopicPartition(self._site.full(at.topic), at.partition): offset for at, offset in offsets.items()}
        for partition in set(commit.state) - {at.partition for at in offsets}:  # only to check the generation
            sent[self._owned.changelog(partition)] = self._owned.states[partition].next_offset
        try:
            written = self._transact(records, {at: OffsetAndMetadata(offset, "", -1) for at, offset in sent.items()})
        except RecordRefused as error:
            outputs = [*commit.outputs, *(Output(changelog, p, change.key, change.value) for p, change in changes)]
            raise self._site.refusal(outputs[error.index]) from error
        last = {c.partition: offset for c, offset in zip(changed, written[len(commit.outputs) :], strict=True)}
        self._owned.committed(offsets, {p: (commit.state[p], offset + 1) for p, offset in last.items()})

    def rewind(self) -> None:
        """See `Member.rewind`. Sends nothing; the next poll settles a commit in doubt."""
        self._buffer.clear()
        self._owned.delivered.clear()
        if self._consumer is not None:
            self._consumer.place(self._owned.positions())

    def pause(self, partitions: Iterable[int] | None = None) -> None:
        self._pauses.add(partitions)
        self._update_pauses()

    def resume(self) -> None:
        self._pauses.clear()
        self._update_pauses()

    def lag(self) -> Mapping[At, int]:
        """See `Member.lag`. If everything delivered is committed, passed markers do not count."""
        positions = self._owned.positions()
        ends = self._site.admin.stable_end(list(positions))
        begun = {at: next_offset(offset, ends[at]) for at, offset in positions.items()}
        first = self._site.admin.beginning([at for at, offset in begun.items() if not offset])
        lags = {}
        for at, offset in begun.items():
            done = self._rest(at, max(offset, first.get(at, 0)))
            lags[At(self._site.short(at.topic), at.partition)] = max(0, ends[at] - done)
        return lags

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        member_id = "" if self._consumer is None else self._consumer.group_metadata().member_id
        self._disconnect()
        if member_id and not self._superseded:
            # Unless removed, a static member keeps its place until its session ends.
            self._site.admin.remove(self._site.full(self._group), instance_name(self._name), member_id)

    def _open(self) -> None:
        for topic in self._topics if self._store is None else (*self._topics, f"state.{self._store}"):
            self._site.partitions(topic)
        self._producing()
        with translated_errors(f"join of {self._said}"):
            topics = {self._site.full(topic): self._site.partitions(topic) for topic in self._topics}
            self._consumer = GroupConsumer(topics, self._site.member_options(self._site.full(self._group), self._name))
        self._reached_at = time.monotonic()

    def _disconnect(self) -> None:
        self._owned.lose([*self._owned.epochs, *self._owned.pending])
        self._buffer.clear()
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.kill()
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close(autocommit=False, timeout_ms=1000)

    def _joined(self, deadline: float) -> GroupConsumer:
        if self._closed:
            raise StreamError(f"{self._said} is closed")
        if self._superseded:
            now = time.monotonic()
            is_free = False
            if now - self._name_checked_at >= _NAME_CHECK_S:
                self._name_checked_at = now
                is_free = instance_name(self._name) not in self._site.admin.members(self._site.full(self._group))
            if not is_free:
                time.sleep(max(0.0, min(deadline - now, 1.0)))
                raise Fenced(f"another process runs as {self._said}: give each process a name of its own")
            _log.info("member_name_free", member=self._said)
            self._superseded = False
        if self._consumer is None:
            self._open()
        assert self._consumer is not None
        return self._consumer

    def _take(self, consumer: GroupConsumer, max_records: int, max_bytes: int) -> list[Message]:
        """Take records from the buffer; background records only if the broker confirms that no other record waits."""
        flowing = self._flowing()
        messages = self._buffer.take(flowing, max_records, max_bytes)
        if messages or not flowing or not self._buffer.holds_background():
            return messages
        live = self._live(self._owned.inputs(flowing))
        ends = self._site.admin.stable_end(live)
        positions = {at: consumer.next_offset(at) for at in live}
        if any(position is None or position < ends[at] for at, position in positions.items()):
            return messages
        return self._buffer.take(flowing, max_records, max_bytes, background=True)

    def _live(self, at: Iterable[TopicPartition]) -> list[TopicPartition]:
        return [one for one in at if self._site.short(one.topic) not in self._background]

    def _fetch(self, consumer: GroupConsumer, timeout_s: float, max_records: int) -> None:
        if self._background:
            self._update_pauses()
        try:
            records = consumer.fetch(timeout_s, max_records)
        except Fenced:
            self._supersede()
            raise
        if consumer.displaced():
            self._supersede()
            raise Fenced(f"another process has joined as {self._said}")
        lost, won = ({at.partition for at in changed} for changed in consumer.take_changes())
        if lost or won:
            self._buffer.drop(lost | won)
            self._owned.lose(lost)
            self._owned.win(won)
        ready = self._owned.epochs
        self._buffer.add(self._site.message(record) for record in records if record.partition in ready)
        self._reset_positions(consumer)
        now = time.monotonic()
        if consumer.reachable():
            self._reached_at = now
        elif now - self._reached_at > UNAVAILABLE_AFTER_S:
            raise LogUnavailable(f"{self._said}: no broker at {self._site.bootstrap}; check that it is up")

    def _reset_positions(self, consumer: GroupConsumer) -> None:
        """Reset positions that the broker lacks: retention overtook them, or the topic was recreated."""
        positions = consumer.take_unknown_positions().items()
        astray = {at: offset for at, offset in positions if at.partition in self._owned.epochs}
        if not astray:
            return
        first = self._site.admin.beginning(list(astray))
        end = self._site.admin.written_end(list(astray))
        for at, offset in astray.items():
            place, start = At(self._site.short(at.topic), at.partition), next_offset(offset, end[at], first[at])
            if start < offset:
                log_beyond_end(place, offset, end[at], self._group)
            if start < first[at]:  # compaction does not move the beginning
                self._buffer.add([expired(place, start, first[at], self._group, self._site.clock())])
            consumer.place({at: max(start, first[at])})

    def _past_markers(self, offsets: Mapping[At, int]) -> dict[At, int]:
        """These offsets, and offsets of idle partitions after markers: retention would report the markers as unread."""
        passed = dict(offsets)
        if passed:
            for at, committed in self._owned.positions().items():
                place = At(self._site.short(at.topic), at.partition)
                done = offsets.get(place, committed or 0)
                if (rest := self._rest(at, done)) > done:
                    passed[place] = rest
        return passed

    def _rest(self, at: TopicPartition, done: int) -> int:
        """`done`, or the position after it if only markers are in between and all delivered records are before it."""
        position = (self._consumer and self._consumer.next_offset(at)) or 0
        if position <= done or self._owned.delivered.get(at, done) > done or self._buffer.holds(at.partition):
            return done
        return position

    def _update_pauses(self) -> None:
        if self._consumer is None:
            return
        flowing = self._owned.inputs(self._flowing())
        if self._buffer.holds_background():  # otherwise the buffer grows without limit while live records flow
            flowing = self._live(flowing)
        self._consumer.fetch_only(flowing)

    def _flowing(self) -> Collection[int]:
        return set(self._pauses.flowing(self._owned.epochs))

    def _producing(self) -> TransactionalProducer:
        if self._producer is None:
            self._producer = build_producer(self._site.producer_options(self._site.full(f"{self._group}.{self._name}")))
        return self._producer

    def _transact(
        self, records: Sequence[ProducerRecord], offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> list[int]:
        consumer = self._joined(time.monotonic())
        producer = self._producing()
        membership = consumer.group_metadata() if offsets else None
        if membership is not None and membership.generation_id < 0:
            raise Fenced(f"{self._said} is not in the group any more")
        with translated_errors(f"commit of {self._said}"):
            try:
                return producer.transact(records, offsets, membership, self._site.settings.commit_timeout_s)
            except Exception as error:
                own = {*self._topics, f"state.{self._store}"}  # a rewind needs it while the broker is unavailable
                self._site.forget({r.topic for r in records} - {self._site.full(topic) for topic in own})
                self._after_failure(producer, consumer, error)
                raise

    def _after_failure(self, producer: TransactionalProducer, consumer: GroupConsumer, error: Exception) -> None:
        is_young = time.monotonic() - producer.began_at < _SURELY_FENCED * self._site.settings.transaction_timeout_s
        by_another = is_young and isinstance(
            error, kafka_errors.ProducerFencedError | kafka_errors.InvalidProducerEpochError
        )
        if by_another or isinstance(error, kafka_errors.FencedInstanceIdError):
            self._supersede()
        elif isinstance(error, FENCING):
            consumer.forget_membership()
        if not producer.alive:
            self._producer = None
        if not producer.alive and not isinstance(error, RecordRefused):  # that one was not committed
            _log.warning("commit_in_doubt", member=self._said, error=f"{type(error).__name__}: {error}")
            consumer.hold(self._owned.inputs(self._owned.epochs))
            self._buffer.clear()
            self._owned.win(list(self._owned.epochs))

    def _supersede(self) -> None:
        _log.warning("member_name_taken", member=self._said)
        self._superseded = True
        self._disconnect()

    def _require(self, partitions: Iterable[int], *, state: bool) -> None:
        if state and self._store is None:
            raise StreamError(f"{self._said} was joined without a store")
        for partition in partitions:
            if partition not in self._owned.epochs:
                raise Fenced(f"{self._said} does not own partition {partition}")
