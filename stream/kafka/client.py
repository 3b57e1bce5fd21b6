"""Wrappers of the kafka-python clients. Only this module uses private parts of kafka-python; a test lists them.

kafka-python calls a rebalance listener on its network thread, where blocking would stop the heartbeats. So the listener
only records the change and pauses newly assigned partitions; the member follows in its own thread.

kafka-python waits for ever for the answers of a transaction, so an absent broker would block a stage. The waits here
have a limit. A transaction without an answer is in doubt: the broker may have committed it. The producer is then dead;
building the next producer of the same transactional id settles the outcome.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka import errors as kafka_errors
from kafka.consumer.fetcher import Fetcher
from kafka.structs import MemberState

from stream.kafka.assignor import MirroringAssignor
from stream.kafka.damage import CheckedBatches
from stream.kafka.errors import translated_errors
from stream.text.times import DAY_MS

_OFFSETS_KEPT_MS = 100 * 365 * DAY_MS
_ABORT_S = 2.0  # after this, the next producer of the same transactional id aborts


class AdminClient(KafkaAdminClient):  # type: ignore[misc]  # kafka-python has no types
    """An admin client that can ask for `stable` offsets: an offset in an open transaction is then an error.

    Offsets set by this client never expire. By default a broker forgets the offsets of a group without members after a
    week; version 4 of the request is the last with a retention time.
    """

    stable = True

    def broker_version(self) -> str:
        """The broker's API level as a Kafka version; known after its first answer."""
        return ".".join(str(part) for part in self._manager.broker_version)

    @staticmethod
    def _alter_group_offsets_request(group_id: str, offsets: Any) -> Any:
        request = KafkaAdminClient._alter_group_offsets_request(group_id, offsets)
        request.retention_time_ms, request._max_version = _OFFSETS_KEPT_MS, 4
        return request

    def _list_group_offsets_requests(self, group_specs: Any) -> Iterator[Any]:
        for group, request in super()._list_group_offsets_requests(group_specs):
            request.require_stable = self.stable
            yield group, request


class CheckedRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
    """Fetched records; unreadable ones become records with damage, see `damage_of`."""

    def __init__(self, fetch_offset: int, tp: TopicPartition, records: Any, **options: Any) -> None:
        options["check_crcs"] = False  # checked per batch
        super().__init__(fetch_offset, tp, CheckedBatches(tp, records, fetch_offset), **options)

    def _contains_abort_marker(self, batch: Any) -> bool:
        # an unreadable marker also ends a transaction, and only aborted ones are waited for
        return bool(batch.is_marker if batch.fault else super()._contains_abort_marker(batch))


class Consumer(KafkaConsumer):  # type: ignore[misc]
    """A consumer that reads past damage, without a group."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(**options)
        self._fetcher.PartitionRecords = CheckedRecords

    def next_offset(self, at: TopicPartition) -> int | None:
        """The next offset to fetch, after transaction markers; None while unknown."""
        held = self._subscription.assignment.get(at)
        return None if held is None or held.position is None else int(held.position.offset)

    def learn_topics(self) -> None:
        """Fetch the metadata of the topics now; kafka-python alone would take 100 ms or more."""
        cluster = self._cluster
        patience_ms, cluster.config["retry_backoff_ms"] = cluster.config["retry_backoff_ms"], 0
        try:
            self._net.run(self._manager.wait_for, cluster.request_update(), self.config["bootstrap_timeout_ms"])
        finally:
            cluster.config["retry_backoff_ms"] = patience_ms


class GroupConsumer(Consumer, ConsumerRebalanceListener):  # type: ignore[misc]
    """A static member of a group, on a fixed set of topics."""

    def __init__(self, topics: Mapping[str, int], options: Mapping[str, Any]) -> None:
        """Connect; the polls join the group. `topics`: name -> partitions. Raises errors of kafka-python."""
        self._assignor = MirroringAssignor(topics)
        self._astray: dict[TopicPartition, int] = {}
        self._noting = threading.Lock()
        self._lost: set[TopicPartition] = set()
        self._won: set[TopicPartition] = set()
        super().__init__({**options, "partition_assignment_strategy": [self._assignor]})
        self.subscribe(topics=list(topics), listener=self)
        self.learn_topics()  # otherwise the arrival of metadata would trigger a second join

    def fetch(self, timeout_s: float, max_records: int) -> list[Any]:
        """Fetch records of owned, unpaused partitions and keep the membership. Raises LogUnavailable or Fenced."""
        with translated_errors(f"poll of group {self.config['group_id']}"):
            self._take_in_join()
            # kafka-python 3.0 returns the parked records of a resumed partition only while this slot for parsed records
            # is empty; it may hold a batch of which all were returned
            if self._fetcher._next_partition_records is not None and not self._fetcher._next_partition_records:
                self._fetcher._next_partition_records = None
            try:
                polled = self.poll(timeout_ms=max(0, int(timeout_s * 1000)), max_records=max_records)
            except kafka_errors.NoOffsetForPartitionError as error:  # newly assigned: positioned later
                self.place(dict.fromkeys(error.args[0], 0))
                return []
            except kafka_errors.OffsetOutOfRangeError as error:
                self._astray.update(error.args[0])
                return []
            except kafka_errors.InconsistentGroupProtocolError as error:
                # Raised if a heartbeat of the previous generation was refused meanwhile: kafka-python 3.0 then forgets
                # the generation that it is joining, and the broker's answer does not match.
                if "SyncGroupResponse" not in str(error):
                    raise
                return []  # the next poll joins again
        return [record for records in polled.values() for record in records]

    def take_changes(self) -> tuple[set[TopicPartition], set[TopicPartition]]:
        """(lost, won) since the last call, to apply in this order; a partition lost and regained is in both."""
        with self._noting:
            lost, won = self._lost, self._won
            self._lost, self._won = set(), set()
            return lost, won

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        with self._noting:
            self._lost |= set(revoked)
            self._won -= set(revoked)

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        self._assignor.forget()
        self.on_partitions_revoked(lost)

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        with self._noting:
            self._won |= set(assigned)
        self.hold(assigned)

    def take_unknown_positions(self) -> dict[TopicPartition, int]:
        """Positions outside of the broker's range since the last call; they repeat until they are reset."""
        astray, self._astray = self._astray, {}
        return {at: offset for at, offset in astray.items() if self.next_offset(at) == offset}

    def reachable(self) -> bool:
        return not self._coordinator.coordinator_unknown()

    def settled(self) -> bool:
        return bool(self._coordinator.stable() and not self._coordinator.rejoin_needed)

    def displaced(self) -> bool:
        """Whether another process has taken the name. kafka-python only stops its heartbeats then."""
        coordinator = self._coordinator
        return bool(coordinator.stable() and not coordinator._heartbeat_enabled and not coordinator.rejoining)

    def stable_offsets(self, at: Iterable[TopicPartition], timeout_s: float) -> dict[TopicPartition, int]:
        """Existing committed offsets, after open transactions on them have ended. Raises LogUnavailable."""
        with translated_errors(f"committed offsets of group {self.config['group_id']}"):
            offsets = self._coordinator.fetch_committed_offsets(set(at), timeout_ms=int(timeout_s * 1000))
        return {tp: known.offset for tp, known in offsets.items()}

    def place(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        held = self.assignment()
        for at, offset in offsets.items():
            if at in held:
                self.seek(at, offset or 0)

    def hold(self, at: Iterable[TopicPartition]) -> None:
        """Pause these partitions; ignores those that are not assigned."""
        self.pause(*self.assignment().intersection(at))

    def fetch_only(self, at: Iterable[TopicPartition]) -> None:
        """Fetch only from these partitions, as far as they are assigned."""
        assigned = self.assignment()
        self.pause(*assigned.difference(at))
        self.resume(*assigned.intersection(at))

    def forget_membership(self) -> None:
        """Join again at the next poll without claims, because this generation is over."""
        self._assignor.forget()
        self._coordinator.reset_generation()

    def _take_in_join(self) -> None:
        """Complete a join that was answered between two polls, as `join_group_async` does.

        kafka-python 3.0 discards such an answer and joins again at the next poll: with short polls, for ever.
        """
        joined = self._coordinator._join_task
        if joined is None or not joined.is_done:
            return
        if joined.succeeded():
            self._net.run(self._complete_join, joined.value)
        elif isinstance(joined.exception, kafka_errors.FencedInstanceIdError):
            raise joined.exception

    async def _complete_join(self, assignment: bytes) -> None:
        coordinator = self._coordinator
        coordinator._join_task = None
        generation = coordinator._generation
        if generation.is_lost():
            return
        with coordinator._lock:
            coordinator.rejoining = False
            coordinator.rejoin_needed = False
            coordinator.state = MemberState.STABLE
            coordinator._enable_heartbeat()
        await coordinator._on_join_complete_async(
            generation.generation_id, generation.member_id, generation.protocol, assignment
        )


class ProducerRecord(NamedTuple):
    """A record to write; `topic` is the full name on Kafka."""

    topic: str
    partition: int
    key: bytes
    value: bytes | None
    headers: list[tuple[str, bytes]]
    timestamp_ms: int | None


class RecordRefused(Exception):
    """The broker does not take record number `index` of a transaction: it is too large."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index


class TransactionalProducer(KafkaProducer):  # type: ignore[misc]
    """An idempotent producer that only writes in transactions."""

    alive = True  # False: build another one
    began_at = 0.0  # time.monotonic of the last transaction's begin

    def transact(
        self, records: Sequence[ProducerRecord], offsets: Mapping[Any, Any], group: Any, timeout_s: float
    ) -> list[int]:
        """Write everything in one transaction; returns the records' offsets. `group`: the consumer's group_metadata().

        After an error of kafka-python nothing is visible, unless `alive` is False: then the transaction is in doubt.
        """
        deadline = time.monotonic() + timeout_s
        self.began_at = time.monotonic()
        sent: list[Any] = []
        try:
            self.begin_transaction()
            for r in records:
                sent.append(self.send(r.topic, r.value, r.key, r.headers, r.partition, r.timestamp_ms))
            added = self._transaction_manager.send_offsets_to_transaction(offsets, group) if offsets else None
            with suppress(kafka_errors.UnknownError):  # kafka-python's flush ends so when the broker has a batch split
                self.flush(_left(deadline))
            written = [future.get(timeout=_left(deadline)).offset for future in sent]
            if added is not None:
                self._await(added, deadline)
            ended = self._transaction_manager.begin_commit()
            self._sender.wakeup()
            self._await(ended, deadline)
        except Exception as error:
            cause = _refusal(sent) or self._transaction_manager.last_error or error
            self._give_up(error)
            if isinstance(cause, RecordRefused):
                self.kill()  # kafka-python does not take back the sequence numbers of refused records
            if isinstance(error, ValueError):  # "Unrecognized partition": the topic was recreated with more partitions
                self.kill()  # the next producer refreshes its metadata
                raise kafka_errors.UnknownTopicOrPartitionError(str(error)) from error
            raise cause from error
        return written

    def kill(self) -> None:
        self.alive = False
        self._unregister_cleanup()
        self._sender.force_close()
        self._closed = True

    def _await(self, result: Any, deadline: float) -> None:
        if not result.wait(timeout_ms=_left(deadline) * 1000):
            raise kafka_errors.KafkaTimeoutError("no answer of the transaction coordinator in time")

    def _give_up(self, error: Exception) -> None:
        """Abort. Without an answer the producer is dead, and its successor ends the transaction."""
        if isinstance(error, kafka_errors.KafkaTimeoutError):
            self.kill()
            return
        try:
            ended = self._transaction_manager.begin_abort()
            self._sender.wakeup()
            self._await(ended, time.monotonic() + _ABORT_S)
        except Exception:  # noqa: BLE001  # after any error its state is unknown; the cause is raised above
            self.kill()


def build_producer(options: Mapping[str, Any]) -> TransactionalProducer:
    """Connect, and fence earlier producers. Raises Fenced, LogUnavailable or StreamError."""
    with translated_errors(f"producer {options['transactional_id']}"):
        producer = TransactionalProducer(**options)
        try:
            producer.init_transactions()  # fences earlier producers and ends their transactions, within max_block_ms
        except BaseException:
            producer.kill()
            raise
        return producer


def _refusal(sent: Sequence[Any]) -> RecordRefused | None:
    kinds = kafka_errors.MessageSizeTooLargeError, kafka_errors.RecordListTooLargeError
    refused = (index for index, future in enumerate(sent) if isinstance(future.exception, kinds))
    return next(map(RecordRefused, refused), None)


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
