"""Topics made, used and removed by several processes in any order, against a model that is a dictionary."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from stream.log.contract import Log, Topic
from stream.log.errors import UnknownTopic
from tests.support.worlds import EmbeddedWorld, record, remove, values

processes = st.integers(0, 1)
names = st.sampled_from(["a", "b"])
sizes = st.sampled_from([3, 3, 5000])


class History(RuleBasedStateMachine):
    """Two processes on one log."""

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="farmwatch-lifecycle-"))
        self.world = EmbeddedWorld(self.folder)
        self.logs: list[Log] = [self.world.again() for _ in range(2)]
        self.model: dict[str, list[list[str]]] = {}  # topic -> values per partition
        self.offsets: dict[str, list[int]] = {}  # topic -> what the group was set to
        self.written = 0

    @rule(process=processes, name=names, partitions=st.integers(1, 2))
    def create(self, process: int, name: str, partitions: int) -> None:
        if name not in self.model:
            self.logs[process].create([Topic(name, partitions)])
            self.model[name] = [[] for _ in range(partitions)]

    @rule(process=processes, gone=st.sets(names))
    def remove(self, process: int, gone: set[str]) -> None:
        freed = self.logs[process].remove(sorted(gone))
        assert (freed > 0) == any(part for name in gone for part in self.model.get(name, ()))
        for name in gone:
            self.model.pop(name, None)
            self.offsets.pop(name, None)

    @rule(process=processes, name=names, partition=st.integers(0, 1), size=sizes)
    def append(self, process: int, name: str, partition: int, size: int) -> None:
        self.written += 1
        value = f"{self.written}".ljust(size)
        output = record(name, partition, "k", value)
        if partition < len(self.model.get(name, ())):
            self.logs[process].append([output])
            self.model[name][partition].append(value)
        else:
            with pytest.raises(UnknownTopic):
                self.logs[process].append([output])

    @rule(process=processes, name=names)
    def set_to_end(self, process: int, name: str) -> None:
        if name in self.model:
            log = self.logs[process]
            log.reset("g", name, log.end(name))
            self.offsets[name] = [len(part) for part in self.model[name]]

    @rule(process=processes, name=names)
    def read(self, process: int, name: str) -> None:
        log = self.logs[process]
        if name not in self.model:
            with pytest.raises(UnknownTopic):
                log.end(name)
            return
        assert log.end(name) == [len(part) for part in self.model[name]]
        assert [values(log.read(name, p)) for p in range(len(self.model[name]))] == self.model[name]
        assert log.committed("g", name) == self.offsets.get(name, [None] * len(self.model[name]))

    @invariant()
    def all_list_the_same(self) -> None:
        """Every process lists the topics that there are."""
        if hasattr(self, "logs"):
            due = {name: len(parts) for name, parts in self.model.items()}
            assert [dict(log.topics()) for log in self.logs] == [due] * 2

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.close()
            remove(self.folder)


def test_topics_are_what_the_last_one_made_of_them() -> None:
    """After any history every process lists, reads and appends to the topics that are there, and to no others."""
    run_state_machine_as_test(
        History,
        settings=settings(
            max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
