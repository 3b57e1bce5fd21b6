"""The files of a broker: the segment of a topic with one partition, and the batches in it."""

from __future__ import annotations

from pathlib import Path

from stream.kafka.log import KafkaLog
from tests.support.kafka_broker import Broker

HEADER_BYTES = 61  # byte offset in a batch; its records follow


def segment(broker: Broker, log: KafkaLog, topic: str = "in") -> Path:
    (file,) = (broker.data / f"{log._site.full(topic)}-0").glob("*.log")
    return file


def batches(file: Path) -> list[tuple[int, int]]:
    """(first offset, byte) of each batch in the file."""
    data, at, found = file.read_bytes(), 0, []
    while at + HEADER_BYTES <= len(data) and (size := int.from_bytes(data[at + 8 : at + 12], "big")):
        found.append((int.from_bytes(data[at : at + 8], "big"), at))
        at += 12 + size
    return found


def flip(file: Path, byte: int, bits: int = 1) -> None:
    with file.open("r+b") as opened:
        opened.seek(byte)
        before = opened.read(1)[0]
        opened.seek(byte)
        opened.write(bytes([before ^ bits]))
