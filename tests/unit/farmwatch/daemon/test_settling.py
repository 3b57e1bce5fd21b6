"""Waiting for rest: only when hits came, all is read, and the crawl is at its end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawler.frontier.rows import Totals
from farmwatch.config.config import Config, load
from farmwatch.daemon import quiescence as settling
from farmwatch.daemon.quiescence import NotSettled, settle
from replay.runs.topology import READS
from stream.log.contract import Output
from stream.memory.log import MemoryLog
from stream.schema.topics import HITS, PAGES, all_topics

CONFIG: Config = load(None, ["log.partitions=2"], {}).config


@pytest.fixture
def log() -> MemoryLog:
    """A log with all topics."""
    log = MemoryLog()
    log.create(all_topics(2, "e"))
    return log


def _read_all(log: MemoryLog) -> None:
    """All groups commit the ends of what they read."""
    for group, topics in READS.items():
        for topic in topics:
            log.reset(group, topic, log.end(topic))


class _Clock:
    """A clock that sleeping moves; `then` happens at the first sleep."""

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


def _settle(log: MemoryLog, clock: _Clock, alive: bool = True) -> Totals:
    return settle(log, CONFIG, 5.0, monotonic=clock, sleep=clock.sleep, still_running=lambda: alive)


def test_an_empty_log_is_not_at_rest(log: MemoryLog) -> None:
    """Before the first hit there is nothing to be finished with; the error says so after the time is up."""
    clock = _Clock()
    with pytest.raises(NotSettled, match="not at rest after 5 s"):
        _settle(log, clock)
    assert clock.now >= 5.0


def test_a_log_without_topics_is_waited_for() -> None:
    """The processes may need a moment to lay out the log."""
    log = MemoryLog()

    def start() -> None:
        log.create(all_topics(2, "e"))
        log.append([Output(HITS, 0, b"s", b"v")])
        _read_all(log)

    _settle(log, _Clock(start))
    assert sum(log.end(HITS)) == 1


def test_rest_needs_every_group_at_the_end(log: MemoryLog) -> None:
    """One unread page keeps it from rest; when it is read, it rests."""
    log.append([Output(HITS, 0, b"s", b"v"), Output(PAGES, 1, b"s", b"v")])
    _read_all(log)
    log.reset("measure", PAGES, [0, 0])
    clock = _Clock(lambda: _read_all(log))
    _settle(log, clock)
    assert clock.now > 0
    assert log.committed("measure", PAGES) == log.end(PAGES)


def test_rest_needs_the_frontier_at_its_end(log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A site with something left to fetch keeps it from rest, whatever is read; the error tells what is open."""
    log.append([Output(HITS, 0, b"s", b"v")])
    _read_all(log)
    monkeypatch.setattr(settling, "frontier_left", lambda log, partitions: Totals(sites=2, active=1, queued=7))
    with pytest.raises(NotSettled, match="1 sites and 7 URLs still open"):
        _settle(log, _Clock())


def test_it_ends_at_once_when_nobody_works_any_more(log: MemoryLog) -> None:
    """Roles that ended leave nothing to wait for."""
    log.append([Output(HITS, 0, b"s", b"v")])
    clock = _Clock()
    with pytest.raises(NotSettled, match="the roles ended"):
        _settle(log, clock, alive=False)
    assert clock.now == 0


def test_markers_at_the_end_are_nothing_to_read(log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's end offsets include transaction markers: offsets without a record do not keep it from rest."""
    log.append([Output(HITS, 0, b"s", b"v")])
    _read_all(log)
    end = log.end
    monkeypatch.setattr(log, "end", lambda topic: [offset + 2 for offset in end(topic)])
    _settle(log, _Clock())
    log.reset("crawl", HITS, [0, 0])
    with pytest.raises(NotSettled):
        _settle(log, _Clock())


def test_a_topic_that_grows_during_the_look_is_looked_at_again(log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that comes while the frontier is read belongs to the run: it is waited for."""
    log.append([Output(HITS, 0, b"s", b"v")])
    _read_all(log)
    late = [Output(PAGES, 0, b"s", b"v")]

    def look(_log: object, _partitions: int) -> Totals:
        if late:
            log.append([late.pop()])
        return Totals(sites=1)

    monkeypatch.setattr(settling, "frontier_left", look)
    with pytest.raises(NotSettled, match="measure 1"):
        _settle(log, _Clock())
