"""The assignor alone: after any joins and leaves, a group has a fair cover that keeps partition numbers together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("kafka")

from stream.kafka.assignor import MirroringAssignor

COUNTS = {"lead": 7, "other": 7, "few": 3, "zero-sorted-first": 7}


class _Member:
    """One member of a group: its assignor, and its last assignment."""

    def __init__(self, name: str, topics: list[str]) -> None:
        self.name = name
        self.topics = topics
        self.assignor = MirroringAssignor(COUNTS)
        self.held: dict[str, set[int]] = {}

    def joining(self) -> Any:
        metadata = self.assignor.metadata(self.topics)
        sent = type(metadata).decode(metadata.encode())
        return SimpleNamespace(member_id=self.name, group_instance_id=self.name, metadata=sent)

    def receive(self, assignment: Any, generation: int) -> bool:
        """Take the new assignment; True if a partition was revoked."""
        received = type(assignment).decode(assignment.encode())
        before = self.held
        self.held = {topic: set(partitions) for topic, partitions in received.assigned_partitions}
        self.assignor.on_assignment(received, generation)
        return any(before[topic] - self.held.get(topic, set()) for topic in before)


class _Cluster:
    def partitions_for_topic(self, topic: str) -> None:
        return None  # stale metadata, which the assignor must not need


def rebalance(members: list[_Member], generation: int) -> int:
    """Run rounds until no member revokes; assert that no partition has two members."""
    for _ in range(10):
        generation += 1
        given = members[0].assignor.assign(_Cluster(), [member.joining() for member in members])
        revoked = [member.receive(given[member.name], generation) for member in members]
        for topic in COUNTS:
            held = [p for member in members for p in member.held.get(topic, ())]
            assert len(held) == len(set(held)), f"two members own a partition of {topic}"
        if not any(revoked):
            return generation
    raise AssertionError("the group does not come to rest")


@settings(max_examples=60)
@given(st.lists(st.sets(st.integers(0, 5), min_size=1, max_size=5), min_size=1, max_size=6), st.data())
def test_every_group_comes_to_a_fair_cover_that_goes_together(history: list[set[int]], data: st.DataObject) -> None:
    """After any joins and leaves, each partition number has one owner for all topics; shares differ by one at most."""
    topics = data.draw(st.lists(st.sampled_from(sorted(COUNTS)), min_size=1, max_size=4, unique=True))
    most = max(COUNTS[topic] for topic in topics)
    members: dict[int, _Member] = {}
    generation = 0
    for alive in history:
        members = {n: members.get(n) or _Member(f"m{n}", topics) for n in sorted(alive)}
        generation = rebalance(list(members.values()), generation)
        owned = {m.name: set().union(*m.held.values()) if m.held else set() for m in members.values()}
        assert sorted(p for own in owned.values() for p in own) == list(range(most))
        sizes = [len(own) for own in owned.values()]
        assert max(sizes) - min(sizes) <= 1
        for member in members.values():
            for topic in topics:
                expected = {p for p in owned[member.name] if p < COUNTS[topic]}
                assert member.held.get(topic, set()) == expected


def test_only_what_must_move_moves() -> None:
    """A joining member takes its share, and the others keep the rest."""
    members = [_Member("m1", ["lead", "other"]), _Member("m2", ["lead", "other"])]
    generation = rebalance(members, 0)
    before = [set(member.held["lead"]) for member in members]
    members.append(_Member("m3", ["lead", "other"]))
    rebalance(members, generation)
    assert all(member.held["lead"] <= old for member, old in zip(members, before, strict=False))


def test_a_claim_of_an_older_generation_does_not_count() -> None:
    """A member that missed a rebalance and still claims its old partitions does not get them from their new owner."""
    old, new = _Member("old", ["lead"]), _Member("new", ["lead"])
    rebalance([old], 0)
    rebalance([new], 5)
    assert old.held["lead"] == new.held["lead"] == set(range(7))
    given = new.assignor.assign(_Cluster(), [new.joining(), old.joining()])
    new.receive(given["new"], 7)
    old.receive(given["old"], 7)
    assert not (old.held.get("lead", set()) & new.held["lead"])
    assert len(new.held["lead"]) in (3, 4)


def test_a_member_that_forgets_claims_nothing() -> None:
    """A member that lost its membership joins without claims."""
    member = _Member("m", ["lead"])
    rebalance([member], 0)
    assert member.joining().metadata.owned_partitions
    member.assignor.forget()
    assert not member.joining().metadata.owned_partitions
