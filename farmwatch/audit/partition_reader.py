"""One partition of a run's topics as the audit reads it: what can be read, what cannot, and what nobody has read yet.

A record that cannot be read is counted in the step that it goes into, and named. It is

- `dead` where a stage that reads the topic has dead-lettered it;
- `waiting` where such a stage has not come to it yet;
- `expired` where it is older than dead letters are kept, and some have left, so that its own may be gone;
- `superseded` (a site's row) where a newer row of its site can be read;
- broken otherwise: the stages passed it, and nothing says what became of it.

What was made of the record before is there all the same. So the record that it was made from counts as done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from farmwatch.audit.report import AuditReport, Broken, Lost, UnreadableRecord
from farmwatch.audit.scope import Audited, R, StoredRecord, slim
from replay.runs.offsets import is_record
from stream.log.contract import CleanupPolicy as Policy
from stream.log.contract import Log, Message
from stream.log.errors import BadRecord
from stream.log.offsets import next_offset
from stream.processing.dead_letters import DeadLetter
from stream.processing.heartbeat import is_heartbeat
from stream.processing.stage import BY_REPLAY
from stream.processing.topic_reader import dead_letters_of
from stream.schema.records import SiteState, read
from stream.schema.topics import DEAD_LETTERS, all_topics

NEVER_MS = 2**63 - 1
_LETTERS_KEPT_MS = next(topic.retention_ms or 0 for topic in all_topics(1, "") if topic.name == DEAD_LETTERS)
_COMPACTED = frozenset(topic.name for topic in all_topics(1, "") if topic.cleanup is Policy.COMPACT)


class PartitionReader:
    """Reads a partition's records, and counts in the report what it meets on the way."""

    def __init__(self, log: Log, partition: int, report: AuditReport, audited: Audited, now_ms: int) -> None:
        """Take the offsets of the stages, before any record is read: what they had passed by then left its traces."""
        self.partition = partition
        self._log = log
        self._report = report
        self._audited = audited
        self._committed = {
            (stage, topic): next_offset(log.committed(group, topic)[partition], log.end(topic)[partition])
            for stage, topics in audited.reads.items()
            for group in (audited.groups.get(stage, stage),)
            for topic in topics
        }
        letters = self._letters()
        of_records = [letter for letter in letters if not letter.expired]
        self._dead = {(letter.stage, letter.topic, letter.offset) for letter in of_records}
        self.given_up = {site_of(letter.key) for letter in of_records if letter.stage == "tally"}  # sites
        self._damaged: dict[str, Counter[str]] = {}  # topic -> site -> its records that cannot be read
        self._excused: set[tuple[str, str, str]] = set()  # what one of those stands for: topic, site, its name there
        self._since: dict[str, int] = {}
        self._begins: dict[str, int] = {}
        self._letters_since = now_ms - _LETTERS_KEPT_MS if self.beginning(DEAD_LETTERS) else 0
        for letter in letters:
            if letter.expired and letter.stage in audited.own_reads:
                self._lost(letter.stage, letter.topic, letter.offset, letter.expired)
        if audited.is_live:
            self._find_gaps()

    def records(self, topic: str, kind: type[R]) -> Iterator[StoredRecord[R]]:
        """The records of a topic that can be read, without what is large: the audit needs none of it in memory."""
        for message in self._messages(topic):
            try:
                record = read(kind, message)
            except BadRecord as error:
                self._note_unreadable(message, error)
                continue
            yield StoredRecord(slim(record), message.offset, message.timestamp_ms, BY_REPLAY in message.headers)

    def rows(self, topic: str) -> tuple[dict[str, SiteState], set[str]]:
        """Site -> its newest row, and sites whose newest row cannot be read: those are counted as broken here."""
        found: dict[str, SiteState] = {}
        bad: dict[bytes, list[tuple[Message, BadRecord]]] = {}
        for message in self._messages(topic, tombstones=True):
            if message.value is None:
                found.pop(site_of(message.key), None)
                self._supersede(bad.pop(message.key, ()))
                continue
            try:
                row = read(SiteState, message)
            except BadRecord as error:
                bad.setdefault(message.key, []).append((message, error))
                continue
            found[row.site] = row
            self._supersede(bad.pop(message.key, ()))
        for *older, newest in bad.values():
            self._supersede(older)
            self._note_unreadable(*newest)
        for site in (unreadable := {site_of(key) for key in bad}):
            found.pop(site, None)
        return found, unreadable

    def count_unread(self, stage: str, topic: str) -> None:
        """Count what a stage has still to read of a topic that the audit reads for nothing else."""
        start = self._committed[stage, topic]
        self._report.waiting[stage] += sum(map(is_record, self._log.read(topic, self.partition, start)))

    def unread(self, stage: str, topic: str, offset: int) -> bool:
        """True where the committed offset of the stage's group has not passed this record."""
        return offset >= self._committed[stage, topic]

    def dead(self, stage: str, topic: str, offset: int) -> bool:
        """Whether the stage has dead-lettered this record."""
        return (stage, topic, offset) in self._dead

    def window(self, stage: str, topic: str) -> tuple[int, int]:
        """What a stage reads for the run: from its start, up to its stop unless it was live since and went on."""
        run = self._audited.run
        if stage not in self._audited.groups:
            return 0, NEVER_MS
        first, last = run.start.get(topic), run.stop.get(topic)
        begin = 0 if first is None else first[self.partition]
        if last is None or self._audited.is_live:
            return begin, NEVER_MS
        return begin, max(last[self.partition], self._committed[stage, topic])

    def beginning(self, topic: str) -> int:
        """First offset that is kept."""
        if topic not in self._begins:
            self._begins[topic] = self._log.beginning(topic)[self.partition]
        return self._begins[topic]

    def kept_since(self, topic: str) -> int:
        """Records older than this (ms) may have left the topic by retention; 0 where nothing has left."""
        if topic not in self._since:
            first = self.beginning(topic)
            oldest = next(iter(self._log.read(topic, self.partition, first)), None) if first else None
            self._since[topic] = 0 if first == 0 else NEVER_MS if oldest is None else oldest.timestamp_ms
        return self._since[topic]

    def is_damaged(self, topic: str, site: str) -> bool:
        """Whether a record of the site on this topic cannot be read."""
        return topic in self._damaged and site in self._damaged[topic]

    def excuses(self, topic: str, site: str, needed: str) -> bool:
        """Whether the record `needed` on the topic may be one that cannot be read: each of those stands for one."""
        left = self._damaged.get(topic)
        if (topic, site, needed) in self._excused:
            return True
        if not left or left[site] <= 0:
            return False
        left[site] -= 1
        self._excused.add((topic, site, needed))
        return True

    def _letters(self) -> list[DeadLetter]:
        """Dead letters of the run; a record that another run could not process may be fit for this one."""

        def unreadable(message: Message, error: BadRecord) -> None:  # what it stood for is missing then
            place = (DEAD_LETTERS, self.partition, message.offset)
            self._report.unreadable.append(UnreadableRecord(DEAD_LETTERS, *place, str(error), "excuses nothing"))

        letters = dead_letters_of(self._log.read(DEAD_LETTERS, self.partition), unreadable)
        works_for = self._audited.works_for
        return [letter for _, letter in letters if letter.run in ("", works_for.get(letter.stage, letter.run))]

    def _messages(self, topic: str, *, tombstones: bool = False) -> Iterator[Message]:
        """Records of a topic, heartbeats left out; those that a stage has still to read are counted."""
        unread = []
        for stage, topics in self._audited.own_reads.items():
            if topic in topics:
                begin, end = self.window(stage, topic)
                unread.append((stage, max(begin, self._committed[stage, topic]), end))
        for message in self._log.read(topic, self.partition):
            if is_heartbeat(message) or (message.value is None and not tombstones):
                continue
            for stage, begin, end in unread:
                if begin <= message.offset < end:
                    self._report.waiting[stage] += 1
            yield message

    def _note_unreadable(self, message: Message, error: BadRecord) -> None:
        topic, offset, site = message.topic, message.offset, site_of(message.key)
        readers = [stage for stage, topics in self._audited.own_reads.items() if topic in topics]
        windows = [self.window(stage, topic) for stage in readers]
        if readers and not any(begin <= offset < end for begin, end in windows):
            return  # it is of no concern to this run
        self._damaged.setdefault(topic, Counter())[site] += 1
        if any(self.dead(stage, topic, offset) for stage in readers):
            state = "dead"
        elif any(self.unread(stage, topic, offset) for stage in readers):
            state = "waiting"
        elif readers and message.timestamp_ms < self._letters_since:
            state = "expired"
        else:
            state = "broken"
            how = f"cannot be read, and no dead letter of it is kept: {error}"
            place = f"{topic}/{self.partition} offset {offset}"
            self._report.broken.append(Broken(self._audited.step_of(topic), place, site, how))
        self._count_unreadable(message, error, state)

    def _supersede(self, rows: Sequence[tuple[Message, BadRecord]]) -> None:
        for message, error in rows:
            self._count_unreadable(message, error, "superseded")

    def _count_unreadable(self, message: Message, error: BadRecord, state: str) -> None:
        step = self._report.steps[self._audited.step_of(message.topic)]
        step.unreadable += 1
        if state == "superseded":
            step.done += 1
        else:
            setattr(step, state, getattr(step, state) + 1)
        step.records += 1
        found = UnreadableRecord(step.name, message.topic, self.partition, message.offset, str(error), state)
        self._report.unreadable.append(found)

    def _find_gaps(self) -> None:
        """Offsets that are gone and that no stage has passed: as soon as it does, it leaves a dead letter."""
        markers = 1 if self._log.forgets_offsets else 0  # on Kafka the last offset may be a transaction's, no record's
        for (stage, topic), committed in self._committed.items():
            told = [gap.last for gap in self._audited.run.gaps if (gap.topic, gap.partition) == (topic, self.partition)]
            first = max([committed, *told])
            gone = self.beginning(topic) - first
            if topic not in _COMPACTED and gone > markers:
                self._lost(stage, topic, first, gone)

    def _lost(self, stage: str, topic: str, offset: int, records: int) -> None:
        self._report.lost.append(Lost(stage, topic, self.partition, offset, records))


def site_of(key: bytes) -> str:
    """The site in a record's key: the whole of it, or what stands before the space in a score's."""
    return key.decode(errors="replace").partition(" ")[0]
