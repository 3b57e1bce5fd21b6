"""Waiting until everything is at rest: the crawl at its end, and every record dealt with by the live run.

The proof: take the ends of all topics, see that every group has passed them and that the frontier has nothing left, and
take the ends again. If nothing was appended in between, nothing can move any more: what a stage has under way is not
committed, so its group has not passed it. On Kafka this is slow, so it waits until no topic has grown since the last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from crawler.crawl_stage import frontier_left
from crawler.frontier.rows import Totals
from farmwatch.config.config import Config
from replay.runs.lookup import names_of_live
from replay.runs.topology import READS, Reads, lag_of, reads_of_live
from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.topics import HITS
from stream.text.user_errors import Exit, FarmwatchError
from stream.text.wording import counted

_LOOK_S = 0.2

Ends = dict[str, list[int]]


class NotSettled(FarmwatchError):
    """The stages did not come to rest in time; the message says what is still open. The operator looks at the logs."""

    exit = Exit.PROBLEM


def settle(
    log: Log,
    config: Config,
    timeout_s: float,
    *,
    on_progress: Callable[[Mapping[str, int]], None] = lambda _: None,
    still_running: Callable[[], bool] = lambda: True,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Totals:
    """Wait until the run is at rest and return what its frontier counts.

    `on_progress` gets group -> records that it has not passed (on Kafka with transaction markers), at each look.

    Raises NotSettled after `timeout_s`, or at once when `still_running` says that nobody works on it any more.
    """
    deadline = monotonic() + timeout_s
    passed, control = _Passed(log), Control(log)
    before: Ends = {}
    while True:
        control.refresh()
        reads = reads_of_live(names_of_live(control))
        ends = _ends(log, reads)
        if ends and ends == before and sum(ends[HITS]) > 0:
            frontier = frontier_left(log, config.log.partitions)
            if frontier.active == 0 and passed.all(ends, reads) and _ends(log, reads) == ends:
                return frontier
        before = ends
        waiting = {group: lag_of(log, group, reads) for group in reads} if ends else {}
        on_progress(waiting)
        alive = still_running()
        if not alive or monotonic() > deadline:
            why = f"not at rest after {timeout_s:.0f} s" if alive else "the roles ended before the run was at rest"
            left = frontier_left(log, config.log.partitions) if ends else Totals()
            records = ", ".join(f"{group} {count}" for group, count in waiting.items() if count) or "no records"
            raise NotSettled(f"{why}: {left.active} sites and {left.queued} URLs still open, waiting: {records}")
        sleep(_LOOK_S)


def crawl_waits_for(log: Log, partitions: int) -> str:
    """What a crawl that has nothing left in its own partitions still waits for; "" when all of it is at its end.

    Sites that rest wait for another day, and count as done.
    """
    reads = {"crawl": READS["crawl"]}
    ends = _ends(log, reads)
    if not _Passed(log).all(ends, reads):
        return "hits or decisions that no process has read yet"
    if active := frontier_left(log, partitions).active:
        return f"{counted(active, 'site')} that another process crawls"
    return "" if _ends(log, reads) == ends else "records that were appended just now"


class _Passed:
    """Whether groups have passed the ends of their topics; remembers offsets that turned out to be markers only."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._empty: set[tuple[str, int, int, int]] = set()  # topic, partition, from, to

    def all(self, ends: Ends, reads: Reads) -> bool:
        return all(self._group(group, topic, ends[topic]) for group, topics in reads.items() for topic in topics)

    def _group(self, group: str, topic: str, ends: list[int]) -> bool:
        committed, beginning = self._log.committed(group, topic), self._log.beginning(topic)
        return all(
            self._nothing(topic, partition, max(beginning[partition], committed[partition] or 0), end)
            for partition, end in enumerate(ends)
        )

    def _nothing(self, topic: str, partition: int, start: int, stop: int) -> bool:
        """True when no record lies between: on Kafka, the markers of transactions take offsets too."""
        key = (topic, partition, start, stop)
        if start < stop and key not in self._empty:
            if next(iter(self._log.read(topic, partition, start, stop)), None) is not None:
                return False
            self._empty.add(key)
        return True


def _ends(log: Log, reads: Reads) -> Ends:
    """Topic -> ends of its partitions, for every topic that a stage reads; nothing before they exist."""
    there, read = log.topics(), sorted({topic for topics in reads.values() for topic in topics})
    return {topic: log.end(topic) for topic in read} if all(topic in there for topic in read) else {}
