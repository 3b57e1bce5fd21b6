"""Which group reads which topics: the way of the data as a table, and how far each group is behind.

The table stands here so that looking at a log needs none of the stages; a test compares it with them. MEASURE, JUDGE
and TALLY carry on the run that is live, whose groups and topics may have names of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replay.runs.lookup import names_of_live
from replay.runs.offsets import lag_on
from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.runs import LIVE, RunNames, names_of
from stream.schema.topics import DECISIONS, HITS, PAGES, REPLAY_REQUESTS, SCORE_REQUESTS, SCORES

Reads = Mapping[str, tuple[str, ...]]  # group -> topics


def reads_of_run(names: RunNames) -> Reads:
    """What the groups of a run read."""
    return {
        names.measure_group: (PAGES,),
        names.judge_group: (names.features,),
        names.tally_group: (HITS, names.verdicts, SCORES),
    }


def reads_of_live(names: RunNames) -> Reads:
    """What all groups read while the run of these names is live, in the order of the data."""
    measure, judge, tally = reads_of_run(names).items()
    score = ("score", (SCORE_REQUESTS, REPLAY_REQUESTS))
    return dict((("crawl", (HITS, DECISIONS)), measure, judge, score, tally))


READS: Reads = reads_of_live(names_of(LIVE, is_live=True))  # with the run that a log begins with


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
    """Every topic of the log, by name, with the lag of the groups at work: those of the run that is live."""
    states = []
    reads = reads_of_live(names_of_live(Control(log)))
    for name, partitions in sorted(log.topics().items()):
        lag = {group: lag_on(log, group, name) for group, topics in reads.items() if name in topics}
        states.append(TopicState(name, partitions, log.beginning(name), log.end(name), lag))
    return states


def lag_of(log: Log, group: str, reads: Reads = READS) -> int:
    """Records that a group has not dealt with, over all its topics. Raises UnknownTopic."""
    return sum(lag_on(log, group, topic) for topic in reads[group])
