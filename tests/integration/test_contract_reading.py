"""Every log: reading many partitions at once, outside of any group."""

from __future__ import annotations

from stream.log.contract import At, Output
from tests.support.worlds import World


def test_several_partitions_are_read_at_once(world: World) -> None:
    """Of each partition its range comes, in order; up to the end where the range goes beyond; of no range nothing."""
    world.topics("a", "b")
    for number in range(4):
        world.log.append([Output(topic, p, b"k", str(number).encode()) for topic in "ab" for p in (0, 1)])
    first = {topic: [message.offset for message in world.log.read(topic, 0)] for topic in "ab"}
    found: dict[At, list[bytes | None]] = {}
    for message in world.log.read_all(
        {At("a", 0): (0, first["a"][2]), At("b", 0): (first["b"][1], 10**6), At("b", 1): (0, 0)}
    ):
        found.setdefault(At(message.topic, message.partition), []).append(message.value)
    assert found == {At("a", 0): [b"0", b"1"], At("b", 0): [b"1", b"2", b"3"]}
    assert list(world.log.read_all({})) == []
