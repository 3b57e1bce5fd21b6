"""Local state on Kafka is a copy: lost, old or late files are corrected from the changelog."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from stream.kafka.client import GroupConsumer, build_producer
from stream.kafka.log import KafkaLog
from stream.kafka.reader import Restore
from stream.kafka.settings import KafkaSettings
from stream.log.contract import At, Commit, Member, StateChange
from tests.support.kafka_broker import broker
from tests.support.limits import with_limits
from tests.support.waiting import wait_until
from tests.support.worlds import KafkaWorld, drain, record, values

pytestmark = pytest.mark.kafka


SETTINGS = with_limits(KafkaSettings(), session_timeout_s=6, transaction_timeout_s=5)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[KafkaWorld]:
    """A log with a store; all members of `log` have the folder `states`."""
    with closing(KafkaWorld(tmp_path, SETTINGS)) as made:
        made.topics("in", store="s")
        yield made


@pytest.fixture
def states(tmp_path: Path) -> Path:
    return tmp_path / "state-0"


def put(member: Member, **pairs: str) -> None:
    """Commit these keys to partition 0, due at the length of their value."""
    member.commit(Commit(state={0: [StateChange(k.encode(), v.encode(), len(v)) for k, v in pairs.items()]}))


def damage(states: Path) -> None:
    for path in states.rglob("*.sqlite"):
        path.write_bytes(b"no database" * 100)


def age(states: Path) -> None:
    """Make the files older than the retention of tombstones."""
    for path in states.rglob("*.sqlite"):
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("UPDATE applied SET touched_ms = 0")


HAPPENINGS: dict[str, Callable[[Path], object]] = {
    "nothing": lambda _: None,
    "lost": shutil.rmtree,
    "old": age,
    "damaged": damage,
}


@pytest.mark.parametrize("happening", HAPPENINGS)
def test_state_is_whole_after_a_restart(world: KafkaWorld, states: Path, happening: str) -> None:
    """Values, deletions and due times are restored, for any state of the local files."""
    member = world.owner(2, "in", store="s")
    put(member, a="1", b="22", c="333")
    member.commit(
        Commit(
            state={0: [StateChange(b"b", None), StateChange(b"d", b"x" * 5, None)], 1: [StateChange(b"e", b"other")]}
        )
    )
    member.close()
    HAPPENINGS[happening](states)
    again = world.owner(2, "in", store="s")
    state = again.state(0)
    assert state.scan(b"", 10) == [(b"a", b"1"), (b"c", b"333"), (b"d", b"xxxxx")]
    assert state.due(99, 10) == [(b"a", b"1", 1), (b"c", b"333", 3)]
    assert (state.next_due(), state.get(b"b")) == (1, None)
    assert again.state(1).get(b"e") == b"other"


def test_a_restore_waits_for_no_input(world: KafkaWorld, states: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore of several steps takes one after the other, without a wait for records of the inputs in between."""
    member = world.owner(2, "in", store="s")
    put(member, **{f"k{number}": "v" for number in range(5000)})
    member.close()
    shutil.rmtree(states)
    waits: list[float | None] = []  # of a look at the inputs; None is a step of the restore
    fetch, advance = GroupConsumer.fetch, Restore.advance

    def noted_fetch(consumer: GroupConsumer, timeout_s: float, max_records: int) -> list[Any]:
        waits.append(timeout_s)
        return fetch(consumer, timeout_s, max_records)

    def noted_advance(restore: Restore, timeout_s: float) -> None:
        waits.append(None)
        advance(restore, timeout_s)

    monkeypatch.setattr(GroupConsumer, "fetch", noted_fetch)
    monkeypatch.setattr(Restore, "advance", noted_advance)
    again = world.owner(2, "in", store="s")
    steps = [place for place, wait in enumerate(waits) if wait is None]
    assert len(steps) > 2
    assert {wait for wait in waits[steps[0] : steps[-1]] if wait is not None} == {0.0}
    assert again.state(0).get(b"k4999") == b"v"


def test_an_uncommitted_change_is_never_seen(world: KafkaWorld) -> None:
    """Changelog records of a process that died inside a transaction are visible to no owner and no audit."""
    member = world.owner(2, "in", store="s")
    put(member, a="1")
    member.close()
    options = with_limits(KafkaSettings(), transaction_timeout_s=1).producer_options(broker(), f"{world.prefix}dead")
    dying = build_producer(options)
    dying.begin_transaction()
    dying.send(f"{world.prefix}state.s", b"\0" * 8 + b"ghost", b"a", [], 0).get(timeout=30)
    dying.kill()
    again = world.owner(2, "in", store="s", name="other")  # waits until the broker has ended the transaction
    assert again.state(0).get(b"a") == b"1"
    assert list(world.log.scan_state("s", 0)) == [(b"a", b"1")]
    put(again, a="2")
    assert again.state(0).get(b"a") == b"2"


def test_state_alone_moves_no_input_offset(world: KafkaWorld) -> None:
    """A commit of state alone is checked against the group's generation and moves no input offset."""
    world.log.append([record("in", 0, "k")])
    member = world.owner(2, "in", store="s")
    put(member, a="1")
    assert world.log.committed("g", "in") == [None, None]
    member.rewind()
    assert values(drain(member, 1)) == ["v"]
    end = world.log.end("in")[0]
    member.commit(Commit(offsets={At("in", 0): end}))
    assert world.log.committed("g", "in") == [end, None]
    member.close()


def test_a_changelog_that_the_broker_compacted(world: KafkaWorld, states: Path) -> None:
    """State restored from compacted, repacked batches is the same, with deletions."""
    eager = {
        "cleanup.policy": "compact",
        "segment.ms": "300",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "0",
        "max.message.bytes": "5000000",
    }
    topic = {"num_partitions": 2, "replication_factor": -1, "configs": eager}
    cast(KafkaLog, world.log)._site.admin.create({f"{world.prefix}state.packed": topic})
    member = world.owner(2, "in", store="packed")
    large = b"much of the same " * 100_000  # a batch beyond what a decoder may take for the end
    wanted: dict[bytes, bytes] = {b"large": large}
    for number in range(20):
        member.commit(Commit(state={0: [StateChange(b"k%d" % n, b"%d" % number) for n in range(50)]}))
    member.commit(
        Commit(state={0: [StateChange(b"large", large), *(StateChange(b"k%d" % n, None) for n in range(25))]})
    )
    wanted |= {b"k%d" % n: b"19" for n in range(25, 50)}

    def is_compacted() -> bool:
        member.commit(Commit(state={0: [StateChange(b"last", b"1")]}))  # rolls the segment
        return len(list(world.log.read("state.packed", 0))) <= 300

    wait_until(is_compacted, "the broker to compact", 60, every_s=0.5)
    wanted[b"last"] = b"1"
    assert member.state(0).scan(b"", 100) == sorted(wanted.items())
    member.close()
    shutil.rmtree(states)
    again = world.owner(2, "in", store="packed")
    assert again.state(0).scan(b"", 100) == sorted(wanted.items())
