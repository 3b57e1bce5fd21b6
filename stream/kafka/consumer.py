"""A group's consumer as the member uses it: records of the wire, and what rebalances did since the last look.

kafka-python calls a rebalance listener on its network thread, where blocking would stop the heartbeats. So the listener
only notes what happened and holds newly won partitions back; the member follows in its own thread.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka import errors as kafka_errors
from kafka.structs import MemberState

from stream.kafka.assignor import MirroringAssignor
from stream.kafka.client import free_slot, learn_topics, left_while_joining, position_of, run_on_network, unpack_with
from stream.kafka.damage import CheckedRecords
from stream.kafka.errors import translated


class GroupConsumer(KafkaConsumer, ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    """A static member of a group, on a fixed set of topics."""

    def __init__(self, topics: Mapping[str, int], options: Mapping[str, Any]) -> None:
        """Connect; the group is joined by the polls. `topics`: name -> partitions. Raises errors of kafka-python."""
        self._assignor = MirroringAssignor(topics)
        self._astray: dict[TopicPartition, int] = {}
        self._noting = threading.Lock()
        self._lost: set[TopicPartition] = set()
        self._won: set[TopicPartition] = set()
        super().__init__(**options, partition_assignment_strategy=[self._assignor])
        unpack_with(self, CheckedRecords)
        self.subscribe(topics=list(topics), listener=self)
        learn_topics(self)  # or the first join would run into a second one, when the topics' metadata comes in

    def fetch(self, timeout_s: float, max_records: int) -> list[Any]:
        """Next records of what is held and not paused; keeps the membership. Raises LogUnavailable or Fenced."""
        with translated(f"poll of group {self.config['group_id']}"):
            self._take_in_join()
            free_slot(self)
            try:
                polled = self.poll(timeout_ms=max(0, int(timeout_s * 1000)), max_records=max_records)
            except kafka_errors.NoOffsetForPartitionError as error:  # of what was won just now: it is placed later
                self.place(dict.fromkeys(error.args[0], 0))
                return []
            except kafka_errors.OffsetOutOfRangeError as error:
                self._astray.update(error.args[0])
                return []
            except kafka_errors.InconsistentGroupProtocolError as error:
                if not left_while_joining(error):
                    raise
                return []  # the next poll joins anew
        return [record for records in polled.values() for record in records]

    def take_changes(self) -> tuple[set[TopicPartition], set[TopicPartition]]:
        """(lost, won) since the last call, to be followed in this order; what was lost and won again is in both."""
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
        self.hold(list(assigned))

    def take_astray(self) -> dict[TopicPartition, int]:
        """Positions since the last call that the broker does not have; until they are placed anew, they come again."""
        astray, self._astray = self._astray, {}
        return {at: offset for at, offset in astray.items() if position_of(self, at) == offset}

    def reachable(self) -> bool:
        return not self._coordinator.coordinator_unknown()

    def settled(self) -> bool:
        return bool(self._coordinator.stable() and not self._coordinator.rejoin_needed)

    def displaced(self) -> bool:
        """True when a heartbeat was answered with: another process has your name. kafka-python only stops beating."""
        coordinator = self._coordinator
        return bool(coordinator.stable() and not coordinator._heartbeat_enabled and not coordinator.rejoining)

    def stable_offsets(self, at: Iterable[TopicPartition], timeout_s: float) -> dict[TopicPartition, int]:
        """Committed offsets, those there are, after open transactions on them have ended. Raises LogUnavailable."""
        with translated(f"committed offsets of group {self.config['group_id']}"):
            found = self._coordinator.fetch_committed_offsets(set(at), timeout_ms=int(timeout_s * 1000))
        return {tp: known.offset for tp, known in found.items()}

    def place(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        held = self.assignment()
        for at, offset in offsets.items():
            if at in held:
                self.seek(at, offset or 0)

    def hold(self, at: Sequence[TopicPartition]) -> None:
        """Fetch nothing from these until `let`; those not held are left out."""
        self.pause(*(tp for tp in at if tp in self.assignment()))

    def let(self, at: Sequence[TopicPartition]) -> None:
        self.resume(*(tp for tp in at if tp in self.assignment()))

    def forget_membership(self) -> None:
        """The broker said that this generation is over: join anew at the next poll, claiming nothing."""
        self._assignor.forget()
        self._coordinator.reset_generation()

    def _take_in_join(self) -> None:
        """Follow a join that was answered between two polls, by the steps of `join_group_async`.

        kafka-python 3.0 throws such an answer away, and the next poll joins again: with short polls without end.
        """
        joined = self._coordinator._join_task
        if joined is None or not joined.is_done:
            return
        if joined.succeeded():
            run_on_network(self, self._complete_join, joined.value)
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
