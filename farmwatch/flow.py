"""Which group reads which topics: the way of the data as a table, and how far each group is behind.

The table stands here so that looking at a log needs none of the stages; a test compares it with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stream.log import Log
from stream.topics import DECISIONS, FEATURES, HITS, PAGES, REPLAY_REQUESTS, SCORE_REQUESTS, SCORES, VERDICTS

READS: Mapping[str, tuple[str, ...]] = {
    "crawl": (HITS, DECISIONS),
    "measure": (PAGES,),
    "judge": (FEATURES,),
    "score": (SCORE_REQUESTS, REPLAY_REQUESTS),
    "tally": (HITS, VERDICTS, SCORES),
}


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as it stands: `records` counts kept offsets, on Kafka transaction markers included."""

    name: str
    partitions: int
    beginning: list[int]
    end: list[int]
    lag: dict[str, int]  # group -> records between what it has committed and the end

    @property
    def records(self) -> int:
        """Offsets between beginning and end, over all partitions."""
        return sum(self.end) - sum(self.beginning)


def topic_states(log: Log) -> list[TopicState]:
    """Every topic of the log, by name."""
    states = []
    for name, partitions in sorted(log.topics().items()):
        beginning, end = log.beginning(name), log.end(name)
        lag = {group: _behind(log, group, name, beginning, end) for group, topics in READS.items() if name in topics}
        states.append(TopicState(name, partitions, beginning, end, lag))
    return states


def lag_of(log: Log, group: str) -> int:
    """Records that a group has not dealt with, over all its topics."""
    return sum(_behind(log, group, topic, log.beginning(topic), log.end(topic)) for topic in READS[group])


def _behind(log: Log, group: str, topic: str, beginning: list[int], end: list[int]) -> int:
    committed = log.committed(group, topic)
    return sum(
        max(0, last - max(first, done or 0)) for first, last, done in zip(beginning, end, committed, strict=True)
    )
