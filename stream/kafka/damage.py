"""Reads past damaged batches: their offsets become records with damage.

kafka-python raises CorruptRecordError if the CRC of a batch fails or a record cannot be parsed, and never gets past
that batch. This module wraps the batches. The CRC covers all of a batch except its first offset, its size and its
format. If one of these is damaged, neither the broker nor kafka-python finds the next batch, and the error persists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kafka import TopicPartition
from kafka import errors as kafka_errors

_FORMAT = 2
_LARGEST = 1 << 20  # records of a batch: one of 4.5 MiB cannot have more


class _Damaged(NamedTuple):
    """A record in kafka-python's form; the extra field `checksum` describes the damage."""

    offset: int
    timestamp: int
    timestamp_type: int
    checksum: str
    key: bytes = b""
    value: bytes = b""
    headers: tuple[()] = ()
    size_in_bytes: int = 0


def damage_of(record: Any) -> str:
    """The damage of a record that was read; "" = none."""
    return record.checksum if isinstance(record.checksum, str) else ""


class CheckedBatches:
    """The checked batches of a fetch; unreadable ones become records with damage, see `damage_of`."""

    def __init__(self, tp: TopicPartition, records: Any, fetch_offset: int) -> None:
        self._tp = tp
        self._records = records
        self._fetch_offset = fetch_offset
        self._held: Any = None  # a batch read ahead
        self._next = 0  # lower bound of the next offset

    def next_batch(self) -> Any:
        batch, self._held = self._held if self._held is not None else self._records.next_batch(), None
        if batch is None or batch.magic < _FORMAT:
            return batch
        fault = "" if batch.validate_crc() else "its checksum (CRC) differs"
        if fault and (batch.magic > _FORMAT or batch.base_offset < self._next):
            raise kafka_errors.CorruptRecordError(f"a batch of {self._tp} behind offset {self._next} cannot be found")
        last = batch.last_offset
        if fault:
            self._held = self._records.next_batch()
            last = max(self._fetch_offset, _last_offset(batch, self._held))
        self._next = last + 1
        return _Batch(self._tp, batch, last, fault)


class _Batch:
    """A batch in the form that the fetcher of kafka-python reads; unreadable parts become damaged records."""

    def __init__(self, tp: TopicPartition, batch: Any, last_offset: int, fault: str) -> None:
        self._tp = tp
        self._batch = batch
        self.fault = fault
        self.last_offset = last_offset
        self.next_offset = last_offset + 1
        self.is_marker = batch.is_control_batch
        self.is_control_batch = self.is_marker and not fault  # the control bit itself may be damaged

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        unread, fault = self._batch.base_offset, self.fault
        if not fault:
            try:
                for record in self._batch:
                    yield record
                    unread = record.offset + 1
                return
            except Exception as error:  # noqa: BLE001 - parsers and codecs of several libraries, on bytes of anybody
                fault = f"{type(error).__name__}: {error}"
        first, last = self._batch.base_offset, self.last_offset
        said = f"the batch of offsets {first} to {last} of {self._tp.topic}, partition {self._tp.partition}, is damaged"
        for offset in range(unread, last + 1):
            yield _Damaged(offset, self._batch.max_timestamp, self._batch.timestamp_type, f"{said}: {fault}")


def _last_offset(batch: Any, following: Any) -> int:
    """The last offset of a damaged batch. Two fields of the batch give it, and either may be damaged.

    If they differ, the following batch decides. Without one the smaller number is safe: the next fetch begins within
    the batch. Only a compacted batch has fewer records than offsets.
    """
    first = int(batch.base_offset)
    lasts = [first + n for n in (batch.last_offset_delta, batch.records_count - 1) if 0 <= n < _LARGEST] or [first]
    if following is None or following.base_offset <= first:
        return int(min(lasts))
    end = int(following.base_offset) - 1
    return int(min(lasts[0], end)) if lasts[0] >= lasts[-1] else end
