"""The broker dies and comes back, again and again: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

from stream.kafka.log import KafkaLog
from stream.kafka.producer import build_producer
from stream.kafka.settings import KafkaSettings
from stream.log.contract import At, CleanupPolicy, Commit, Member, Message, Output, StateChange, Topic
from stream.log.errors import LogUnavailable, StreamError
from tests.support.kafka_broker import Broker
from tests.support.waiting import wait_until
from tests.support.worlds import drain

pytestmark = [pytest.mark.kafka, pytest.mark.kill, pytest.mark.xdist_group("kills")]
LONG = bool(os.environ.get("FARMWATCH_LONG"))
ROUNDS = 50 if LONG else 10
AWAY_S = 60.0 if LONG else 20.0  # longer than every time limit of SETTINGS
PATIENCE_S = 120.0
PARTITIONS = 2
SETTINGS = KafkaSettings(session_timeout_s=10, commit_timeout_s=3, transaction_timeout_s=10, request_timeout_s=3)


@pytest.fixture
def own_broker(one_broker: Broker) -> Broker:
    """The broker, running, whatever the test before has left."""
    return one_broker if one_broker.running else one_broker.start()


class Worker:
    """A stage in a thread: for each record it writes an output, and counts it in the state, in one commit."""

    def __init__(self, log: KafkaLog, seed: int) -> None:
        self._member: Member = log.join("g", ["in"], member="worker", store="s")
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.commits = 0
        self.largest = 8  # records of a batch
        self.failures: Counter[str] = Counter()
        self.last = ""  # failure
        self.broken: Exception | None = None
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)
        self._member.close()

    def told(self) -> str:
        """What it has done, for a test that fails."""
        return (
            f"{self.commits} commits, ready {self._member.assignment()}, {dict(self.failures)}, the last: {self.last}"
        )

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    self._step()
                except StreamError as error:
                    if not error.retriable:
                        raise
                    self.failures[type(error).__name__] += 1
                    self.last = str(error)
                    self._member.rewind()
                    time.sleep(0.02)
        except Exception as error:  # noqa: BLE001  # shown by the test
            self.broken = error

    def _step(self) -> None:
        messages = self._member.poll(0.2, self._random.randint(1, self.largest), 1 << 20)
        if not messages:
            return
        counts: dict[tuple[int, bytes], int] = {}
        outputs: list[Output] = []
        for message in messages:
            at = (message.partition, message.key)
            known = self._member.state(message.partition).get(message.key)
            counts[at] = counts.get(at, int(known or b"0")) + 1
            outputs.append(Output("out", message.partition, message.key, b"%d" % counts[at]))
        state: dict[int, list[StateChange]] = {}
        for (partition, key), count in counts.items():
            state.setdefault(partition, []).append(StateChange(key, b"%d" % count))
        self._member.commit(Commit(outputs, _after(messages), state))
        self.commits += 1


def _after(messages: list[Message]) -> dict[At, int]:
    return {At(m.topic, m.partition): m.offset + 1 for m in messages}


def _open(broker: Broker, folder: Path, settings: KafkaSettings = SETTINGS) -> KafkaLog:
    """The log of one test: the folder's name is its prefix."""
    return KafkaLog(broker.address, prefix=f"{folder.name}.", state_folder=folder, settings=settings)


def _prepare(log: KafkaLog, count: int) -> None:
    log.create([Topic("in", PARTITIONS), Topic("out", PARTITIONS), Topic("state.s", PARTITIONS, CleanupPolicy.COMPACT)])
    log.append([Output("in", n % PARTITIONS, b"k%06d" % n, b"v" * 100) for n in range(count)])


def _await_all(log: KafkaLog, worker: Worker) -> None:
    """Wait till the worker has committed the whole input."""
    last = {p: [m.offset for m in log.read("in", p)][-1] + 1 for p in range(PARTITIONS)}

    def done() -> bool:
        assert worker.broken is None, worker.broken
        with suppress(LogUnavailable):
            return all((done or 0) >= last[p] for p, done in enumerate(log.committed("g", "in")))
        return False

    wait_until(done, worker.told, PATIENCE_S, every_s=0.1)


def _assert_exactly_once(log: KafkaLog, count: int) -> None:
    wanted = {b"k%06d" % n for n in range(count)}
    for what, pairs in (
        ("outputs", [(m.key, m.value) for p in range(PARTITIONS) for m in log.read("out", p)]),
        ("state", [pair for p in range(PARTITIONS) for pair in log.scan_state("s", p)]),
    ):
        assert len(pairs) == count, what
        assert {key for key, _ in pairs} == wanted, what
        assert {value for _, value in pairs} == {b"1"}, what


def test_each_record_once_through_killed_brokers(own_broker: Broker, tmp_path: Path) -> None:
    """SIGKILL of the broker at random moments of a stream of commits: outputs, state and offsets agree at the end."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    count = 200 * ROUNDS
    log = _open(own_broker, tmp_path)
    _prepare(log, count)
    worker = Worker(log, seed)
    for _ in range(ROUNDS):
        before = worker.commits
        enough = before + 3
        wait_until(
            lambda enough=enough: worker.commits >= enough or worker.broken is not None,
            worker.told,
            PATIENCE_S,
            every_s=0.005,
        )
        time.sleep(chance.uniform(0, 0.3))
        own_broker.kill()
        own_broker.start()
    worker.largest = 500  # the rest goes quickly
    _await_all(log, worker)
    worker.stop()
    print("commits", worker.commits, dict(worker.failures))
    _assert_exactly_once(log, count)
    log.close()


def test_a_broker_that_stays_away_is_reported_and_work_resumes(own_broker: Broker, tmp_path: Path) -> None:
    """While the broker is away the member raises LogUnavailable; when it is back, the work goes on by itself."""
    count = 3000
    log = _open(own_broker, tmp_path)
    _prepare(log, count)
    worker = Worker(log, 1)
    wait_until(lambda: worker.commits >= 20, "20 commits", PATIENCE_S, every_s=0.01)
    own_broker.stop()
    time.sleep(AWAY_S)
    assert worker.failures["LogUnavailable"] > 0
    commits = worker.commits
    worker.largest = 500
    own_broker.start()
    _await_all(log, worker)
    assert worker.commits > commits
    worker.stop()
    _assert_exactly_once(log, count)
    log.close()


def test_a_member_that_starts_before_the_broker(own_broker: Broker, tmp_path: Path) -> None:
    """Joining while the broker is away succeeds; polling says so, and works once the broker is there."""
    log = _open(own_broker, tmp_path)
    _prepare(log, 10)
    log.close()
    own_broker.stop()
    log = _open(own_broker, tmp_path)
    member = log.join("g", ["in"], member="m", store="s")
    with pytest.raises(LogUnavailable):
        member.poll(0.1, 10, 1 << 20)
    own_broker.start()
    drain(member, 10)
    member.close()
    log.close()


def test_a_transaction_that_never_ends_is_told(own_broker: Broker, tmp_path: Path) -> None:
    """Offsets that stay unstable for longer than transactions last are an error that says so; ended, all goes on."""
    log = _open(own_broker, tmp_path, msgspec.structs.replace(SETTINGS, transaction_timeout_s=1))
    _prepare(log, 10)
    lasting = msgspec.structs.replace(SETTINGS, transaction_timeout_s=PATIENCE_S)
    stranger = build_producer(lasting.producer_options(own_broker.address, f"{tmp_path.name}.stranger"))
    stranger.begin_transaction()
    held = {TopicPartition(f"{tmp_path.name}.in", 0): OffsetAndMetadata(0, "", -1)}
    stranger.send_offsets_to_transaction(held, f"{tmp_path.name}.g")
    member = log.join("g", ["in"], member="m", store="s")
    found: list[Message] = []
    deadline = time.monotonic() + 0.9 * PATIENCE_S  # not much later the broker aborts the stranger's
    with pytest.raises(LogUnavailable, match="find-hanging"):
        while time.monotonic() < deadline:
            found += member.poll(0.2, 10, 1 << 20)
    assert not found
    stranger.abort_transaction()
    stranger.close()
    drain(member, 10)
    member.close()
    log.close()
