"""A transactional producer whose every wait ends: one call makes a transaction, and says what is known after it.

kafka-python waits for ever for the answers of a transaction, so a broker that went away would hold a stage until it
came back. The waits here have an end. A transaction that ends without an answer is in doubt: the broker may have
committed it. The producer is then dead; building the next one of the same transactional id settles the matter.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kafka import KafkaProducer
from kafka import errors as kafka_errors

from stream.kafka.errors import translated

_ABORT_S = 2.0  # an abort that takes longer is left to the next producer of the same transactional id


class ProducerRecord(NamedTuple):
    """A record to write; `topic` is the full name on Kafka."""

    topic: str
    partition: int
    key: bytes
    value: bytes | None
    headers: list[tuple[str, bytes]]
    timestamp_ms: int | None


class TransactionalProducer(KafkaProducer):  # type: ignore[misc]  # kafka-python has no types
    """An idempotent producer that works in transactions only."""

    alive = True  # False: build another one
    began_at = 0.0  # time.monotonic of the last transaction's begin

    def transact(
        self,
        records: Sequence[ProducerRecord],
        offsets: Mapping[Any, Any],
        group: Any,
        timeout_s: float,
    ) -> list[int]:
        """Write all as one transaction; returns the records' offsets. `group`: the consumer's group_metadata().

        After an error of kafka-python nothing is visible, unless `alive` is False: then the transaction is in doubt.
        """
        deadline = time.monotonic() + timeout_s
        self.began_at = time.monotonic()
        try:
            self.begin_transaction()
            sent = [self.send(r.topic, r.value, r.key, r.headers, r.partition, r.timestamp_ms) for r in records]
            added = self._transaction_manager.send_offsets_to_transaction(offsets, group) if offsets else None
            self.flush(_left(deadline))
            written = [future.get(timeout=_left(deadline)).offset for future in sent]
            if added is not None:
                self._await(added, deadline)
            ended = self._transaction_manager.begin_commit()
            self._sender.wakeup()
            self._await(ended, deadline)
        except Exception as error:
            cause = self._transaction_manager.last_error or error
            self._give_up(error)
            if isinstance(error, ValueError):  # "Unrecognized partition": the topic was made again, with more of them
                self.kill()  # the next producer asks the broker
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
        """Abort; without an answer the producer is dead, and its successor ends the transaction."""
        if isinstance(error, kafka_errors.KafkaTimeoutError):
            self.kill()
            return
        try:
            ended = self._transaction_manager.begin_abort()
            self._sender.wakeup()
            self._await(ended, time.monotonic() + _ABORT_S)
        except Exception:  # noqa: BLE001  # whatever it is, this producer's state is unknown; the cause is raised above
            self.kill()


def build_producer(options: Mapping[str, Any]) -> TransactionalProducer:
    """Connect and fence. Raises Fenced, LogUnavailable or StreamError."""
    with translated(f"producer {options['transactional_id']}"):
        producer = TransactionalProducer(**options)
        try:
            producer.init_transactions()  # fences earlier ones and ends their transactions, up to max_block_ms
        except BaseException:
            producer.kill()
            raise
        return producer


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
