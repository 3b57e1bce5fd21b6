"""Assigns partitions: cooperative-sticky on one lead topic, mirrored onto the group's other topics.

kafka-python's cooperative-sticky assignor balances each (topic, partition) separately, so partition 3 of `hits` and of
`decisions` may go to different members. This assignor balances only the topic with the most partitions, the lead, and
gives partition p of every other topic to the owner of partition p of the lead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

_WITH_GENERATION = 2  # version of the subscription with the generation of the owned partitions


class MirroringAssignor(CooperativeStickyAssignor):  # type: ignore[misc]  # kafka-python has no types
    """Cooperative-sticky on the lead topic, mirrored. The name keeps it apart from groups of other assignors."""

    name = "farmwatch-mirrored"
    version = _WITH_GENERATION

    def __init__(self, counts: Mapping[str, int]) -> None:
        """`counts`: topic -> number of partitions, which never changes; kafka-python may learn it too late."""
        super().__init__()
        self._counts = counts

    def metadata(self, topics: Iterable[str]) -> Any:
        owned: dict[str, list[int]] = defaultdict(list)
        held: list[tuple[str, int]] = self.member_assignment or []
        for topic, partition in held:
            owned[topic].append(partition)
        topic_partition = ConsumerProtocolSubscription.TopicPartition
        return ConsumerProtocolSubscription(
            version=self.version,
            topics=sorted(topics),
            user_data=b"",
            owned_partitions=[topic_partition(topic=t, partitions=sorted(ps)) for t, ps in owned.items()],
            generation_id=self.generation,
        )

    def forget(self) -> None:
        """Claim nothing at the next join, because the membership was lost."""
        self.member_assignment = None
        self.generation = self.DEFAULT_GENERATION_ID

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, Any]:
        """Assign as the group's leader: balance the lead topic, then mirror it onto the other topics."""
        topics = {topic for member in members for topic in member.metadata.topics}
        counts = {topic: self._counts.get(topic) or len(cluster.partitions_for_topic(topic) or ()) for topic in topics}
        lead = min(counts, key=lambda topic: (-counts[topic], topic))
        claims = _claims(members)
        leading = [
            SimpleNamespace(
                member_id=member.member_id,
                metadata=SimpleNamespace(
                    topics=[lead],
                    owned_partitions=[SimpleNamespace(topic=lead, partitions=claims[member.member_id])],
                    generation_id=member.metadata.generation_id,
                ),
            )
            for member in members
        ]
        every = set(range(counts[lead]))
        only_lead = SimpleNamespace(  # the sticky assignor would balance every topic
            topics=lambda: {lead}, partitions_for_topic=lambda topic: every if topic == lead else None
        )
        led = super().assign(only_lead, leading)
        mirrored: dict[str, Any] = {}
        for member in members:
            partitions = [p for _, ps in led[member.member_id].assigned_partitions for p in ps]
            given = [(t, [p for p in partitions if p < counts[t]]) for t in sorted(member.metadata.topics)]
            mirrored[member.member_id] = ConsumerProtocolAssignment(1, [(t, ps) for t, ps in given if ps], b"")
        return mirrored


def _claims(members: Sequence[Any]) -> dict[str, list[int]]:
    """member_id -> owned partitions of any topic; the later generation wins a conflict."""
    best: dict[int, tuple[int, str]] = {}
    for member in members:
        for owned in member.metadata.owned_partitions or ():
            for partition in owned.partitions:
                claim = (member.metadata.generation_id, member.member_id)
                best[partition] = max(best.get(partition, claim), claim)
    claims: dict[str, list[int]] = {member.member_id: [] for member in members}
    for partition, (_, member_id) in sorted(best.items()):
        claims[member_id].append(partition)
    return claims
