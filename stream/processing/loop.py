"""The loop that runs a stage on a log: poll, prepare, process, commit; or roll back and retry.

It runs in one thread; slow work of the stage runs in others while the loop keeps the membership alive. A stage may have
several batches in flight (`Stage.ahead`). They are processed and committed in reading order; a rollback drops all.
"""

from __future__ import annotations

import gc
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Annotated, Any, ClassVar

import msgspec
import structlog

from stream.log.contract import Clock, Member, Message, StateReader, wall_ms
from stream.log.errors import Fenced, RecordTooLarge, StreamError
from stream.processing.batch import Batch, InFlightBatch, decoded, prepare
from stream.processing.dead_letters import Breaker, BreakerOpen
from stream.processing.health import Health, Watchdog
from stream.processing.metrics import (
    HEARTBEAT_DURATION_SECONDS,
    HEARTBEAT_TIMESTAMP_SECONDS,
    LOG_LAG_RECORDS,
    LOG_LAG_SECONDS,
    LOG_REBALANCES,
    STAGE_DURATION_SECONDS,
    Metrics,
)
from stream.processing.stage import Stage
from stream.processing.state import StateMemory
from stream.text.ranges import Seconds

_log = structlog.get_logger()
# Waits during slow work: for its end before the partitions are paused, and after that; and for its end and for records
# while the loop reads ahead, which is how long a finished batch may wait.
_LOOK_S, _HELD_LOOK_S, _AHEAD_LOOK_S = 0.25, 1.0, 0.02
MAX_RECORDS, MAX_BYTES = 1000, 16 * 1024 * 1024  # of a batch
_REFUSED_S = 3600.0  # how long a refused size counts: the value's, while the broker's limit is on compressed bytes
_OBJECTS = 10_000  # new objects between two garbage collections: more than a batch holds; Python's own number is 700


class LoopSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a loop ends, and when it gives up."""

    drain_s: Seconds = 20.0
    """Seconds that batches in flight may take to be committed after SIGTERM; 10 s later the process is killed."""
    breaker_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5
    """Share of the last 200 records in the dead letters that stops the stage."""
    breaker_window: ClassVar[int] = 200  # records that the breaker looks back on
    breaker_least: ClassVar[int] = 20  # dead letters below which the breaker stays closed
    linger_s: ClassVar[float] = 0.02  # that a batch waits to fill once it has a record
    backoff_s: ClassVar[float] = 0.1  # of the first wait after a transient error; doubles
    backoff_cap_s: ClassVar[float] = 30.0
    watchdog_s: ClassVar[float] = 120.0  # with input but without progress until unhealthy
    lag_every_s: ClassVar[float] = 5.0

    @property
    def end_s(self) -> float:
        """Seconds after SIGTERM after which a process that still drains is killed."""
        return self.drain_s + 10.0


class StageLoop:
    """Runs one stage as one member of its group until `stop` is set."""

    def __init__(
        self,
        stage: Stage,
        member: Member,
        *,
        metrics: Metrics,
        settings: LoopSettings | None = None,
        max_records: int = MAX_RECORDS,
        max_bytes: int = MAX_BYTES,
        clock: Clock = wall_ms,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`max_records`, `max_bytes`: of a batch; a stage may want fewer records."""
        self._stage = stage
        self._member = member
        self._metrics = metrics
        self._settings = settings or LoopSettings()
        self._max_records, self._max_bytes = max_records, max_bytes
        self._clock = clock
        self._monotonic = monotonic
        self._watchdog = Watchdog(self._settings.watchdog_s, monotonic)
        s = self._settings
        self._breaker = Breaker(window=s.breaker_window, share=s.breaker_share, least=s.breaker_least)
        self._worker = ThreadPoolExecutor(stage.ahead, thread_name_prefix=f"{stage.name}-prepare")
        self._prepares = type(stage).prepare is not Stage.prepare
        self._ahead: deque[InFlightBatch] = deque()  # read after the current batch, in order
        self._drain_until: float | None = None
        self._owned: dict[int, int] = {}
        self._attempt = 1
        self._refused: dict[str, RecordTooLarge] = {}  # topic -> the smallest record that the log did not take lately
        self._refused_until_s = 0.0
        self._troubles = 0  # errors but for fences, each soon after the one before
        self._calm_at_s = 0.0  # a later error is not soon
        self._lag_at = -s.lag_every_s
        self._waiting = 0  # the last measured lag, in records
        self._advanced = 0  # last answer of `Stage.advanced`
        self._memory = StateMemory()

    def health(self) -> Health:
        return self._watchdog.health()

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set, then drain for `drain_s`. Raises permanent errors that concern no single record."""
        if 0 < gc.get_threshold()[0] < _OBJECTS:  # the collector took a tenth of CRAWL's CPU
            gc.set_threshold(_OBJECTS)
        try:
            while not stop.is_set() or self._ahead:
                self.cycle(stop)
        finally:
            self._worker.shutdown(wait=False, cancel_futures=True)
            self._stage.close()
            try:
                self._member.close()
            except StreamError as error:
                _log.warning("leaving_failed", stage=self._stage.name, error=_line(error))

    def cycle(self, stop: threading.Event) -> bool:
        """Run one round; True if a batch was committed. After a transient error, roll back and wait.

        A record that the log did not take for its size is not tried again: its input goes to the dead letters.
        """
        try:
            committed = self._round(stop)
        except Exception as error:
            if not (getattr(error, "retriable", False) or self._learns(error)):
                raise
            self._roll_back(error)
            self._back_off(stop, error)
            return False
        self._attempt = 1
        return committed

    def _round(self, stop: threading.Event) -> bool:
        self._watchdog.ticked()
        flight = self._ahead.popleft() if self._ahead else self._read(self._stage.poll_s)
        self._follow_assignment()
        if not self._await(flight, stop):  # stopped before the work ended
            self._drop_ahead()
            return False
        self._follow_assignment()
        if self._monotonic() > self._refused_until_s:
            self._refused.clear()

        def state_of(partition: int) -> StateReader:
            return self._memory.over(partition, self._member.state(partition))

        batch = Batch(self._stage, state_of, self._clock(), self._attempt, self._refused)
        batch.process(*flight.still_owned(self._owned))
        self._breaker.check(batch.outcomes, batch.last_error)
        batch.tick(list(self._owned))
        commit = batch.commit()
        if commit is not None:
            self._member.commit(commit)
            self._memory.committed(commit.state)
            self._after_commit(batch, flight.messages, self._monotonic() - flight.started_s)
        elif self._waiting == 0:
            self._watchdog.progressed(idle=True)
        self._measure_lag()
        return commit is not None

    def _read(self, wait_s: float) -> InFlightBatch:
        """Gather a batch and start its slow work, if any, in another thread."""
        started_s = self._monotonic()
        messages, epochs = self._gather(wait_s)
        records = decoded(self._stage, messages)
        work: Future[dict[int, Any]] | None = None
        if records and self._prepares:
            work = self._worker.submit(prepare, self._stage, records)
        elif records:
            work = Future()
            work.set_result(prepare(self._stage, records))
        return InFlightBatch(messages, epochs, work, started_s)

    def _gather(self, wait_s: float) -> tuple[list[Message], list[int]]:
        """Read a batch with each record's ownership epoch; only one poll if the stage has background topics."""
        limit, room = min(self._max_records, self._stage.max_records), self._max_bytes
        messages: list[Message] = []
        epochs: list[int] = []
        until = 0.0
        while len(messages) < limit and room > 0 and (wait_s > 0 or not messages):
            more = self._member.poll(wait_s, limit - len(messages), room)
            if not more:
                break
            if not messages:
                until = self._monotonic() + self._settings.linger_s
            owned = self._member.assignment()
            messages += more
            epochs += [owned.get(m.partition, -1) for m in more]
            if self._stage.background:
                break
            room -= sum(len(m.value or b"") + len(m.key) for m in more)
            wait_s = until - self._monotonic()
        return messages, epochs

    def _await(self, flight: InFlightBatch, stop: threading.Event) -> bool:
        """Wait for slow work; meanwhile read ahead, then pause. False if the drain after `stop` is over."""
        held = False
        while True:
            reads_ahead = not stop.is_set() and len(self._ahead) < self._stage.ahead - 1
            if flight.prepared(_AHEAD_LOOK_S if reads_ahead else _HELD_LOOK_S if held else _LOOK_S):
                break
            if reads_ahead:
                ahead = self._read(_AHEAD_LOOK_S)
                if ahead.messages:
                    self._ahead.append(ahead)
            else:
                if not held:
                    self._member.pause()
                    held = True
                self._member.poll(0, 1, 1)
            self._watchdog.ticked()
            self._look_at_work()
            if not stop.is_set():
                continue
            if self._drain_until is None:
                self._drain_until = self._monotonic() + self._settings.drain_s
            if self._monotonic() > self._drain_until:
                _log.warning("drain_deadline_passed", stage=self._stage.name)
                return False
        if held:
            self._member.resume()
        return True

    def _look_at_work(self) -> None:
        advanced = self._stage.advanced()
        if advanced != self._advanced or self._stage.starting():
            self._advanced = advanced
            self._watchdog.progressed(idle=True)
        self._watchdog.ready = bool(self._owned) and self._stage.ready()

    def _drop_ahead(self) -> None:
        for flight in self._ahead:
            if flight.work is not None:
                flight.work.cancel()  # if already running, its result is ignored
        self._ahead.clear()

    def _follow_assignment(self) -> None:
        owned = dict(self._member.assignment())
        if owned != self._owned:
            lost = [p for p, epoch in self._owned.items() if owned.get(p) != epoch]
            if lost:
                self._stage.lost(lost)
                for gauge in (LOG_LAG_RECORDS, LOG_LAG_SECONDS):  # the new owners show the lag of these
                    self._metrics.clear(gauge)
                self._lag_at = -self._settings.lag_every_s
            self._memory.forget(lost)
            self._owned = owned
            self._metrics.count(LOG_REBALANCES)
            _log.info("assigned", stage=self._stage.name, partitions=len(owned), lost=len(lost))
        self._watchdog.ready = bool(owned) and self._stage.ready()

    def _after_commit(self, batch: Batch, messages: Sequence[Message], duration_s: float) -> None:
        self._stage.committed()
        self._breaker.committed(batch.outcomes)
        self._watchdog.progressed()
        name = self._stage.name
        batch.meter.observe(STAGE_DURATION_SECONDS, duration_s, stage=name)
        batch.meter.apply(self._metrics)
        for topic, timestamp_ms in {m.topic: m.timestamp_ms for m in messages}.items():
            self._metrics.set(LOG_LAG_SECONDS, max(0, self._clock() - timestamp_ms) / 1000, topic=topic)
        for started_ms in batch.heartbeats:
            self._metrics.set(HEARTBEAT_TIMESTAMP_SECONDS, started_ms / 1000, stage=name)
            if self._stage.forward is None:
                self._metrics.observe(HEARTBEAT_DURATION_SECONDS, (self._clock() - started_ms) / 1000)
        for lost in batch.expired:
            place = {"topic": lost.topic, "partition": lost.partition}
            place |= {"from": lost.offset + 1 - lost.expired, "to": lost.offset}
            _log.error("records_expired_unread", stage=name, **place, said=lost.damage)
        if batch.last_error is not None:
            letters = {"run": self._stage.run or None, "count": batch.dead_letters}
            _log.error("dead_letters", stage=name, **letters, last_error=_line(batch.last_error))

    def _learns(self, error: Exception) -> bool:
        """Whether the log refused a record that is smaller than those it had refused before."""
        if not isinstance(error, RecordTooLarge):
            return False
        known = self._refused.get(error.topic)
        if known is not None and error.size_bytes >= known.size_bytes:
            return False
        self._refused[error.topic] = error
        self._refused_until_s = self._monotonic() + _REFUSED_S
        return True

    def _roll_back(self, error: Exception) -> None:
        self._drop_ahead()
        self._memory.forget_all()
        self._stage.lost(list(self._owned))
        self._watchdog.troubled(_line(error))
        self._attempt += 1
        usual = _log.debug if self._attempt == 2 else _log.info  # a first fence is a rebalance, which `assigned` tells
        write = usual if isinstance(error, Fenced) else _log.warning
        write("rolled_back", stage=self._stage.name, attempt=self._attempt, error=_line(error))
        try:
            self._member.resume()
            self._member.rewind()
        except StreamError as second:
            if not second.retriable:
                raise
            _log.warning("rewind_failed", stage=self._stage.name, error=_line(second))

    def _back_off(self, stop: threading.Event, error: Exception) -> None:
        s = self._settings
        if isinstance(error, Fenced) and self._attempt == 2:
            return  # usually a short rebalance; a second one may be a process with the same name
        if not isinstance(error, Fenced):  # commits in between do not shorten the wait
            self._troubles = 1 if self._monotonic() > self._calm_at_s else self._troubles + 1
        doubled = s.backoff_s * 2.0 ** min(max(self._attempt - 2, self._troubles - 1, 0), 16)
        wait_s = s.backoff_cap_s if isinstance(error, BreakerOpen) else min(s.backoff_cap_s, doubled)
        until = self._monotonic() + wait_s * random.uniform(0.75, 1.0)  # noqa: S311  # spreads retries, hides nothing
        self._member.pause()
        while not stop.is_set() and (left_s := until - self._monotonic()) > 0:
            stop.wait(min(1.0, left_s))
            self._watchdog.ticked()
            try:
                self._member.poll(0, 1, 1)
            except StreamError as still:
                if not still.retriable:
                    raise
        self._calm_at_s = self._monotonic() + s.backoff_cap_s
        self._member.resume()

    def _measure_lag(self) -> None:
        now = self._monotonic()
        if now - self._lag_at < self._settings.lag_every_s:
            return
        self._lag_at = now
        waiting: dict[str, int] = dict.fromkeys(self._stage.inputs, 0)
        for (topic, partition), records in self._member.lag().items():
            self._metrics.set(LOG_LAG_RECORDS, records, topic=topic, partition=str(partition))
            waiting[topic] = waiting.get(topic, 0) + records
        for topic, records in waiting.items():
            if records == 0:
                self._metrics.set(LOG_LAG_SECONDS, 0, topic=topic)
        self._waiting = sum(waiting.values())


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]
