"""Waits until the crawl has ended and the live run has processed every record.

The proof: read the end offsets of all topics, check that every group has passed them, that the frontier is empty and
that no record is in flight, and read the end offsets again. If they are the same, nothing can change any more: a stage
commits records only when they are processed. The check is slow on Kafka, so it runs only when no topic has grown since
the last check.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from crawler.frontier.report import frontier_left
from crawler.frontier.rows import Totals
from replay.runs.lookup import names_of_live
from replay.runs.topology import READS, Reads, lag_of, reads_of_live
from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.topics import HITS
from stream.text.user_errors import Exit, FarmwatchError
from stream.text.wording import counted

_POLL_S = 0.2

Ends = dict[str, list[int]]


class NotQuiescent(FarmwatchError):
    """The stages did not come to rest in time; the message has the open work. The operator reads the logs."""

    exit = Exit.PROBLEM


def wait_until_quiescent(
    log: Log,
    partitions: int,
    timeout_s: float,
    *,
    on_progress: Callable[[Mapping[str, int]], None] = lambda _: None,
    is_running: Callable[[], bool] = lambda: True,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Totals:
    """Wait until the live run is at rest, and return the counts of its frontier.

    `on_progress` gets the lag per group (on Kafka with transaction markers) at each check. `is_running` tells whether
    the stages still run.

    Raises NotQuiescent after `timeout_s`, or at once when the stages do not run any more.
    """
    deadline = monotonic() + timeout_s
    passed, control = _EndsPassed(log), Control(log)
    before: Ends = {}
    while True:
        control.refresh()
        reads = reads_of_live(names_of_live(control))
        ends = _ends(log, reads)
        if ends and ends == before and sum(ends[HITS]) > 0:
            frontier = frontier_left(log, partitions)
            at_rest = frontier.active == 0 and passed.by_all(ends, reads) and not _in_flight(log)
            if at_rest and _ends(log, reads) == ends:
                return frontier
        before = ends
        waiting = {group: lag_of(log, group, reads) for group in reads} if ends else {}
        on_progress(waiting)
        alive = is_running()
        if not alive or monotonic() > deadline:
            why = f"not at rest after {timeout_s:.0f} s" if alive else "the roles ended before the run was at rest"
            left = frontier_left(log, partitions) if ends else Totals()
            records = ", ".join(f"{group} {count}" for group, count in waiting.items() if count) or "no records"
            raise NotQuiescent(f"{why}: {left.active} sites and {left.queued} URLs still open, waiting: {records}")
        sleep(_POLL_S)


def crawl_waits_for(log: Log, partitions: int) -> str:
    """Open work of a crawl whose own partitions are done; "" if there is none. Resting sites count as done."""
    reads = {"crawl": READS["crawl"]}
    ends = _ends(log, reads)
    if not _EndsPassed(log).by_all(ends, reads):
        return "hits or decisions that no process has read yet"
    if active := frontier_left(log, partitions).active:
        return f"{counted(active, 'site')} that another process crawls"
    return "" if _ends(log, reads) == ends else "records that were appended just now"


class _EndsPassed:
    """Checks whether groups have passed the ends of their topics. Remembers offset ranges that hold only markers."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._empty: set[tuple[str, int, int, int]] = set()  # topic, partition, from, to

    def by_all(self, ends: Ends, reads: Reads) -> bool:
        for group, topic in ((group, topic) for group, topics in reads.items() for topic in topics):
            places = zip(self._log.beginning(topic), self._log.committed(group, topic), ends[topic], strict=True)
            for partition, (first, done, end) in enumerate(places):
                if not self._is_empty(topic, partition, max(first, done or 0), end):
                    return False
        return True

    def _is_empty(self, topic: str, partition: int, start: int, stop: int) -> bool:
        """Whether the range holds no record: on Kafka, markers of transactions take offsets too."""
        key = (topic, partition, start, stop)
        if start < stop and key not in self._empty:
            if next(iter(self._log.read(topic, partition, start, stop)), None) is not None:
                return False
            self._empty.add(key)
        return True


def _in_flight(log: Log) -> bool:
    return any(any(log.in_flight(topic)) for topic in log.topics())


def _ends(log: Log, reads: Reads) -> Ends:
    """Topic -> end offsets, for every topic that a stage reads; empty until all of them exist."""
    existing, read = log.topics(), sorted({topic for topics in reads.values() for topic in topics})
    return {topic: log.end(topic) for topic in read} if all(topic in existing for topic in read) else {}
