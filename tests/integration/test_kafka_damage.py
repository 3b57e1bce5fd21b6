"""Flipped bits in the broker's files, and foreign headers, are damage messages; later records are read."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer

from stream.kafka.log import KafkaLog
from stream.log.contract import At, CleanupPolicy, Commit, Log, Message, Output, StateChange, Topic
from stream.log.errors import StreamError
from tests.support.kafka_broker import Broker
from tests.support.logs.kafka_files import HEADER_BYTES, batches, flip, segment
from tests.support.waiting import PATIENCE_S
from tests.support.worlds import drain, settle

pytestmark = pytest.mark.kafka
DELTA_AT, ATTRIBUTES_AT = 23, 21  # bytes of the batch header: last offset minus first; attributes


@pytest.fixture
def log(one_broker: Broker, tmp_path: Path) -> Iterator[KafkaLog]:
    """A separate log on the broker, with the topics `in` and `out`."""
    opened = KafkaLog(one_broker.address, prefix=f"t{uuid.uuid4().hex[:12]}.", state_folder=tmp_path / "state")
    opened.create([Topic("in", 1), Topic("out", 1), Topic("state.s", 1, CleanupPolicy.COMPACT)])
    yield opened
    opened.close()


def append_batches(log: Log, topic: str = "in", batches: int = 4, records: int = 3) -> None:
    """Batches of a few records, each in its own transaction, and so followed by a marker."""
    for batch in range(batches):
        log.append([Output(topic, 0, b"k", f"{batch}.{n}".encode(), {"run": "r"}) for n in range(records)])


def read_everywhere(log: KafkaLog) -> Iterator[list[Message]]:
    """The records of `in`, read in every way."""
    yield list(log.read("in", 0))
    yield list(log.read_all({At("in", 0): (0, log.end("in")[0])}))
    member = log.join("g", ["in"], member="m")
    settle([member], 1)
    count = len(list(log.read("in", 0)))
    yield drain(member, count)
    member.close()


@pytest.mark.parametrize("place", ["a record", "its last offset", "its attributes"])
def test_a_batch_that_changed_is_damage_and_the_others_are_read(log: KafkaLog, one_broker: Broker, place: str) -> None:
    """Each offset of the batch is a message whose damage names topic, partition and offsets; all others are read."""
    append_batches(log)
    file = segment(one_broker, log)
    first, at = next(found for found in batches(file) if found[0] == 4)  # the second batch: offset 3 is a marker
    flip(
        file,
        at + {"a record": HEADER_BYTES + 9, "its last offset": DELTA_AT, "its attributes": ATTRIBUTES_AT + 1}[place],
        32,
    )
    for found in read_everywhere(log):
        assert [m.offset for m in found if m.damage] == [4, 5, 6]
        assert [m.value for m in found] == [
            b"" if 4 <= m.offset < 7 else f"{m.offset // 4}.{m.offset % 4}".encode() for m in found
        ]
        assert len(found) == 12
        bad = found[3]
        assert (bad.key, bad.headers, bad.partition) == (b"", {}, 0)
        assert f"offsets 4 to 6 of {log._site.full('in')}, partition 0, is damaged: its checksum (CRC)" in bad.damage
    assert first == 4


def test_a_damaged_marker_hides_nothing(log: KafkaLog, one_broker: Broker) -> None:
    """A damaged commit marker is reported at its offset, and the records before and after it are read."""
    append_batches(log, batches=3)
    file = segment(one_broker, log)
    flip(file, next(at for offset, at in batches(file) if offset == 3) + HEADER_BYTES + 5)
    found = list(log.read("in", 0))
    assert [m.offset for m in found if m.damage] == [3]
    assert [m.value for m in found if not m.damage] == [f"{b}.{n}".encode() for b in range(3) for n in range(3)]


def test_headers_of_strangers_are_damage(log: KafkaLog, one_broker: Broker) -> None:
    """A header value that is not UTF-8 is damage; the records around it are read."""
    producer = KafkaProducer(bootstrap_servers=one_broker.address, acks="all", linger_ms=0)
    for name, value in (("run", b"r"), ("run", b"\xff\xfe"), ("run", b"r")):
        producer.send(log._site.full("in"), b"v", b"k", [(name, value)]).get(PATIENCE_S)
    producer.close()
    found = list(log.read("in", 0))
    assert [(m.value, bool(m.damage)) for m in found] == [(b"v", False), (b"", True), (b"v", False)]
    assert f"a header of {log._site.full('in')}, partition 0 offset 1" in found[1].damage


def test_a_damaged_changelog_is_refused(log: KafkaLog, one_broker: Broker, tmp_path: Path) -> None:
    """State that cannot be restored is reported with its place, because counts without it would be wrong."""
    member = log.join("g", ["in"], member="m", store="s")
    settle([member], 1)
    member.commit(Commit(state={0: [StateChange(b"key", b"value")]}))
    member.close()
    file = segment(one_broker, log, "state.s")
    flip(file, batches(file)[0][1] + HEADER_BYTES + 5)
    other = KafkaLog(one_broker.address, prefix=log._site.prefix, state_folder=tmp_path / "other")
    with pytest.raises(StreamError, match=r"offsets 0 to 0 of .*state\.s, partition 0, is damaged"):
        list(other.scan_state("s", 0))
    other.close()
