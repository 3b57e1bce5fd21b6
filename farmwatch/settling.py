"""Waiting until everything is at rest: the crawl at its end, every record dealt with, the heartbeats passed through."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from crawler.crawl_stage import FrontierCounts, frontier_left
from farmwatch.config import Config
from farmwatch.errors import NotSettled
from farmwatch.flow import READS
from stream.log import Log
from stream.topics import HITS

_LOOK_S = 0.2
_READ = {topic for topics in READS.values() for topic in topics}
_QUIET_LOOKS = 2  # in a row: a record may be on its way between two topics while one look passes over them


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: the frontier, and the records that each group has not dealt with."""

    frontier: FrontierCounts
    waiting: dict[str, int]

    hits: int  # records that ever came to the first topic

    @property
    def at_rest(self) -> bool:
        """There were hits, and nothing is left to fetch or to read."""
        return self.hits > 0 and self.frontier.active == 0 and not any(self.waiting.values())


def progress(log: Log, partitions: int) -> Progress:
    """How far the run is now; nothing at all before the topics exist."""
    if not log.topics().keys() >= _READ:
        return Progress(FrontierCounts(), {}, 0)
    return Progress(
        frontier_left(log, partitions),
        {group: sum(unread(log, group, topic) for topic in topics) for group, topics in READS.items()},
        sum(log.end(HITS)),
    )


def settle(
    log: Log,
    config: Config,
    timeout_s: float,
    *,
    told: Callable[[Progress], None] | None = None,
    still_running: Callable[[], bool] = lambda: True,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Progress:
    """Wait until the run is at rest and return its last look; `told` hears of each look.

    Raises NotSettled after `timeout_s`, or at once when `still_running` says that nobody works on it any more.
    """
    deadline = monotonic() + timeout_s
    quiet = 0
    ends: list[list[int]] = []
    while True:
        now = progress(log, config.log.partitions)
        if told is not None:
            told(now)
        seen = [log.end(topic) for topic in sorted(_READ)] if now.at_rest else []
        quiet = quiet + 1 if now.at_rest and seen == ends else 0
        ends = seen
        if quiet >= _QUIET_LOOKS:
            return now
        alive = still_running()
        if not alive or monotonic() > deadline:
            why = f"not at rest after {timeout_s:.0f} s" if alive else "the roles ended before the run was at rest"
            waiting = ", ".join(f"{group} {count}" for group, count in now.waiting.items() if count) or "no records"
            raise NotSettled(
                f"{why}: {now.frontier.active} sites and {now.frontier.queued} URLs still open, waiting: {waiting}"
            )
        sleep(_LOOK_S)


def unread(log: Log, group: str, topic: str) -> int:
    """Offsets that a group has not passed, 0 where only transaction markers are left (Kafka counts those)."""
    behind = 0
    committed = log.committed(group, topic)
    for partition, (first, last) in enumerate(zip(log.beginning(topic), log.end(topic), strict=True)):
        start = max(first, committed[partition] or 0)
        if start < last and next(iter(log.read(topic, partition, start)), None) is not None:
            behind += last - start
    return behind
