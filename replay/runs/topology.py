"""Which group reads which topics: the way of the data as a table, and how far each group is behind.

The table stands here so that looking at a log needs none of the stages; a test compares it with them. MEASURE, JUDGE
and TALLY carry on the run that is live, whose groups and topics may have names of their own.

Heartbeats, transaction markers, gaps of compaction and scores of other detectors are no records of a run, so offsets
alone do not tell how far it is behind: a run that was done in the evening would be a thousand behind in the morning.
The unread part is read until more is found than a cutover takes, or PASSED_OVER scores of others were; beyond that
each offset counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replay.runs.lookup import names_of_live
from replay.runs.offsets import is_record, lag_on, unread_of
from stream.log.contract import At, Log, Message
from stream.schema.control import Control
from stream.schema.runs import LIVE, Run, RunNames, names_of
from stream.schema.topics import DECISIONS, HITS, PAGES, REPLAY_REQUESTS, SCORE_REQUESTS, SCORES

Reads = Mapping[str, tuple[str, ...]]  # group -> topics
MAX_LAG = 1000  # records that the live stages may have to catch up with after a cutover: seconds of work
PASSED_OVER = 100_000  # scores of other detectors that are read over: a second's work


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


def lag_by_group(
    log: Log, control: Control, run: Run, limit: int = MAX_LAG, exact: int = MAX_LAG, passed_over: int = PASSED_OVER
) -> dict[str, int]:
    """Group -> records that a run has not dealt with; exact up to `limit` and `exact`, past so many scores of others.

    Of MEASURE only where the live run has other features: else the run waits for the same ones as that does. Raises
    UnknownTopic, LogUnavailable.
    """
    reads: Reads = reads_of_run(run.names())
    live = control.live
    if live is not None and live.features == run.features:
        reads = {group: topics for group, topics in reads.items() if group != run.names().measure_group}
    return records_behind(log, reads, limit, run.detector, exact, passed_over)


def records_behind(
    log: Log,
    reads: Reads,
    limit: int = MAX_LAG,
    detector: str = "",
    exact: int = MAX_LAG,
    passed_over: int = PASSED_OVER,
) -> dict[str, int]:
    """Group -> records of its topics that it has not dealt with; exact as `lag_by_group` is. Raises UnknownTopic.

    Of scores those of `detector`; "" = all.
    """
    unread: dict[At, tuple[int, int]] = {}
    group_of: dict[str, str] = {}
    for group, topics in reversed(list(reads.items())):  # what TALLY reads is small, pages are large
        for topic in topics:
            group_of[topic] = group
            unread |= unread_of(log, group, topic)
    lag = dict.fromkeys(reads, 0)
    offsets = sum(last - first for first, last in unread.values())
    exact = max(limit, exact) if offsets > limit else exact  # records are no more than offsets
    for topic, records in _records_in(log, unread, exact, detector, passed_over).items():
        lag[group_of[topic]] += records
    return lag


def _records_in(
    log: Log, spans: Mapping[At, tuple[int, int]], exact: int, detector: str, most_of_others: int
) -> dict[str, int]:
    """Topic -> records in these spans of offsets; what is left once `exact` are found counts by offsets."""
    left = dict(spans)
    found = dict.fromkeys((at.topic for at in spans), 0)
    met = passed_over = 0
    for message in log.read_all(spans):
        at = At(message.topic, message.partition)
        left[at] = (message.offset + 1, left[at][1])
        if is_record(message):
            if _is_of_another(message, detector):
                passed_over += 1
            else:
                found[at.topic] += 1
                met += 1
        if met > exact or passed_over > most_of_others:
            break
    else:
        return found
    for at, (first, last) in left.items():
        found[at.topic] += last - first
    return found


def _is_of_another(message: Message, detector: str) -> bool:
    """Whether it is a score of another detector, as its key says: site, space, text digest, colon, identity."""
    if message.topic != SCORES or not detector:
        return False
    given_by = message.key.partition(b" ")[2].partition(b":")[2]
    return given_by not in (b"", detector.encode())
