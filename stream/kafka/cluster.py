"""Shared parts of the Kafka log and its members: address, names, settings, and the format of records."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kafka import TopicPartition

from stream.kafka.admin import KafkaAdmin
from stream.kafka.client import ProducerRecord
from stream.kafka.damage import damage_of
from stream.kafka.reader import Restore
from stream.kafka.settings import BATCH_CAP_BYTES, LOCAL_STATE_MAX_AGE_MS, KafkaSettings, instance_name
from stream.kafka.state import LocalState
from stream.log.contract import NO_HEADERS, Clock, Message, Output, check_size
from stream.log.errors import RecordTooLarge, UnknownTopic


class KafkaSite:
    """One farmwatch on a cluster; its prefix separates it from others."""

    def __init__(self, bootstrap: str, prefix: str, state_folder: Path, settings: KafkaSettings, clock: Clock) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.settings = settings
        self.clock = clock
        self.reader_options = settings.reader_options(bootstrap)
        self.member_options = partial(settings.member_options, bootstrap)  # group and member are full names
        self.producer_options = partial(settings.producer_options, bootstrap)
        self.admin = KafkaAdmin(settings.connection_options(bootstrap), settings.request_timeout_s)
        self._state_folder = state_folder
        self._partitions: Mapping[str, int] = {}

    def full(self, name: str) -> str:
        return self.prefix + name

    def short(self, full: str) -> str:
        return full[len(self.prefix) :]

    def topics(self) -> dict[str, int]:
        self._partitions = self.admin.topics()
        return {self.short(name): n for name, n in self._partitions.items() if name.startswith(self.prefix)}

    def partitions(self, topic: str) -> int:
        full = self.full(topic)
        if full not in self._partitions:
            self._partitions = self.admin.topics()
        if full not in self._partitions:
            raise UnknownTopic(f"topic {full!r} does not exist")
        return self._partitions[full]

    def forget(self, topics: Iterable[str]) -> None:
        """Look up these topics (full names) again at their next use, because they may have been removed."""
        gone = set(topics)
        self._partitions = {name: count for name, count in self._partitions.items() if name not in gone}

    def at(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(self.full(topic), p) for p in range(self.partitions(topic))]

    def one(self, topic: str, partition: int) -> TopicPartition:
        """A partition of a topic (short name). Raises UnknownTopic, also for a partition out of range."""
        if not 0 <= partition < self.partitions(topic):
            self.forget([self.full(topic)])  # another process may have removed and recreated it
        if not 0 <= partition < self.partitions(topic):
            raise UnknownTopic(f"topic {self.full(topic)!r} has {self.partitions(topic)} partitions, no {partition}")
        return TopicPartition(self.full(topic), partition)

    def record(self, output: Output) -> ProducerRecord:
        check_size(output)
        topic, partition = self.one(output.topic, output.partition)
        headers = [(name, value.encode()) for name, value in output.headers.items()]
        return ProducerRecord(topic, partition, output.key, output.value, headers, output.timestamp_ms)

    def refusal(self, output: Output) -> RecordTooLarge:
        """The error for a record that the broker does not take."""
        topic, size = self.full(output.topic), len(output.value or b"")
        return RecordTooLarge(
            f"the broker refuses a record of {size} bytes for topic {topic!r}: set max.message.bytes of the topic to"
            f" {BATCH_CAP_BYTES} with kafka-configs; records of this size are tried again after an hour or a restart",
            output.topic,
            size,
        )

    def message(self, record: Any) -> Message:
        """Convert a fetched record. Missing keys and header values of other writers become empty."""
        damage = damage_of(record)
        try:
            headers = {name: (value or b"").decode() for name, value in record.headers or ()}
        except UnicodeDecodeError as error:
            headers = {}
            damage = f"a header of {record.topic}, partition {record.partition} offset {record.offset}: {error}"
        return Message(
            topic=self.short(record.topic),
            partition=record.partition,
            offset=record.offset,
            key=record.key or b"",
            value=b"" if damage else record.value,
            headers=headers or NO_HEADERS,
            timestamp_ms=record.timestamp,
            damage=damage,
        )

    def restore(self, states: Mapping[TopicPartition, LocalState]) -> Restore:
        """Restore states, by changelog partition, up to everything written, including open transactions."""
        return Restore(self.reader_options, states, self.admin.written_end(list(states)), self.clock)

    def local_state(self, owner: Iterable[str], changelog: TopicPartition, changelog_id: str) -> LocalState:
        path = self._state_folder.joinpath(*map(instance_name, owner)) / f"{changelog.partition}.sqlite"
        return LocalState(path, changelog_id, now_ms=self.clock(), max_age_ms=LOCAL_STATE_MAX_AGE_MS)

    def forget_local_state(self, group: str, store: str) -> None:
        """Delete the local state of a store for every member of a group on this machine."""
        members = self._state_folder / instance_name(self.full(group))
        for folder in members.glob(f"*/{instance_name(store)}"):
            shutil.rmtree(folder, ignore_errors=True)
            for empty in (folder.parent, members):
                with contextlib.suppress(OSError):  # others are in it
                    empty.rmdir()
