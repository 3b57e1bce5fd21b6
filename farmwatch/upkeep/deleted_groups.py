"""Detects live groups that lost offsets or state, and so would read a topic again.

A broker drops the offsets of a group without members after a week, and an operator may delete a group or a topic.
Sites and rates stay right, because TALLY counts a page once, but features and verdicts are written twice. A group that
lost its store counts or crawls again. `up` warns and starts: at night nobody would notice a daemon that refuses to.

Topics that were deleted, too: `up` makes them again, empty, but rates and audits lack the deleted records.

`repair_groups` sets the offsets after the records that a group has processed. A stage commits the results of a
partition in the order of its records. So the last record of the input with a result in the output is the last processed
one; later records without a result (refused pages, dead letters) are processed again. CRAWL and TALLY need no repair of
lost offsets: reading a hit, verdict or score again changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from replay.runs.lookup import names_of_live
from replay.runs.topology import between, first_record, inputs_of_live, is_to_crawl
from scoring.stages.site_pages import JudgedPage
from stream.log.contract import Log, Message
from stream.log.errors import BadRecord
from stream.processing.heartbeat import holds_records, is_heartbeat
from stream.schema.control import Control
from stream.schema.records import Features, Record, Score, kind_of, read
from stream.schema.roles import STAGES, Role
from stream.schema.runs import RunNames
from stream.schema.topics import FRONTIER_STORE, HITS, PAGES, REPLAY_REQUESTS, RETRIES, SCORE_REQUESTS, SCORES
from stream.text.wording import counted

_LOOKED_AT = 256  # hits of a partition


@dataclass(frozen=True, slots=True)
class RereadingGroup:
    """A group that reads topics again. Without `records`, its store is empty."""

    group: str
    records: dict[str, int]  # per topic
    why: str
    inputs: tuple[str, ...] = ()  # its topics, if its store is empty
    duplicates: bool = True  # False for CRAWL and TALLY, which know what they have read

    @property
    def text(self) -> str:
        """Cause and effect in one line."""
        if not self.records:
            return f"the group {self.group} {self.why}: it resumes without its memory of the sites"
        topics = " and ".join(f"{topic} ({counted(count, 'record')})" for topic, count in self.records.items())
        return (
            f"the group {self.group} {self.why}, so it reads {topics} again from the beginning: rates stay right, but"
            f" the work is done twice{', and `farmwatch doctor audit` finds duplicates' if self.duplicates else ''}"
        )


def find_rereading_groups(log: Log, roles: Collection[Role] = STAGES) -> Iterator[RereadingGroup]:
    """The groups of these roles that lost offsets, have offsets beyond the end of a topic, or lost their store.

    Raises LogUnavailable.
    """
    names = names_of_live(Control(log))
    existing = log.topics()
    made_by = (f"state.{FRONTIER_STORE}", names.features, names.verdicts, SCORES, names.sites)
    stores = {Role.CRAWL: (FRONTIER_STORE, PAGES), Role.TALLY: (names.tally_store, names.sites)}
    for role, made, (group, topics) in zip(STAGES, made_by, inputs_of_live(names).items(), strict=True):
        there = [topic for topic in topics if topic in existing]
        if role not in roles or not there:
            continue
        duplicates = role not in stores
        committed = {topic: log.committed(group, topic) for topic in there}
        known = {topic for topic, offsets in committed.items() if any(offset is not None for offset in offsets)}
        sizes = {topic: size.records for topic, size in log.sizes(there).items() if size.records}
        for topic in known & sizes.keys():
            pairs = zip(committed[topic], log.end(topic), strict=True)
            if any(offset is not None and offset > end for offset, end in pairs):
                why = f"has offsets beyond the end of {topic}, which was recreated or truncated"
                yield RereadingGroup(group, {topic: sizes[topic]}, why, duplicates=duplicates)
        lost = {topic: records for topic, records in sizes.items() if topic not in known}
        if lost and made in existing and log.sizes([made])[made].records:
            if known:
                lost = {topic: records for topic, records in lost.items() if _was_read(log, topic, made)}
            if lost:
                of = f" of {' and '.join(lost)}" if known else ""
                why = f"has no offsets{of}, though {made} has its output"
                yield RereadingGroup(group, lost, why, duplicates=duplicates)
        if known and role in stores:
            store, product = stores[role]
            changelog = f"state.{store}"
            is_empty = not any(size.records for size in log.sizes([changelog]).values())
            had_work = role is not Role.CRAWL or _has_passed_hits(log, committed[HITS])
            if is_empty and had_work and product in existing and holds_records(log, product):
                yield RereadingGroup(group, {}, f"has offsets, but its store {store} is empty", tuple(there))


def _has_passed_hits(log: Log, committed: Iterable[int | None]) -> bool:
    """Whether hits that are to be crawled were read, as far as the first ones tell: a log of archives has none."""
    spans = enumerate(zip(log.beginning(HITS), committed, strict=True))
    ends = ((at, first, min(done or 0, first + _LOOKED_AT)) for at, (first, done) in spans)
    return any(first_record(log, HITS, at, first, end, is_to_crawl) is not None for at, first, end in ends)


def _was_read(log: Log, topic: str, made: str) -> bool:
    """Whether the group must have read `topic`: it wrote to `made` after the first retained record of `topic`.

    Requests of replays do not count: they wait for live ones, and reading them again is harmless. Nor do retries,
    because a group reads them for the first time when an operator first retries.
    """
    if topic in (REPLAY_REQUESTS, RETRIES):
        return False
    starts = enumerate(log.beginning(topic))
    times = [m.timestamp_ms for p, start in starts for m in islice(log.read(topic, p, start), 1)]
    first_ms = min(times, default=None)
    return first_ms is not None and any(
        at < end for at, end in zip(log.offset_at(made, first_ms), log.end(made), strict=True)
    )


def remedy(group: RereadingGroup) -> str:
    """How the operator prevents the second reading."""
    if group.records and not group.duplicates:
        return "nothing has to be repaired"
    does = "sets its offsets after the records already read" if group.records else "lets it read the retained records"
    return f"stop farmwatch now and run `farmwatch doctor --repair`, which {does}; or restore a backup"


def find_emptied_topics(log: Log) -> Iterator[tuple[str, str]]:
    """The topics of the live run that must have had records and have none, not even an expired one; and the repair."""
    names = names_of_live(Control(log))
    existing = log.topics()
    filled = {topic for topic in existing if any(log.end(topic))}
    frontier = log.sizes([f"state.{FRONTIER_STORE}"]).values()
    before = ((HITS, any(size.records for size in frontier)), (PAGES, names.features in filled))
    for topic, had_records in (*before, (names.features, names.verdicts in filled)):
        if had_records and topic in existing.keys() - filled:
            yield topic, "restore a backup; without one rates stay right, but audits and replays lack these records"
    made_from = (
        (names.verdicts, names.judge_group, names.features),
        (SCORES, "score", SCORE_REQUESTS),
        (names.sites, names.tally_group, names.verdicts),
    )
    for topic, group, source in made_from:
        is_empty = {topic, source} <= existing.keys() and topic not in filled
        if is_empty and holds_records(log, source, log.committed(group, source)):
            mend = "`farmwatch replay --name rebuilt`, then `farmwatch cutover rebuilt`"
            yield topic, f"make it again from features: {mend}"


def repair_groups(log: Log) -> Iterator[str]:
    """Set the offsets of the groups that lost them; yields a line for each. Raises StreamError while one has members.

    A group whose store is empty gets the first retained offsets, from which it builds its store again.
    """
    names = names_of_live(Control(log))
    for lost in list(find_rereading_groups(log)):
        if not lost.records:
            for topic in lost.inputs:
                log.reset(lost.group, topic, log.beginning(topic))
            yield f"{lost.group}: it reads {' and '.join(lost.inputs)} from the beginning, to build its store"
        for topic in lost.records if lost.duplicates else ():
            offsets = _processed(log, names, lost.group, topic)
            log.reset(lost.group, topic, offsets)
            yield f"{lost.group}: {counted(between(offsets, log.end(topic)), 'offset')} of {topic} left to read"


def _processed(log: Log, names: RunNames, group: str, topic: str) -> list[int]:
    if topic == RETRIES:
        return log.end(RETRIES)
    # topic, records, and their field with the id of the input record
    outputs: dict[str, tuple[str, type[Record], str]] = {
        names.measure_group: (names.features, Features, "id"),
        names.judge_group: (names.verdicts, JudgedPage, "id"),
        "score": (SCORES, Score, "fetch_id"),
    }
    results, kind, field = outputs[group]
    spans = zip(log.committed(group, topic), log.beginning(topic), log.end(topic), strict=True)
    offsets = []
    for partition, (done, first, end) in enumerate(spans):
        if done is not None and done <= end:
            offsets.append(done)
            continue
        made = {getattr(record, field) for _, record in _records(kind, log.read(results, partition))}
        sources = _records(kind_of(topic) or Features, log.read(topic, partition))
        offsets.append(max((offset for offset, record in sources if record.id in made), default=first - 1) + 1)
    return offsets


def _records(kind: type[Record], messages: Iterable[Message]) -> Iterable[tuple[int, Record]]:
    for message in messages:
        if message.value is None or is_heartbeat(message):
            continue
        try:
            yield message.offset, read(kind, message)
        except BadRecord:
            continue
