"""Local state on Kafka is a copy: it may be lost, old, or behind, and is made right from the changelog."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stream.kafka.log import KafkaLog
from stream.kafka.producer import build_producer
from stream.kafka.settings import KafkaSettings, producer_options
from stream.log.contract import At, CleanupPolicy, Commit, Member, Output, StateChange, Topic
from tests.support.kafka_broker import broker
from tests.support.worlds import drain, patiently, settle, values

pytestmark = pytest.mark.kafka


class Home:
    """A log, its prefix and the folder of its local state."""

    def __init__(self, folder: Path) -> None:
        self.prefix = f"s{uuid.uuid4().hex[:10]}."
        self.states = folder / "states"
        self.now_ms = 1_800_000_000_000
        self.log = KafkaLog(
            broker(),
            prefix=self.prefix,
            state_folder=self.states,
            settings=KafkaSettings(session_timeout_s=6, transaction_timeout_s=5),
            clock=lambda: self.now_ms,
        )
        self.log.create([Topic("in", 2), Topic("state.s", 2, CleanupPolicy.COMPACT)])

    def join(self, name: str = "m", store: str = "s") -> Member:
        """Join, and poll until both partitions are owned."""
        member = self.log.join("g", ["in"], member=name, store=store)
        settle([member], 2)
        return member


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.log.close()


def put(member: Member, **pairs: str) -> None:
    """Commit these keys to partition 0, due at the length of their value."""
    member.commit(Commit(state={0: [StateChange(k.encode(), v.encode(), len(v)) for k, v in pairs.items()]}))


def damage(home: Home) -> None:
    for path in home.states.rglob("*.sqlite"):
        path.write_bytes(b"no database" * 100)


HAPPENINGS: dict[str, Callable[[Home], object]] = {
    "nothing": lambda home: None,
    "lost": lambda home: shutil.rmtree(home.states),
    "old": lambda home: setattr(home, "now_ms", home.now_ms + 30 * 86_400_000),  # tombstones are kept for less
    "damaged": damage,
}


@pytest.mark.parametrize("happening", HAPPENINGS)
def test_state_is_whole_after_a_restart(home: Home, happening: str) -> None:
    """Values, deletions and due times are there again, whatever became of the local files."""
    member = home.join()
    put(member, a="1", b="22", c="333")
    member.commit(
        Commit(
            state={0: [StateChange(b"b", None), StateChange(b"d", b"x" * 5, None)], 1: [StateChange(b"e", b"other")]}
        )
    )
    member.close()
    HAPPENINGS[happening](home)
    again = home.join()
    state = again.state(0)
    assert state.scan(b"", 10) == [(b"a", b"1"), (b"c", b"333"), (b"d", b"xxxxx")]
    assert state.due(99, 10) == [(b"a", b"1", 1), (b"c", b"333", 3)]
    assert (state.next_due(), state.get(b"b")) == (1, None)
    assert again.state(1).get(b"e") == b"other"
    again.close()


def test_files_from_before_the_last_commits_are_caught_up(home: Home, tmp_path: Path) -> None:
    """A crash between the commit on Kafka and the local write leaves old files; the next owner sees all commits."""
    member = home.join()
    put(member, a="1", b="2")
    member.close()
    shutil.copytree(home.states, tmp_path / "old")
    member = home.join()
    put(member, a="new", c="3")
    member.commit(Commit(state={0: [StateChange(b"b", None)]}))
    member.close()
    shutil.rmtree(home.states)
    shutil.copytree(tmp_path / "old", home.states)
    again = home.join()
    assert again.state(0).scan(b"", 10) == [(b"a", b"new"), (b"c", b"3")]
    again.close()


def test_an_uncommitted_change_is_never_seen(home: Home) -> None:
    """A process that died inside a transaction leaves records on the changelog which no owner and no audit sees."""
    member = home.join()
    put(member, a="1")
    member.close()
    options = producer_options(KafkaSettings(transaction_timeout_s=5), broker(), f"{home.prefix}dead")
    dying = build_producer(options)
    dying.begin_transaction()
    dying.send(f"{home.prefix}state.s", b"\0" * 8 + b"ghost", b"a", [], 0).get(timeout=30)
    dying.kill()
    again = home.join("other")  # waits till the broker has ended the transaction
    assert again.state(0).get(b"a") == b"1"
    assert list(home.log.scan_state("s", 0)) == [(b"a", b"1")]
    put(again, a="2")
    assert again.state(0).get(b"a") == b"2"
    again.close()


def test_state_alone_moves_no_input_offset(home: Home) -> None:
    """A commit of state alone is checked against the group's generation, and leaves the input offsets as they were."""
    home.log.append([Output("in", 0, b"k", b"v")])
    member = home.join()
    put(member, a="1")
    assert home.log.committed("g", "in") == [None, None]
    member.rewind()
    assert values(drain(member, 1)) == ["v"]
    end = home.log.end("in")[0]
    member.commit(Commit(offsets={At("in", 0): end}))
    assert home.log.committed("g", "in") == [end, None]
    member.close()


def test_a_changelog_that_the_broker_compacted(home: Home) -> None:
    """The broker packs compacted batches anew: the state restored from them is the same, deletions included."""
    eager = {
        "cleanup.policy": "compact",
        "segment.ms": "300",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "0",
        "max.message.bytes": "5000000",
    }
    topic = {"num_partitions": 2, "replication_factor": -1, "configs": eager}
    home.log._site.admin.create({f"{home.prefix}state.packed": topic})
    member = home.join(store="packed")
    large = b"much of the same " * 100_000  # a batch above what a decoder may take to be the end
    wanted: dict[bytes, bytes] = {b"large": large}
    for number in range(20):
        member.commit(Commit(state={0: [StateChange(b"k%d" % n, b"%d" % number) for n in range(50)]}))
    member.commit(
        Commit(state={0: [StateChange(b"large", large), *(StateChange(b"k%d" % n, None) for n in range(25))]})
    )
    wanted |= {b"k%d" % n: b"19" for n in range(25, 50)}

    def is_compacted() -> bool:
        member.commit(Commit(state={0: [StateChange(b"last", b"1")]}))  # rolls the segment
        return len(list(home.log.read("state.packed", 0))) <= 300

    patiently(is_compacted, "the broker to compact", 60, every_s=0.5)
    wanted[b"last"] = b"1"
    assert member.state(0).scan(b"", 100) == sorted(wanted.items())
    member.close()
    shutil.rmtree(home.states)
    again = home.join(store="packed")
    assert again.state(0).scan(b"", 100) == sorted(wanted.items())
    again.close()
