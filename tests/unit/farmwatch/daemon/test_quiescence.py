"""The wait for rest ends when hits exist, all records are read, and the crawl has no open site."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from crawler.frontier.rows import TOTALS_KEY, Totals, pack
from farmwatch.daemon.quiescence import NotQuiescent, wait_until_quiescent
from replay.runs.topology import READS
from stream.log.contract import Commit, Output, StateChange
from stream.memory.log import MemoryLog
from stream.schema.topics import FRONTIER_STORE, HITS, PAGES, SITES, all_topics


class _Log(MemoryLog):
    """A log with transaction markers at its ends, and records that arrive while the frontier is read."""

    def __init__(self) -> None:
        super().__init__()
        self.markers = 0
        self.late: list[Output] = []
        self.holds = False

    def end(self, topic: str) -> list[int]:
        return [offset + self.markers for offset in super().end(topic)]

    def in_flight(self, topic: str) -> list[bool]:
        return [self.holds and topic == SITES for _ in super().in_flight(topic)]

    def scan_state(self, store: str, partition: int) -> Iterator[tuple[bytes, bytes]]:
        if self.late:
            self.append([self.late.pop()])
        return super().scan_state(store, partition)


@pytest.fixture
def log() -> _Log:
    """A log with all topics, and one hit that all groups have passed."""
    log = _Log()
    log.create(all_topics(2, "e"))
    log.append([Output(HITS, 0, b"s", b"v")])
    _read_all(log)
    return log


def _read_all(log: MemoryLog) -> None:
    """All groups commit the ends of their topics."""
    for group, topics in READS.items():
        for topic in topics:
            log.reset(group, topic, log.end(topic))


class _Clock:
    """A clock that moves on sleep; `then` happens at the first sleep."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.now = 0.0
        self._then: Callable[[], None] | None = then

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self._then is not None:
            self._then()
            self._then = None


def _wait(log: MemoryLog, clock: _Clock, is_running: bool = True) -> Totals:
    return wait_until_quiescent(log, 2, 5.0, monotonic=clock, sleep=clock.sleep, is_running=lambda: is_running)


def test_an_empty_log_is_not_at_rest() -> None:
    """Before the first hit no work can be done; the error comes after the timeout."""
    log, clock = MemoryLog(), _Clock()
    log.create(all_topics(2, "e"))
    with pytest.raises(NotQuiescent, match="not at rest after 5 s"):
        _wait(log, clock)
    assert clock.now >= 5.0


def test_a_log_without_topics_is_waited_for() -> None:
    """A log without topics is waited for, because the processes need a moment to create them."""
    log = MemoryLog()

    def start() -> None:
        log.create(all_topics(2, "e"))
        log.append([Output(HITS, 0, b"s", b"v")])
        _read_all(log)

    _wait(log, _Clock(start))
    assert sum(log.end(HITS)) == 1


def test_rest_needs_every_group_at_the_end(log: _Log) -> None:
    """One unread page prevents rest until it is read."""
    log.append([Output(PAGES, 1, b"s", b"v")])
    clock = _Clock(lambda: _read_all(log))
    _wait(log, clock)
    assert clock.now > 0
    assert log.committed("measure", PAGES) == log.end(PAGES)


def test_rest_needs_the_frontier_at_its_end(log: _Log) -> None:
    """A site with open work prevents rest, even if all records are read; the error has the counts."""
    crawl = log.join("crawl", [HITS], member="m", store=FRONTIER_STORE)
    crawl.poll(0, 1, 1)
    crawl.commit(Commit(state={0: [StateChange(TOTALS_KEY, pack(Totals(sites=2, active=1, queued=7)))]}))
    with pytest.raises(NotQuiescent, match="1 sites and 7 URLs still open"):
        _wait(log, _Clock())


def test_the_wait_ends_at_once_when_the_roles_have_ended(log: _Log) -> None:
    """The wait ends at once when the roles have ended."""
    clock = _Clock()
    with pytest.raises(NotQuiescent, match="the roles ended"):
        _wait(log, clock, is_running=False)
    assert clock.now == 0


def test_markers_at_the_end_are_not_records(log: _Log) -> None:
    """The end offsets of Kafka include transaction markers: offsets without a record do not prevent rest."""
    log.markers = 2
    _wait(log, _Clock())
    log.reset("crawl", HITS, [0, 0])
    with pytest.raises(NotQuiescent):
        _wait(log, _Clock())


def test_a_record_that_arrives_during_the_check_is_waited_for(log: _Log) -> None:
    """A record that is appended while the frontier is read belongs to the run."""
    log.late = [Output(PAGES, 0, b"s", b"v")]
    with pytest.raises(NotQuiescent, match="measure 1"):
        _wait(log, _Clock())


def test_records_in_flight_are_waited_for(log: _Log) -> None:
    """Offsets that all groups have passed prove nothing while the result of a commit is not visible."""
    log.holds = True
    with pytest.raises(NotQuiescent):
        _wait(log, _Clock())

    def arrive() -> None:
        log.holds = False

    clock = _Clock(arrive)
    _wait(log, clock)
    assert clock.now > 0
