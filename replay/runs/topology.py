"""Which group reads which topics, and the positions and lag of each group.

The table is separate so that reading a log imports no stage; a test compares it with the stages. MEASURE, JUDGE and
TALLY serve the live run, whose groups and topics may have their own names.

Heartbeats, transaction markers, gaps of compaction and scores of other detectors are not records of a run, so offsets
alone overstate its lag: a run that was done in the evening would be a thousand records behind in the morning. Therefore
the unread part is read, until it has more records than a cutover accepts, or MAX_OTHER_SCORES scores of other
detectors. Beyond that each offset counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from replay.runs.lookup import names_of_live
from stream.log.contract import At, Log, Message
from stream.log.errors import BadRecord
from stream.processing.heartbeat import is_heartbeat
from stream.schema.control import Control
from stream.schema.records import Hit, read
from stream.schema.runs import LIVE, Run, RunNames, names_of
from stream.schema.topics import DECISIONS, HITS, PAGES, REPLAY_REQUESTS, RETRIES, SCORE_REQUESTS, SCORES

Stops = Mapping[str, Sequence[int]]  # topic -> offsets per partition
_STEPS = (1, 16, 256)  # offsets searched first, before the rest: markers and compaction leave gaps
Reads = Mapping[str, tuple[str, ...]]  # group -> topics
MAX_LAG = 1000  # largest lag that a cutover accepts: seconds of work for the live stages
MAX_OTHER_SCORES = 100_000  # scores of other detectors that are skipped: one second of work


def reads_of_run(names: RunNames) -> Reads:
    """Group -> topics, of the groups of a run."""
    return {
        names.measure_group: (PAGES,),
        names.judge_group: (names.features,),
        names.tally_group: (HITS, names.verdicts, SCORES),
    }


def reads_of_live(names: RunNames) -> Reads:
    """Group -> topics, of all groups while the run with these names is live, in the order of the data."""
    measure, judge, tally = reads_of_run(names).items()
    score = ("score", (SCORE_REQUESTS, REPLAY_REQUESTS))
    return dict((("crawl", (HITS, DECISIONS)), measure, judge, score, tally))


def inputs_of_live(names: RunNames) -> Reads:
    """As `reads_of_live`, with the retries of dead letters, which every live group reads."""
    return {group: (*topics, RETRIES) for group, topics in reads_of_live(names).items()}


READS: Reads = reads_of_live(names_of(LIVE, is_live=True))  # of the first run


@dataclass(frozen=True, slots=True)
class TopicState:
    """The current state of a topic; `records` counts stored offsets, on Kafka transaction markers included."""

    name: str
    partitions: int
    beginning: list[int]
    end: list[int]
    lag: dict[str, int]  # group -> records between its committed offsets and the ends

    @property
    def records(self) -> int:
        return sum(self.end) - sum(self.beginning)


def topic_states(log: Log) -> list[TopicState]:
    """Every topic of the log, by name, with the lag of the groups of the live run."""
    states = []
    reads = inputs_of_live(names_of_live(Control(log)))
    for name, partitions in sorted(log.topics().items()):
        lag = {group: lag_on(log, group, name) for group, topics in reads.items() if name in topics}
        states.append(TopicState(name, partitions, log.beginning(name), log.end(name), lag))
    return states


def lag_of(log: Log, group: str, reads: Reads = READS) -> int:
    """Unprocessed records of a group, over all its topics. Raises UnknownTopic."""
    return sum(lag_on(log, group, topic) for topic in reads[group])


def lag_by_group(log: Log, control: Control, run: Run, limit: int = MAX_LAG) -> dict[str, int]:
    """Group -> unprocessed records of a run; exact up to `limit` and MAX_LAG.

    MEASURE is included only if the live run has other features; otherwise both runs wait for the same features. Raises
    UnknownTopic, LogUnavailable.
    """
    reads: Reads = reads_of_run(run.names())
    live = control.live
    if live is not None and live.features == run.features:
        reads = {group: topics for group, topics in reads.items() if group != run.names().measure_group}
    return records_behind(log, reads, limit, run.detector)


def records_behind(log: Log, reads: Reads, limit: int = MAX_LAG, detector: str = "") -> dict[str, int]:
    """As `lag_by_group`, for any groups; of scores those of `detector`, "" = all. Raises UnknownTopic."""
    unread: dict[At, tuple[int, int]] = {}
    group_of: dict[str, str] = {}
    for group, topics in reversed(list(reads.items())):  # TALLY first: its records are small, pages are large
        for topic in topics:
            group_of[topic] = group
            unread |= unread_of(log, group, topic)
    lag = dict.fromkeys(reads, 0)
    offsets = sum(last - first for first, last in unread.values())
    exact = max(limit, MAX_LAG) if offsets > limit else MAX_LAG  # records are no more than offsets
    for topic, records in _records_in(log, unread, exact, detector).items():
        lag[group_of[topic]] += records
    return lag


def _records_in(log: Log, spans: Mapping[At, tuple[int, int]], exact: int, detector: str) -> dict[str, int]:
    """Topic -> records in these offsets. After `exact` records or too many other scores, offsets count."""
    left = dict(spans)
    records = dict.fromkeys((at.topic for at in spans), 0)
    met = other_scores = 0
    for message in log.read_all(spans):
        at = At(message.topic, message.partition)
        left[at] = (message.offset + 1, left[at][1])
        if is_record(message):
            # The key of a score: site, space, text digest, colon, identity of its detector.
            scored_by = message.key.partition(b" ")[2].partition(b":")[2] if at.topic == SCORES and detector else b""
            if scored_by in (b"", detector.encode()):
                records[at.topic] += 1
                met += 1
            else:
                other_scores += 1
        if met > exact or other_scores > MAX_OTHER_SCORES:
            break
    else:
        return records
    for at, (first, last) in left.items():
        records[at.topic] += last - first
    return records


def processed_by(log: Log, group: str, topic: str) -> list[int]:
    """The next offset of a group in each partition; expired records count as processed."""
    pairs = zip(log.beginning(topic), log.committed(group, topic), strict=True)
    return [max(first, done or 0) for first, done in pairs]


def is_at_stops(log: Log, group: str, stops: Stops) -> bool:
    """Whether a group has reached its stops, through any of its members. Raises as `Log.committed`."""
    return all(
        done >= stop
        for topic, ends in stops.items()
        for done, stop in zip(processed_by(log, group, topic), ends, strict=True)
    )


def unread_of(log: Log, group: str, topic: str) -> dict[At, tuple[int, int]]:
    """The unprocessed offsets (start, end) of a group, for each partition that has some."""
    spans = zip(processed_by(log, group, topic), log.end(topic), strict=True)
    return {At(topic, partition): span for partition, span in enumerate(spans) if span[0] < span[1]}


def lag_on(log: Log, group: str, topic: str) -> int:
    """Unprocessed records of a group on a topic; on Kafka, transaction markers count too."""
    return between(processed_by(log, group, topic), log.end(topic))


def between(start: Iterable[int], stop: Iterable[int]) -> int:
    """Number of offsets from start to stop, over all partitions."""
    return sum(max(0, last - first) for first, last in zip(start, stop, strict=True))


def is_record(message: Message) -> bool:
    """Whether a stage has to process the message: it is neither a heartbeat nor a tombstone."""
    return message.value is not None and not is_heartbeat(message)


def is_to_crawl(message: Message) -> bool:
    """Whether CRAWL has to do something for a message on `hits`: it is no heartbeat, and no hit of an imported page."""
    try:
        return is_record(message) and not read(Hit, message).imported
    except BadRecord:
        return True


def first_record(
    log: Log, topic: str, partition: int, start: int, stop: int, is_match: Callable[[Message], bool] = is_record
) -> Message | None:
    """The first record in [start, stop) that matches `is_match`; the default skips heartbeats and tombstones."""
    for step in (*_STEPS, stop - start):
        message = next(filter(is_match, log.read(topic, partition, start, min(start + step, stop))), None)
        if message is not None or start + step >= stop:
            return message
    return None


def last_record(log: Log, topic: str, partition: int, start: int, stop: int) -> Message | None:
    """The last record in [start, stop); searches only the last few hundred offsets."""
    for step in _STEPS:
        last = deque(filter(is_record, log.read(topic, partition, max(start, stop - step), stop)), maxlen=1)
        if last or stop - step <= start:
            return last[0] if last else None
    return None
