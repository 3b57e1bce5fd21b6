"""A random history of two members, appends, commits, rewinds, crashes and restarts, against a simple model.

Each member copies `in` to `out`, numbering the records of a key by a count in its state. At the end `out` must hold
every record of a key exactly once, in order and numbered 1, 2, 3, …, and state and offsets must agree.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from stream.log.contract import At, Commit, Member, Message, Output, StateChange, partition_of
from stream.log.errors import Fenced
from tests.support.waiting import wait_until
from tests.support.worlds import KINDS, World, record

PARTITIONS = 3
NAMES = ("left", "right")
names = st.sampled_from(NAMES)
keys = st.sampled_from(["a", "b", "c", "d", "e"])


class Worker:
    """A member with its uncommitted records per partition; they are dropped when the partition's epoch changes."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.epochs: dict[int, int] = {}
        self.held: dict[int, list[Message]] = {}

    def poll(self, max_records: int, timeout_s: float = 0.0) -> None:
        try:
            messages = self.member.poll(timeout_s, max_records, 1 << 20)
        finally:
            now = dict(self.member.assignment())
            self.held = {p: held for p, held in self.held.items() if now.get(p) == self.epochs.get(p)}
            self.epochs = now
        for message in messages:
            self.held.setdefault(message.partition, []).append(message)

    def commit(self) -> None:
        """Number the held records and commit them with counts and offsets, or forget them when fenced."""
        try:
            self.member.commit(self._numbered())
        except Fenced:
            self.member.rewind()
        self.held = {}

    def _numbered(self) -> Commit:
        outputs: list[Output] = []
        offsets: dict[At, int] = {}
        state: dict[int, list[StateChange]] = {}
        for partition, held in self.held.items():
            counts: dict[bytes, int] = {}
            for message in held:
                count = counts.get(message.key)
                if count is None:
                    count = int(self.member.state(partition).get(message.key) or b"0")
                counts[message.key] = count + 1
                numbered = b"%d:%b" % (count + 1, message.value or b"")
                outputs.append(Output("out", partition, message.key, numbered))
                offsets[At("in", partition)] = message.offset + 1
            state[partition] = [StateChange(key, b"%d" % count, count) for key, count in counts.items()]
        return Commit(outputs, offsets, state)


def machine(kind: type[World]) -> type[RuleBasedStateMachine]:
    """The state machine on logs of one kind."""

    class History(RuleBasedStateMachine):
        world: World
        workers: dict[str, Worker]

        @initialize()
        def start(self) -> None:
            self.folder = tempfile.TemporaryDirectory(prefix="farmwatch-")
            self.world = kind(Path(self.folder.name))
            self.world.topics("in", "out", partitions=PARTITIONS, store="s")
            self.sent: dict[str, list[str]] = {}
            self.workers = {}
            for name in NAMES:
                self._join(name)

        def _join(self, name: str) -> None:
            log = self.world.again()
            self.workers[name] = Worker(self.world.join("in", name=name, store="s", log=log))

        @rule(batch=st.lists(keys, min_size=1, max_size=6), size=st.sampled_from([0, 0, 3000]))
        def append(self, batch: list[str], size: int) -> None:
            outputs = []
            for key in batch:
                sent = self.sent.setdefault(key, [])
                sent.append(f"{len(sent)}".ljust(size))
                outputs.append(record("in", partition_of(key, PARTITIONS), key, sent[-1]))
            self.world.log.append(outputs)

        @rule(name=names, max_records=st.integers(1, 7))
        def poll(self, name: str, max_records: int) -> None:
            self._guarded(name, lambda worker: worker.poll(max_records))

        @rule(name=names)
        def commit(self, name: str) -> None:
            self.workers[name].commit()

        @rule(name=names, max_records=st.integers(1, 7))
        def work(self, name: str, max_records: int) -> None:
            self.poll(name, max_records)
            self.workers[name].commit()

        @rule(name=names)
        def rewind(self, name: str) -> None:
            self.workers[name].member.rewind()
            self.workers[name].held = {}

        @rule(name=names)
        def crash_and_restart(self, name: str) -> None:
            """The process crashes, and another starts under its name."""
            self._join(name)

        @rule(name=names)
        def restart(self, name: str) -> None:
            self.workers[name].member.close()
            self._join(name)

        @rule()
        def lease_runs_out(self) -> None:
            """All members are silent for longer than the lease; the first to poll wins."""
            self.world.clock.turn(61_000)

        @invariant()
        def owners_differ(self) -> None:
            """`out` is always a prefix of the expected records: none twice, none missing."""
            if self.world.embedded:
                self._check_prefix()

        def _guarded(self, name: str, action: Any) -> None:
            """A member that is fenced by another of its name stays out."""
            try:
                action(self.workers[name])
            except Fenced:
                self.workers[name].held = {}

        def _check_prefix(self) -> Counter[str]:
            counts: Counter[str] = Counter()
            for partition in range(PARTITIONS):
                for message in self.world.log.read("out", partition):
                    key = message.key.decode()
                    assert message.value is not None
                    number, _, value = message.value.decode().partition(":")
                    assert (int(number), value) == (counts[key] + 1, self.sent[key][counts[key]])
                    counts[key] += 1
            return counts

        def teardown(self) -> None:
            if not hasattr(self, "workers"):
                return
            try:
                self._finish()
            finally:
                self.world.close()
                self.folder.cleanup()

        def _finish(self) -> None:
            due = sum(map(len, self.sent.values()))

            def all_copied() -> bool:
                for name, worker in self.workers.items():
                    self._guarded(name, lambda worker: worker.poll(50, 0.01))
                    worker.commit()
                return self._check_prefix().total() == due

            for worker in self.workers.values():
                worker.member.rewind()
                worker.held = {}
            wait_until(all_copied, f"{due} copies")
            view = self.world.again()
            rows = {key.decode(): int(count) for p in range(PARTITIONS) for key, count in view.scan_state("s", p)}
            assert rows == {key: len(sent) for key, sent in self.sent.items()}
            for partition, offset in enumerate(view.committed("g", "in")):
                assert list(view.read("in", partition, offset or 0)) == []

    return History


@pytest.mark.parametrize("kind", ["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def test_any_history_copies_each_record_exactly_once(kind: str) -> None:
    """After any history of polls, commits, rewinds, crashes and takeovers, each record was copied once, in order."""
    world = KINDS[kind]
    run_state_machine_as_test(
        machine(world),
        settings=settings(
            max_examples=world.examples,
            stateful_step_count=30 if world.embedded else 15,
            suppress_health_check=list(HealthCheck),
        ),
    )
