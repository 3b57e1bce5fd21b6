"""Unreadable batches in the Kafka log, without a broker."""

from __future__ import annotations

import struct
from typing import Any

import pytest

kafka = pytest.importorskip("kafka")

from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder  # noqa: E402
from kafka.record.memory_records import MemoryRecords  # noqa: E402
from kafka.record.util import calc_crc32c  # noqa: E402

from stream.kafka.client import CheckedRecords  # noqa: E402
from stream.kafka.damage import damage_of  # noqa: E402

AT = kafka.TopicPartition("in", 0)
CRC_AT, COUNT_AT = 17, 57  # bytes of a batch


def batch(base: int, *names: str) -> bytearray:
    """A batch of records, each with a header of this name."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for offset, name in enumerate(names):
        builder.append(offset, 7, b"k", b"value", [(name, b"v")])
    made = bytearray(builder.build())
    struct.pack_into(">q", made, 0, base)
    return made


def sealed(made: bytearray) -> bytearray:
    """The batch with a valid CRC, as its writer would have set it."""
    struct.pack_into(">I", made, CRC_AT, calc_crc32c(memoryview(made)[DefaultRecordBatch.ATTRIBUTES_OFFSET :]))
    return made


def read(*batches: bytearray) -> list[Any]:
    """The records of a fetch."""
    found: list[Any] = CheckedRecords(0, AT, MemoryRecords(b"".join(batches))).take()
    return found


def test_a_record_that_cannot_be_parsed_is_damage() -> None:
    """A header name that is not UTF-8 damages its record and the rest of its batch; the next batch is read."""
    bad = sealed(bytearray(bytes(batch(0, "xx", "yy", "zz")).replace(b"yy", b"\xff\xff")))
    found = read(bad, batch(3, "xx"))
    assert [(record.offset, bool(damage_of(record))) for record in found] == [
        (0, False),
        (1, True),
        (2, True),
        (3, False),
    ]
    assert "offsets 0 to 2 of in, partition 0, is damaged" in damage_of(found[1])


@pytest.mark.parametrize(("at", "form", "value"), [(23, ">i", -1), (23, ">i", 1 << 30), (COUNT_AT, ">i", 1 << 30)])
def test_impossible_numbers_of_records_are_bounded(at: int, form: str, value: int) -> None:
    """If a batch's record count is damaged, its offsets are damaged, and no others."""
    bad = batch(0, "xx", "yy", "zz")
    struct.pack_into(form, bad, at, value)
    assert [(record.offset, bool(damage_of(record))) for record in read(bad)] == [(0, True), (1, True), (2, True)]


def test_what_cannot_be_a_batch_is_an_error() -> None:
    """Damage outside the CRC, such as a first offset below the position, raises kafka-python's error."""
    bad = batch(0, "xx")
    bad[-1] ^= 1
    partition = CheckedRecords(0, AT, MemoryRecords(bytes(batch(5, "xx") + bad)))
    assert [record.offset for record in partition.take()] == [5]
    with pytest.raises(kafka.errors.CorruptRecordError, match="behind offset 6"):
        partition.take()


DELTA_AT = 23


@pytest.mark.parametrize("at", [DELTA_AT, COUNT_AT])
@pytest.mark.parametrize("value", [0, 1, 40, 1000])
def test_the_following_batch_bounds_a_damaged_one(at: int, value: int) -> None:
    """If either count of a batch is damaged, all offsets up to the next batch are damaged; that batch is read."""
    bad = batch(3, "xx", "yy", "zz")
    struct.pack_into(">i", bad, at, value)
    found = read(batch(0, "xx", "yy", "zz"), bad, batch(6, "xx"))
    assert [record.offset for record in found] == list(range(7))
    assert [record.offset for record in found if damage_of(record)] == [3, 4, 5]


@pytest.mark.parametrize("at", [DELTA_AT, COUNT_AT])
@pytest.mark.parametrize("value", [0, 1, 40])
def test_a_damaged_batch_at_the_end_costs_its_own_offsets(at: int, value: int) -> None:
    """A damaged last batch, fetched again at the next position, gives each of its offsets once, and no others."""
    bad = batch(0, "xx", "yy", "zz")
    struct.pack_into(">i", bad, at, value)
    position, found = 0, []
    while position < 3:  # after its last offset a broker no longer returns this batch
        taken = CheckedRecords(position, AT, MemoryRecords(bytes(bad))).take()
        assert taken
        found += [record.offset for record in taken]
        position = found[-1] + 1
    assert found == [0, 1, 2]


def test_a_compacted_batch_keeps_its_last_offset() -> None:
    """Fewer records than offsets is not damage of a count: the offsets up to the last one are damaged."""
    bad = batch(0, "xx", "yy")
    struct.pack_into(">i", bad, DELTA_AT, 5)
    found = read(bad, batch(9, "xx"))
    assert [record.offset for record in found] == [0, 1, 2, 3, 4, 5, 9]
