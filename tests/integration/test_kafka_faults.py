"""The broker is killed and restarted repeatedly: no record is lost or processed twice."""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

from stream.kafka.client import build_producer
from stream.kafka.log import KafkaLog
from stream.kafka.settings import KafkaSettings
from stream.log.contract import CleanupPolicy, Message, Output, Topic
from stream.log.errors import LogUnavailable
from stream.schema.records import Hit, encode
from tests.support.kafka_broker import Broker
from tests.support.loops import Counting, decisions, loop_on
from tests.support.sizes import LONG
from tests.support.waiting import wait_until
from tests.support.worlds import drain

pytestmark = [pytest.mark.kafka, pytest.mark.kill, pytest.mark.xdist_group("kills")]
ROUNDS = 50 if LONG else 2
AWAY_S = 60.0 if LONG else 12.0  # longer than every time limit in SETTINGS
PATIENCE_S = 120.0
PARTITIONS = 2
SETTINGS = KafkaSettings(session_timeout_s=10, commit_timeout_s=3, transaction_timeout_s=10, request_timeout_s=3)


class RandomBatches(Counting):
    """Batches of changing size."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.commits = 0
        self.largest = self.max_records = 8  # records per batch

    def committed(self) -> None:
        self.commits += 1
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


def _prepare(log: KafkaLog, count: int) -> None:
    stores = Topic("state.counts", PARTITIONS, CleanupPolicy.COMPACT)
    log.create([*(Topic(name, PARTITIONS) for name in ("in", "out", "dead-letters")), stores])
    hits = [Hit(id=str(n), site=f"k{n:06}", url="x") for n in range(count)]
    log.append([Output("in", n % PARTITIONS, hit.site.encode(), encode(hit)) for n, hit in enumerate(hits)])


def _await_all(log: KafkaLog, worker: Worker) -> None:
    """Wait till the worker has committed the whole input."""
    last = {p: [m.offset for m in log.read("in", p)][-1] + 1 for p in range(PARTITIONS)}

    def done() -> bool:
        worker.told()
        with suppress(LogUnavailable):
            return all((done or 0) >= last[p] for p, done in enumerate(log.committed("group", "in")))
        return False

    worker.stage.largest = 500
    wait_until(done, worker.told, PATIENCE_S, every_s=0.1)


def _assert_exactly_once(log: KafkaLog, count: int) -> None:
    wanted = [(f"k{n:06}", "1") for n in range(count)]
    assert sorted((decision.site, decision.reason) for decision in decisions(log)) == wanted
    state = [pair for p in range(PARTITIONS) for pair in log.scan_state("counts", p)]
    assert sorted((key.decode(), value.decode()) for key, value in state) == wanted


def test_each_record_once_through_killed_brokers(one_broker: Broker, tmp_path: Path) -> None:
    """Through SIGKILLs of the broker at random moments, outputs, state and offsets agree at the end."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    count = 200 * ROUNDS
    log = _open(one_broker, tmp_path)
    _prepare(log, count)
    worker = Worker(log, seed)
    for _ in range(ROUNDS):
        enough = worker.stage.commits + 3
        wait_until(lambda enough=enough: worker.stage.commits >= enough, worker.told, PATIENCE_S, every_s=0.005)
        time.sleep(chance.uniform(0, 0.3))
        one_broker.kill()
        one_broker.start()
    _await_all(log, worker)
    worker.stop()
    print(worker.told())
    _assert_exactly_once(log, count)
    log.close()


def test_a_broker_that_stays_away_is_reported_and_work_resumes(one_broker: Broker, tmp_path: Path) -> None:
    """While the broker is away, a member raises LogUnavailable; when it is back, work resumes.

    So it is with a member that starts while the broker is away: joining succeeds, polling raises LogUnavailable.
    """
    count = 3000
    log, late_folder = _open(one_broker, tmp_path), tmp_path / f"{tmp_path.name}-late"
    _prepare(log, count)
    late_log = _open(one_broker, late_folder)
    _prepare(late_log, 10)
    late_log.close()
    worker = Worker(log, 1)
    wait_until(lambda: worker.stage.commits >= 20, worker.told, PATIENCE_S, every_s=0.01)
    one_broker.stop()
    wait_until(lambda: "LogUnavailable" in worker.told(), worker.told, PATIENCE_S)
    late_log = _open(one_broker, late_folder)
    late = late_log.join("g", ["in"], member="m", store="counts")
    with pytest.raises(LogUnavailable):
        late.poll(0.1, 10, 1 << 20)
    time.sleep(AWAY_S)  # the outage
    assert "LogUnavailable" in worker.told()
    commits = worker.stage.commits
    one_broker.start()
    _await_all(log, worker)
    assert worker.stage.commits > commits
    worker.stop()
    _assert_exactly_once(log, count)
    drain(late, 10)
    late.close()
    late_log.close()
    log.close()


def test_a_transaction_that_never_ends_is_reported(one_broker: Broker, tmp_path: Path) -> None:
    """Offsets that stay unstable beyond the transaction timeout are an error with a remedy; work resumes."""
    log = _open(one_broker, tmp_path, msgspec.structs.replace(SETTINGS, transaction_timeout_s=1))
    _prepare(log, 10)
    lasting = msgspec.structs.replace(SETTINGS, transaction_timeout_s=PATIENCE_S)
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
