"""The Kafka log and bare kafka-python with the same settings: transactions per second, 15 KB records out and in.

The peers are `KafkaProducer` and `KafkaConsumer` of kafka-python, which the log uses; the ratio is the cost of the
contract. Needs the test broker (tests/broker/install.sh) or FARMWATCH_TEST_KAFKA. Run: python -m
tests.bench.bench_kafka
"""

from __future__ import annotations

import random
import statistics
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from stream.kafka.log import KafkaLog
from stream.kafka.settings import KafkaSettings
from stream.log.contract import At, CleanupPolicy, Commit, Member, Output, StateChange, Topic
from tests.bench.timing import wall_and_cpu_s
from tests.support.kafka_broker import broker
from tests.support.worlds import settle

RUNS = 5
TRANSACTIONS = 100
RECORDS = 2000
BATCH = 500
PARTITIONS = 4
_RECORD_BYTES = 15_000


class _Bench:
    """A log, a member that owns all partitions, and the same without the log."""

    def __init__(self, folder: Path) -> None:
        self.prefix = f"bench{uuid.uuid4().hex[:8]}."
        self.settings = KafkaSettings()
        self.log = KafkaLog(broker(), prefix=self.prefix, state_folder=folder)
        names = ("in", "out", "big")
        topics = [Topic(name, PARTITIONS) for name in names]
        self.log.create([*topics, Topic("state.s", PARTITIONS, CleanupPolicy.COMPACT)])
        self.member = self._joined("bench", "in", "s")
        self.bare: Any = KafkaProducer(**self.settings.producer_options(broker(), f"{self.prefix}bare"))
        self.bare.init_transactions()
        chance = random.Random(1)
        # As a page record: mostly compressed already, with a part that is not.
        self.bodies = [chance.randbytes(_RECORD_BYTES - 3000) + b"headers " * 375 for _ in range(BATCH)]

    def close(self) -> None:
        self.member.close()
        self.bare.close(timeout=5)
        self.log.close()

    def transactions(self, count: int) -> None:
        """One output, one offset and one change of state per commit."""
        for number in range(count):
            output = Output("out", number % PARTITIONS, b"k", b"v" * 100)
            at = At("in", number % PARTITIONS)
            self.member.commit(Commit([output], {at: 0}, {at.partition: [StateChange(b"k%d" % number, b"v" * 100)]}))

    def bare_transactions(self, count: int) -> None:
        """The same records and offsets, sent by hand."""
        group = f"{self.prefix}bare"
        for number in range(count):
            partition = number % PARTITIONS
            self.bare.begin_transaction()
            self.bare.send(f"{self.prefix}out", b"v" * 100, b"k", [], partition)
            self.bare.send(f"{self.prefix}state.s", b"v" * 108, b"k%d" % number, [], partition)
            offsets = {TopicPartition(f"{self.prefix}in", partition): OffsetAndMetadata(0, "", -1)}
            self.bare.send_offsets_to_transaction(offsets, group)
            self.bare.commit_transaction()

    def out(self, count: int) -> None:
        """15 KB records in commits of BATCH."""
        for start in range(0, count, BATCH):
            self.log.append(
                [Output("big", n % PARTITIONS, b"k", self.bodies[n % BATCH]) for n in range(start, start + BATCH)]
            )

    def bare_out(self, count: int) -> None:
        """The same by the bare producer."""
        for start in range(0, count, BATCH):
            self.bare.begin_transaction()
            for n in range(start, start + BATCH):
                self.bare.send(f"{self.prefix}big", self.bodies[n % BATCH], b"k", [], n % PARTITIONS)
            self.bare.commit_transaction()

    def come_in(self, count: int) -> None:
        """15 KB records through `Member.poll`, from the start."""
        member = self._joined(f"in{uuid.uuid4().hex[:8]}", "big", None)
        polled = 0
        while polled < count:
            polled += len(member.poll(1, BATCH, 1 << 30))
        member.close()

    def bare_come_in(self, count: int) -> None:
        """The same by the bare consumer, in a group as well."""
        options = self.settings.reader_options(broker())
        consumer = KafkaConsumer(f"{self.prefix}big", group_id=f"{self.prefix}{uuid.uuid4().hex[:8]}", **options)
        polled = 0
        while polled < count:
            polled += sum(len(records) for records in consumer.poll(1000, max_records=BATCH).values())
        consumer.close()

    def _joined(self, group: str, topic: str, store: str | None) -> Member:
        member = self.log.join(group, [topic], member="bench", store=store)
        settle([member], PARTITIONS)
        return member


def _measured(work: Callable[[int], None], count: int) -> tuple[float, float]:
    """(count per second, CPU seconds of this process per 1000)."""
    wall_s, cpu_s = wall_and_cpu_s(lambda: work(count))
    return count / wall_s, cpu_s / count * 1000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = _Bench(Path(folder))
        rows: list[tuple[str, int, Callable[[int], None], Callable[[int], None]]] = [
            ("commits (output + offset + state)", TRANSACTIONS, bench.transactions, bench.bare_transactions),
            (f"15 KB records out, {BATCH} a commit", RECORDS, bench.out, bench.bare_out),
            ("15 KB records in, join included", RECORDS, bench.come_in, bench.bare_come_in),
        ]
        print(f"{'':36}{'log /s':>10}{'bare /s':>10}{'ratio':>8}{'log CPU s/1000':>16}{'bare':>8}")
        for what, count, ours, bare in rows:
            ours(BATCH), bare(BATCH)  # the broker's code is compiled, and the connections exist
            pairs = [(_measured(ours, count), _measured(bare, count)) for _ in range(RUNS)]
            mine, theirs = (statistics.median(pair[side][0] for pair in pairs) for side in (0, 1))
            cpu, their_cpu = (statistics.median(pair[side][1] for pair in pairs) for side in (0, 1))
            print(f"{what:36}{mine:10.0f}{theirs:10.0f}{mine / theirs:8.2f}{cpu:16.2f}{their_cpu:8.2f}")
        bench.close()


if __name__ == "__main__":
    main()
