"""The contract of all logs: erased sites, and what readers and members see of a forgotten host."""

from __future__ import annotations

import pytest

from stream.log.contract import At, CleanupPolicy, Commit, Log, StateChange, Topic, partition_of
from stream.log.errors import Fenced
from stream.masked import masked
from stream.schema.forgotten import Forgotten, ForgottenHost
from stream.schema.topics import CONTROL
from tests.support.waiting import wait_until
from tests.support.worlds import World, drain, record, settle, values

HOST, OTHER = "gone.example", "kept.example"
_DAY_MS = 86_400_000


def place(host: str) -> int:
    return partition_of(host, 2)


def forget(log: Log, *hosts: str) -> None:
    """Enter hosts in the ledger."""
    ledger = Forgotten(log)
    log.append([row for host in hosts for row in ledger.outputs(host, ForgottenHost(at=1, by="ann"))])


def prepared(world: World) -> Log:
    """Records of two hosts, small and large ones, in a topic of each kind; returns the log as readers see it."""
    world.topics("in", "out", store="s", retention_ms=30 * _DAY_MS)
    world.topics("scores", cleanup=CleanupPolicy.COMPACT)
    world.log.create([Topic(CONTROL, 1, CleanupPolicy.COMPACT)])
    for host in (HOST, OTHER):
        for value in ("small", host * 500, "last"):
            world.log.append([record("in", place(host), host, value)])
        world.log.append([record("scores", place(host), f"{host} text:{n}", "score") for n in range(2)])
    rows = {"order/x": ("of the host", None), "order/y": ("of another",), "panel/1": ("with the host", "without")}
    world.log.append([record(CONTROL, 0, key, value) for key, values_ in rows.items() for value in values_])
    return masked(world.log, look_s=0)


def keys(log: Log, topic: str) -> set[bytes]:
    """The keys of all records with a value."""
    return {message.key for p in range(log.topics()[topic]) for message in log.read(topic, p) if message.value}


def test_readers_do_not_see_a_forgotten_host(world: World) -> None:
    """From its entry on its records read as tombstones without a key, at their offsets; new ones are not appended."""
    seen = prepared(world)
    before = list(seen.read("in", place(HOST)))
    forget(world.log, HOST)
    after = list(seen.read("in", place(HOST)))
    assert [message.offset for message in after] == [message.offset for message in before]
    assert {message.key for message in after} <= {b"", OTHER.encode()}
    assert keys(seen, "in") == {OTHER.encode()}
    assert keys(seen, "scores") == {f"{OTHER} text:{n}".encode() for n in range(2)}
    assert keys(seen, CONTROL) >= {b"order/y", b"panel/1"}
    ends = world.log.end("in")
    seen.append([record("in", place(HOST), HOST, "new")])
    assert world.log.end("in") == ends
    assert keys(masked(world.again()), "in") == {OTHER.encode()}


def test_erased_records_are_gone(world: World) -> None:
    """Embedded: at once. Kafka: tombstones in compacted topics, the rest by retention. Other records stay."""
    seen = prepared(world)
    rows = [b"order/x", b"panel/1"]
    erased = world.log.erase([HOST], rows)
    if world.embedded:  # a broker compacts in its own time
        assert [m.value for m in world.log.read(CONTROL, 0) if m.key] == [b"of another", b"without"]
    assert erased.records == (5 + 2 + 1 if world.embedded else 5)
    newest = {m.key: m.value for p in range(2) for m in world.log.read("scores", p) if m.key}
    assert not [key for key, value in newest.items() if key.startswith(HOST.encode()) and value]
    assert values(world.log.read("in", place(OTHER)))[-1] == "last"
    if world.embedded:
        assert erased.gone_at_ms == 0 and keys(world.log, "in") == {OTHER.encode()}
        assert world.log.end("in")[place(HOST)] >= 3 and not any(m.damage for m in world.log.read("in", place(HOST)))
    else:
        sent = max(m.timestamp_ms for m in world.log.read("in", place(HOST)) if m.key == HOST.encode())
        assert erased.gone_at_ms >= sent + (30 + 7) * _DAY_MS  # a record leaves with its segment, of 7 days
    assert world.log.erase([HOST], rows).records == (0 if world.embedded else 3)
    del seen


def test_a_member_drops_what_it_has_read_of_a_host(world: World) -> None:
    """A batch read before the entry is refused; then the host reads as tombstones, and its state is deleted."""
    seen = prepared(world)
    member = seen.join("g", ["in"], member="m", store="s")
    world.members.append(member)
    settle([member], 2)
    rows = {HOST: [HOST.encode(), b"%s\0a" % HOST.encode()], OTHER: [OTHER.encode(), b"%s\0a" % OTHER.encode()]}
    for host, names in rows.items():
        member.commit(Commit(state={place(host): [StateChange(name, b"v", 5) for name in names]}))
    drain(member, 6)
    epochs = dict(member.assignment())
    forget(world.log, HOST)
    with pytest.raises(Fenced, match="forgotten"):
        member.commit(Commit(offsets={At("in", place(HOST)): 3}))
    assert dict(member.assignment()) == epochs  # until the next poll, which reads the batch again
    again = drain(member, 6)
    assert all(member.assignment()[partition] > epoch for partition, epoch in epochs.items())
    assert sorted(message.key for message in again) == [b""] * 3 + [OTHER.encode()] * 3
    assert {message.value for message in again if not message.key} == {None}
    left = {key for p in range(2) for key, _ in world.log.scan_state("s", p)}
    assert left == set(rows[OTHER])
    member.commit(Commit(offsets={At("in", place(HOST)): again[-1].offset + 1}))


def test_a_new_owner_deletes_what_an_earlier_one_left(world: World) -> None:
    """A host that was forgotten while nobody owned a store leaves it with the first poll of its next owner."""
    seen = prepared(world)
    owner = world.owner(2, "in", store="s")
    owner.commit(Commit(state={place(HOST): [StateChange(b"%s\0a" % HOST.encode(), b"v")]}))
    owner.close()
    forget(world.log, HOST)
    member = seen.join("g", ["in"], member="m", store="s")
    world.members.append(member)
    wait_until(lambda: member.poll(0.1, 1, 1) and len(member.assignment()) == 2, "the partitions")
    assert not [key for p in range(2) for key, _ in world.log.scan_state("s", p)]
