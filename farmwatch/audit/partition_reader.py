"""Reads one partition of a run for the audit: readable, unreadable and unread records.

An unreadable record is counted in the step that reads it, and listed. Its state is

- `dead` if a stage that reads the topic dead-lettered it;
- `waiting` if such a stage has not read it yet;
- `expired` if it is older than the retention of dead letters and some have expired;
- `superseded` (a site row) if a newer row of its site is readable;
- broken otherwise: the stages passed it without a trace.

The results of an unreadable record still exist. So the record before it counts as done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from farmwatch.audit.report import AuditReport, BrokenRecord, ExpiredOffsets, UnreadableRecord
from farmwatch.audit.scope import AuditScope, R, StoredRecord, slim
from replay.rows.dead_letters import LetterState, Settlements
from replay.runs.topology import is_record
from stream.log.contract import CleanupPolicy as Policy
from stream.log.contract import Log, Message
from stream.log.errors import BadRecord
from stream.log.offsets import next_offset
from stream.processing.dead_letters import DeadLetter
from stream.processing.heartbeat import is_heartbeat
from stream.processing.stage import BY_REPLAY
from stream.processing.topic_reader import dead_letters_of
from stream.schema.records import SiteState, read
from stream.schema.topics import DEAD_LETTERS, PAGES, REPLAY_REQUESTS, SCORE_REQUESTS, SCORES, all_topics

NEVER_MS = 2**63 - 1
_COMPACTED = frozenset(topic.name for topic in all_topics(1, "") if topic.cleanup is Policy.COMPACT)


class PartitionReader:
    """Reads the records of a partition, and counts unread and unreadable ones in the report."""

    def __init__(
        self, log: Log, partition: int, report: AuditReport, scope: AuditScope, settlements: Settlements, now_ms: int
    ) -> None:
        """Take the offsets of the stages before any record: results of earlier records are then in the log."""
        self.partition = partition
        self._log = log
        self._report = report
        self._scope = scope
        self._settlements = settlements
        self._committed = {
            (stage, topic): next_offset(log.committed(group, topic)[partition], log.end(topic)[partition])
            for stage, topics in scope.reads.items()
            for group in (scope.groups.get(stage, stage),)
            for topic in topics
        }
        # asked after the offsets: what was written with them is then visible or in flight
        results = {PAGES, SCORE_REQUESTS, REPLAY_REQUESTS, SCORES, *scope.names} & log.topics().keys()
        self._in_flight = {topic for topic in results if log.in_flight(topic)[partition]}
        letters = self._letters()
        of_records = [letter for letter in letters if not letter.expired]
        self._dead = {(letter.stage, letter.topic, letter.offset) for letter in of_records}
        self.given_up = {site_of(letter.key) for letter in of_records if letter.stage == "tally"}  # sites
        self._damaged: dict[str, Counter[str]] = {}  # topic -> site -> unreadable records
        self._unreadable_found: set[tuple[str, str, str]] = set()  # (topic, site, key) that one of them accounts for
        self._since: dict[str, int] = {}
        self._begins: dict[str, int] = {}
        self._letters_since = 0  # time of the oldest letter that retention has left; now without one
        if self.beginning(DEAD_LETTERS):
            left = log.read(DEAD_LETTERS, partition)
            self._letters_since = next((message.timestamp_ms for message in left), now_ms)
        for letter in letters:
            if letter.expired and letter.stage in scope.own_reads:
                self._lost(letter.stage, letter.topic, letter.offset, letter.expired)
        if scope.is_live:
            self._find_gaps()

    def records(self, topic: str, kind: type[R]) -> Iterator[StoredRecord[R]]:
        """The readable records of a topic, without their large fields."""
        for message in self._messages(topic):
            try:
                record = read(kind, message)
            except BadRecord as error:
                self._note_unreadable(message, error)
                continue
            yield StoredRecord(slim(record), message.offset, message.timestamp_ms, BY_REPLAY in message.headers)

    def rows(self, topic: str) -> tuple[dict[str, SiteState], set[str]]:
        """Key (site, or site and term) -> newest row, and the keys whose newest is unreadable, which are counted."""
        rows: dict[str, SiteState] = {}
        bad: dict[str, list[tuple[Message, BadRecord]]] = {}
        for message in self._messages(topic, tombstones=True):
            key = message.key.decode(errors="replace")
            try:
                if message.value is None:
                    rows.pop(key, None)
                else:
                    rows[key] = read(SiteState, message)
            except BadRecord as error:
                bad.setdefault(key, []).append((message, error))
            else:
                self._supersede(bad.pop(key, ()))
        for key, (*older, newest) in bad.items():
            self._supersede(older)
            self._note_unreadable(*newest)
            rows.pop(key, None)
        return rows, set(bad)

    def count_unread(self, stage: str, topic: str, sites: Collection[str]) -> None:
        """Count the unread records of these sites for a stage on a topic that the audit does not read otherwise."""
        unread = self._log.read(topic, self.partition, self._committed[stage, topic])
        self._report.waiting[stage] += sum(is_record(m) and site_of(m.key) in sites for m in unread)

    def is_unread(self, stage: str, topic: str, offset: int) -> bool:
        """Whether the stage has not committed this offset."""
        return offset >= self._committed[stage, topic]

    def is_in_flight(self, topic: str) -> bool:
        """Whether the partition of this topic of results has records that could not be read yet."""
        return topic in self._in_flight

    def is_dead(self, stage: str, topic: str, offset: int) -> bool:
        """Whether the stage dead-lettered this record."""
        return (stage, topic, offset) in self._dead

    def window(self, stage: str, topic: str) -> tuple[int, int]:
        """The offsets that a stage reads for the run: from start to stop, or further if the run was live since."""
        run = self._scope.run
        if stage not in self._scope.groups:
            return 0, NEVER_MS
        first, last = run.start.get(topic), run.stop.get(topic)
        begin = 0 if first is None else first[self.partition]
        if last is None or self._scope.is_live:
            return begin, NEVER_MS
        return begin, max(last[self.partition], self._committed[stage, topic])

    def beginning(self, topic: str) -> int:
        """The first stored offset."""
        if topic not in self._begins:
            self._begins[topic] = self._log.beginning(topic)[self.partition]
        return self._begins[topic]

    def kept_since(self, topic: str) -> int:
        """Records older than this (ms) may have expired; 0 if none has."""
        if topic not in self._since:
            first = self.beginning(topic)
            oldest = next(iter(self._log.read(topic, self.partition, first)), None) if first else None
            self._since[topic] = 0 if first == 0 else NEVER_MS if oldest is None else oldest.timestamp_ms
        return self._since[topic]

    def is_damaged(self, topic: str, site: str) -> bool:
        """Whether a record of the site on this topic is unreadable."""
        return topic in self._damaged and site in self._damaged[topic]

    def may_be_unreadable(self, topic: str, site: str, needed: str) -> bool:
        """Whether the record `needed` may be one of the unreadable ones; each of those matches one record."""
        left = self._damaged.get(topic)
        if (topic, site, needed) in self._unreadable_found:
            return True
        if not left or left[site] <= 0:
            return False
        left[site] -= 1
        self._unreadable_found.add((topic, site, needed))
        return True

    def _letters(self) -> list[DeadLetter]:
        """Dead letters of the run, not of others, that no retry has replaced; counts the retries that wait."""

        def unreadable(message: Message, error: BadRecord) -> None:  # its record counts as missing
            place = (DEAD_LETTERS, self.partition, message.offset)
            self._report.unreadable.append(UnreadableRecord(DEAD_LETTERS, *place, str(error), "excuses nothing"))

        letters = dead_letters_of(self._log.read(DEAD_LETTERS, self.partition), unreadable)
        works_for, standing = self._scope.works_for, []
        for message, letter in letters:
            if letter.run not in ("", works_for.get(letter.stage, letter.run)):
                continue
            state = self._settlements.state_of(message, letter)
            if state is LetterState.WAITING and letter.stage in self._scope.own_reads:
                self._report.waiting[letter.stage] += 1
            if state is not LetterState.RETRIED:
                standing.append(letter)
        return standing

    def _messages(self, topic: str, *, tombstones: bool = False) -> Iterator[Message]:
        """Records of a topic without heartbeats; counts those that a stage has not read."""
        unread = []
        for stage, topics in self._scope.own_reads.items():
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
        readers = [stage for stage, topics in self._scope.own_reads.items() if topic in topics]
        windows = [self.window(stage, topic) for stage in readers]
        if readers and not any(begin <= offset < end for begin, end in windows):
            return  # outside the window of this run
        self._damaged.setdefault(topic, Counter())[site] += 1
        if any(self.is_dead(stage, topic, offset) for stage in readers):
            state = "dead"
        elif any(self.is_unread(stage, topic, offset) for stage in readers):
            state = "waiting"
        elif readers and message.timestamp_ms < self._letters_since:
            state = "expired"
        else:
            state = "broken"
            how = f"unreadable, without a dead letter: {error}"
            place = f"{topic}/{self.partition} offset {offset}"
            self._report.broken.append(BrokenRecord(self._scope.step_of(topic), place, site, how))
        self._count_unreadable(message, error, state)

    def _supersede(self, rows: Sequence[tuple[Message, BadRecord]]) -> None:
        for message, error in rows:
            self._count_unreadable(message, error, "superseded")

    def _count_unreadable(self, message: Message, error: BadRecord, state: str) -> None:
        step = self._report.steps[self._scope.step_of(message.topic)]
        step.unreadable += 1
        if state == "superseded":
            step.done += 1
        else:
            setattr(step, state, getattr(step, state) + 1)
        step.records += 1
        record = UnreadableRecord(step.name, message.topic, self.partition, message.offset, str(error), state)
        self._report.unreadable.append(record)

    def _find_gaps(self) -> None:
        """Report expired offsets that no stage has passed yet; once passed, they have a dead letter."""
        markers = 1 if self._log.forgets_offsets else 0  # on Kafka the last offset may be a transaction marker
        for (stage, topic), committed in self._committed.items():
            noted_ends = [
                gap.last for gap in self._scope.run.gaps if (gap.topic, gap.partition) == (topic, self.partition)
            ]
            first = max([committed, *noted_ends])
            gone = self.beginning(topic) - first
            if topic not in _COMPACTED and gone > markers:
                self._lost(stage, topic, first, gone)

    def _lost(self, stage: str, topic: str, offset: int, records: int) -> None:
        self._report.lost.append(ExpiredOffsets(stage, topic, self.partition, offset, records))


def site_of(key: bytes) -> str:
    """The site in the key of a record: the whole key, or the part before the space in a score's key."""
    return key.decode(errors="replace").partition(" ")[0]
