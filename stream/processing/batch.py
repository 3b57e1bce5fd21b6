"""Processes one batch of a stage: records in, one `Commit` out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from stream.log.contract import NO_HEADERS, NONE_REFUSED, At, Commit, Headers, Message, Output, StateReader, check_size
from stream.log.errors import BadRecord, RecordsExpired, RecordTooLarge
from stream.processing import heartbeat
from stream.processing.dead_letters import dead_letter
from stream.processing.metrics import DEAD_LETTERS, LOG_EXPIRED_UNREAD_RECORDS, LOG_RECORDS, Meter
from stream.processing.retries import input_of
from stream.processing.stage import PASSED_ON, Context, Stage
from stream.processing.state import KeyedState
from stream.schema.records import Record, read


class Batch:
    """Runs a stage over messages and gathers outputs, state changes, offsets and counts."""

    def __init__(
        self,
        stage: Stage,
        committed: Callable[[int], StateReader],
        now_ms: int,
        attempt: int,
        refused: Mapping[str, RecordTooLarge] = NONE_REFUSED,
    ) -> None:
        """`refused`: topic -> a record that the log did not take; others of that size are not tried."""
        self._stage = stage
        self._committed = committed
        self._now_ms = now_ms
        self._attempt = attempt
        self._refused = refused
        self._states: dict[int, KeyedState] = {}
        self._outputs: list[Output] = []
        self._offsets: dict[At, int] = {}
        self.meter = Meter()
        self.outcomes: list[bool] = []  # for the breaker: one per record, True = failed
        self.dead_letters = 0
        self.heartbeats: list[int] = []  # start times, ms
        self.expired: list[Message] = []  # spans that expired unread
        self.last_error: Exception | None = None

    def process(self, messages: Sequence[Message], prepared: Mapping[int, Any]) -> None:
        """Process in order; `prepared`: index -> result or exception. Raises the first error that ends the batch."""
        self._offsets = {At(*place): m.offset + 1 for place, m in {(m.topic, m.partition): m for m in messages}.items()}
        read: list[str] = []  # topics
        for index, message in enumerate(messages):
            taken = input_of(message, self._stage)
            if taken is None:
                continue
            if message.expired:
                self.expired.append(message)
                self.meter.count(LOG_EXPIRED_UNREAD_RECORDS, message.expired, topic=message.topic)
                self._write_dead_letter(message, RecordsExpired(message.damage))
                continue
            read.append(message.topic)
            if heartbeat.is_heartbeat(message):
                started, forward = heartbeat.started_at(message), self._stage.forward
                if started is not None and self._stage.heartbeat_input in (None, message.topic):
                    self.heartbeats.append(started)
                    if forward is not None:
                        self._outputs.append(heartbeat.travelling(forward, message.partition, message.headers))
            elif message.value is not None:
                self._process_one(taken, prepared[index], is_retry=taken is not message)
        self._count(read, "in")

    def tick(self, partitions: Sequence[int]) -> None:
        self._stage.tick({partition: self._context(partition) for partition in partitions})

    def commit(self) -> Commit | None:
        state = {p: changes for p, staged in self._states.items() if (changes := staged.changes())}
        if not (self._outputs or self._offsets or state):
            return None
        self._count([output.topic for output in self._outputs], "out")
        return Commit(self._outputs, self._offsets, state)

    def _count(self, topics: Iterable[str], direction: str) -> None:
        for topic, records in Counter(topics).items():
            self.meter.count(LOG_RECORDS, records, topic=topic, direction=direction)

    def _process_one(self, message: Message, prepared: Any, *, is_retry: bool) -> None:
        headers = {name: message.headers[name] for name in PASSED_ON if name in message.headers}
        context = self._context(message.partition, headers)
        before = context.mark()
        try:
            if isinstance(prepared, Exception):
                raise prepared
            record, result = prepared
            self._stage.process(record, result, context)
        except Exception as error:  # the class decides whether it concerns one record
            context.undo(before)
            if not concerns_one_record(error):
                raise
            # permanent damage is not the stage's fault, and a retry that fails must not hold back other records
            if not is_retry and (not message.damage or message.may_return):
                self.outcomes.append(True)
            self.dead_letters += 1
            self.last_error = error
            self._stage.on_dead_letter(message.partition)
            self._write_dead_letter(message, error)
            return
        self.outcomes.append(False)

    def _write_dead_letter(self, message: Message, error: Exception) -> None:
        letter = dead_letter(message, self._stage.name, error, self._attempt, self._stage.run)
        try:
            check_size(letter, refused=self._refused)
        except RecordTooLarge:
            letter = replace(letter, value=None)  # the record is still at its origin
        self._outputs.append(letter)
        self.meter.count(DEAD_LETTERS, stage=self._stage.name, reason=type(error).__name__)

    def _context(self, partition: int, headers: Headers = NO_HEADERS) -> Context:
        if self._stage.store is not None and partition not in self._states:
            changelog = f"state.{self._stage.store}"
            self._states[partition] = KeyedState(self._committed(partition), changelog, self._refused)
        state = self._states.get(partition)
        return Context(partition, state, self.meter, self._now_ms, headers, self._outputs, self._refused)


def concerns_one_record(error: Exception) -> bool:
    """Whether the error sends only its record to the dead letters; `retriable` and `fatal` errors end the batch."""
    return not (getattr(error, "retriable", False) or getattr(error, "fatal", False))


def decoded(stage: Stage, messages: Sequence[Message]) -> dict[int, Record | Exception]:
    """Records by index, or their errors; without heartbeats, tombstones, expired spans, and retries of other stages."""
    records: dict[int, Record | Exception] = {}
    for index, read_message in enumerate(messages):
        message = input_of(read_message, stage)
        if message is None or message.value is None or message.expired or heartbeat.is_heartbeat(message):
            continue
        try:
            records[index] = read(stage.inputs[message.topic], message)
        except BadRecord as error:
            records[index] = error
    return records


def prepare(stage: Stage, records: Mapping[int, Record | Exception]) -> dict[int, Any]:
    """Run the stage's slow work: index -> (record, result) or exception. After a failure, retry record by record."""
    good = {index: record for index, record in records.items() if isinstance(record, Record)}
    prepared: dict[int, Any] = {i: r for i, r in records.items() if isinstance(r, Exception)}
    try:
        results = list(stage.prepare(list(good.values())))
    except Exception as error:
        if not concerns_one_record(error):
            raise
        if len(good) > 1:
            return prepared | {i: one for i, record in good.items() for one in prepare(stage, {i: record}).values()}
        results = [error]
    for (index, record), result in zip(good.items(), results, strict=True):
        prepared[index] = result if isinstance(result, Exception) else (record, result)
    return prepared


@dataclass(frozen=True, slots=True)
class InFlightBatch:
    """The messages of one batch in reading order, and the stage's slow work on them."""

    messages: Sequence[Message]
    epochs: Sequence[int]  # ownership epoch of each message
    work: Future[dict[int, Any]] | None  # None: there is nothing to do
    started_s: float

    def prepared(self, timeout_s: float) -> bool:
        return self.work is None or bool(wait([self.work], timeout=timeout_s).done)

    def still_owned(self, owned: Mapping[int, int]) -> tuple[list[Message], dict[int, Any]]:
        """The messages of partitions that are still owned, with results. Raises the error of the slow work."""
        prepared = self.work.result() if self.work is not None else {}
        kept: list[Message] = []
        results: dict[int, Any] = {}
        for index, (message, epoch) in enumerate(zip(self.messages, self.epochs, strict=True)):
            if owned.get(message.partition) == epoch:
                if index in prepared:
                    results[len(kept)] = prepared[index]
                kept.append(message)
        return kept, results
