"""The broker stays away, or is killed: members report it, and no record is lost or processed twice."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

from stream.kafka.client import build_producer
from stream.kafka.log import KafkaLog
from stream.kafka.settings import KafkaSettings
from stream.log.contract import CleanupPolicy, Commit, Member, Message, Output, StateChange, Topic
from stream.log.errors import LogUnavailable
from stream.schema.records import Hit, encode
from tests.support.kafka_broker import Broker, own_broker
from tests.support.limits import with_limits
from tests.support.logs.kafka_files import batches, segment
from tests.support.logs.loops import Counting, decisions, loop_on
from tests.support.sizes import LONG
from tests.support.waiting import wait_until
from tests.support.worlds import drain, gather, settle

pytestmark = [pytest.mark.kafka, pytest.mark.kill]
ROUNDS = 50
RECORDS = 3000
AWAY_S = 60.0 if LONG else 7.0  # longer than every time limit in SETTINGS
PATIENCE_S = 120.0
PARTITIONS = 2
SETTINGS = with_limits(
    KafkaSettings(), session_timeout_s=6, commit_timeout_s=3, transaction_timeout_s=6, request_timeout_s=3
)


class RandomBatches(Counting):
    """Batches of changing size."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.commits = 0
        self.goes_on = threading.Event()  # after a commit
        self.goes_on.set()
        self.largest = self.max_records = 8  # records per batch

    def committed(self) -> None:
        self.commits += 1
        self.goes_on.wait(PATIENCE_S)
        self.max_records = self._random.randint(1, self.largest)


class Worker:
    """A loop in a thread that, for each record, writes an output and counts it in the state, in one commit."""

    def __init__(self, log: KafkaLog, seed: int) -> None:
        self.stage = RandomBatches(seed)
        self._loop = loop_on(log, self.stage)
        self._stop = threading.Event()
        self._broken: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)

    def told(self) -> str:
        """Its health; raises the error that ended it."""
        if self._broken is not None:
            raise self._broken
        return f"{self.stage.commits} commits, {self._loop.health()}"

    def _run(self) -> None:
        try:
            self._loop.run(self._stop)
        except Exception as error:  # noqa: BLE001  # shown by the test
            self._broken = error


def _open(broker: Broker, folder: Path, settings: KafkaSettings = SETTINGS) -> KafkaLog:
    """The log of one test; its prefix is the folder's name."""
    return KafkaLog(broker.address, prefix=f"{folder.name}.", state_folder=folder, settings=settings)


def _prepare(log: KafkaLog, count: int) -> list[int]:
    """Append the input; returns the offset after the last record of each partition."""
    stores = Topic("state.counts", PARTITIONS, CleanupPolicy.COMPACT)
    log.create([*(Topic(name, PARTITIONS) for name in ("in", "out", "dead-letters")), stores])
    hits = [Hit(id=str(n), site=f"k{n:06}", url="x") for n in range(count)]
    log.append([Output("in", n % PARTITIONS, hit.site.encode(), encode(hit)) for n, hit in enumerate(hits)])
    return [[message.offset for message in log.read("in", p)][-1] + 1 for p in range(PARTITIONS)]


def _await_commits(worker: Worker, number: int) -> None:
    enough = worker.stage.commits + number
    wait_until(lambda: worker.stage.commits >= enough, worker.told, PATIENCE_S, every_s=0.005)


def _await_all(log: KafkaLog, worker: Worker, ends: list[int]) -> None:
    """Wait till the worker has committed the whole input."""

    def done() -> bool:
        worker.told()
        with suppress(LogUnavailable):
            return all((done or 0) >= ends[p] for p, done in enumerate(log.committed("group", "in")))
        return False

    worker.stage.largest = 500
    wait_until(done, worker.told, PATIENCE_S, every_s=0.1)


def _assert_exactly_once(log: KafkaLog, count: int) -> None:
    wanted = [(f"k{n:06}", "1") for n in range(count)]
    assert sorted((decision.site, decision.reason) for decision in decisions(log)) == wanted
    state = [pair for p in range(PARTITIONS) for pair in log.scan_state("counts", p)]
    assert sorted((key.decode(), value.decode()) for key, value in state) == wanted


@pytest.mark.skipif(not LONG, reason="tests/e2e/test_real_input.py kills the broker once, under all roles")
def test_each_record_once_through_killed_brokers(one_broker: Broker, tmp_path: Path) -> None:
    """Through SIGKILLs of the broker at random moments, outputs, state and offsets agree at the end."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    count = 200 * ROUNDS
    log = _open(one_broker, tmp_path)
    ends = _prepare(log, count)
    worker = Worker(log, seed)
    for _ in range(ROUNDS):
        _await_commits(worker, 3)
        time.sleep(chance.uniform(0, 0.3))
        one_broker.kill()
        one_broker.start()
    _await_all(log, worker, ends)
    worker.stop()
    print(worker.told())
    _assert_exactly_once(log, count)
    log.close()


class Outage(NamedTuple):
    """A broker that was stopped, stayed away, and is back."""

    broker: Broker
    log: KafkaLog
    worker: Worker
    ends: list[int]  # of its input
    commits: int  # of the worker, before the broker was back
    late: KafkaLog
    late_member: Member  # joined while the broker was away
    cut: KafkaLog  # its changelog has lost its last marker meanwhile


@pytest.fixture(scope="module")
def outage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outage]:
    """One restart for all tests. A broker that is away raises LogUnavailable in members, old and new."""
    broker, folder = own_broker(), tmp_path_factory.mktemp("outage")
    log, late, cut = (_open(broker, folder / f"{folder.name}-{name}") for name in ("worker", "late", "cut"))
    ends = _prepare(log, RECORDS)
    _prepare(late, 10)
    late.close()
    _commit_state(cut)
    worker = Worker(log, random.randrange(1 << 32))
    _await_commits(worker, 20)
    worker.stage.goes_on.clear()  # of a commit that is cut short, a broker may leave the transaction open for ever
    _await_commits(worker, 1)
    broker.stop()  # after a kill it would check its files, and mend what is cut below
    worker.stage.goes_on.set()
    wait_until(lambda: "LogUnavailable" in worker.told(), worker.told, PATIENCE_S)
    _cut_last_marker(broker, cut)
    late = _open(broker, folder / f"{folder.name}-late")
    member = late.join("g", ["in"], member="m", store="counts")
    with pytest.raises(LogUnavailable):
        member.poll(0.1, 10, 1 << 20)
    time.sleep(AWAY_S)
    assert "LogUnavailable" in worker.told()
    commits = worker.stage.commits
    broker.start()
    yield Outage(broker, log, worker, ends, commits, late, member, cut)
    worker.stop()
    member.close()
    for opened in (log, late, cut):
        opened.close()


def test_a_member_that_joined_while_the_broker_was_away_works(outage: Outage) -> None:
    """Joining succeeds without a broker; polls raise LogUnavailable until it is back."""

    def polled() -> list[Message]:
        with suppress(LogUnavailable):
            return list(outage.late_member.poll(0.2, 10, 1 << 20))
        return []

    assert len(gather(polled, lambda found: len(found) >= 10, "the records")) == 10


def _commit_state(log: KafkaLog) -> None:
    log.create([Topic("in", 1), Topic("state.s", 1, CleanupPolicy.COMPACT)])
    member = log.join("g", ["in"], member="m", store="s")
    settle([member], 1)
    member.commit(Commit(state={0: [StateChange(b"k", b"v")]}))
    member.close()


def _cut_last_marker(broker: Broker, log: KafkaLog) -> None:
    """On a broker that is away: remove the last marker of the changelog, and begin a new segment."""
    file = segment(broker, log, "state.s")
    last, at = batches(file)[-1]
    with file.open("r+b") as opened:
        opened.truncate(at)
    file.with_name(f"{last + 1:020}.log").touch()


def test_a_changelog_whose_last_marker_was_removed_is_restored(outage: Outage, tmp_path: Path) -> None:
    """Compaction may remove it, so that the end is never reached: a command and the next owner get the state."""
    log = outage.cut
    again = KafkaLog(outage.broker.address, prefix=log._site.prefix, state_folder=tmp_path / "another")
    assert again.end("state.s") == [2]  # the value and its marker
    assert list(again.scan_state("s", 0)) == [(b"k", b"v")]
    member = again.join("g", ["in"], member="n", store="s")
    settle([member], 1)
    assert member.state(0).get(b"k") == b"v"
    member.close()
    again.close()


def test_a_transaction_that_never_ends_is_reported(one_broker: Broker, tmp_path: Path) -> None:
    """Offsets that stay unstable beyond the transaction timeout are an error with a remedy; work resumes."""
    log = _open(one_broker, tmp_path, with_limits(SETTINGS, transaction_timeout_s=1))
    _prepare(log, 10)
    lasting = with_limits(SETTINGS, transaction_timeout_s=PATIENCE_S)
    stranger = build_producer(lasting.producer_options(one_broker.address, f"{tmp_path.name}.stranger"))
    stranger.begin_transaction()
    held = {TopicPartition(f"{tmp_path.name}.in", 0): OffsetAndMetadata(0, "", -1)}
    stranger.send_offsets_to_transaction(held, f"{tmp_path.name}.g")
    member = log.join("g", ["in"], member="m", store="counts")
    found: list[Message] = []
    deadline = time.monotonic() + 0.9 * PATIENCE_S  # soon after, the broker aborts the foreign transaction
    with pytest.raises(LogUnavailable, match="find-hanging"):
        while time.monotonic() < deadline:
            found += member.poll(0.2, 10, 1 << 20)
    assert not found
    stranger.abort_transaction()
    stranger.close()
    drain(member, 10)
    member.close()
    log.close()
