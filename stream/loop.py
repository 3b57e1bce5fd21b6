"""The loop that runs a stage on a log: poll, prepare, process, commit; or roll back and try again.

It owns everything that a stage must not know: batching, transactions, fencing, back-pressure, retries, dead letters,
drain and health. One thread runs it; slow work of the stage runs beside it while the membership is kept alive.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import msgspec
import structlog

from stream.batch import Batch, decoded, prepare
from stream.clock import Clock, wall_ms
from stream.dead_letters import Breaker, BreakerOpen
from stream.errors import Fenced, StreamError
from stream.log import Member, Message, StateReader
from stream.log_cpu import LogCpu
from stream.metrics import Metrics
from stream.stage import Stage
from stream.watching import Health, Watchdog

log = structlog.get_logger(__name__)


class LoopSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a loop batches, retries and gives up."""

    max_records: int = 1000  # of a batch; a stage may want fewer
    max_bytes: int = 16 * 1024 * 1024  # of a batch
    linger_s: float = 0.02  # how long a batch waits to fill once it has a record
    backoff_s: float = 0.1  # first wait after a transient error; doubles
    backoff_cap_s: float = 30.0  # longest wait
    drain_s: float = 20.0  # after SIGTERM, what is under way may take this long to be committed
    watchdog_s: float = 120.0  # input and no commit for this long is unhealthy
    breaker_window: int = 200  # records looked back on
    breaker_share: float = 0.5  # of them in the dead letters opens the breaker
    breaker_least: int = 20  # dead letters below which it stays closed
    lag_every_s: float = 5.0  # how often the lag is measured


class StageLoop:
    """Runs one stage as one member of its group until it is told to stop."""

    def __init__(
        self,
        stage: Stage,
        member: Member,
        *,
        metrics: Metrics,
        settings: LoopSettings | None = None,
        clock: Clock = wall_ms,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take over `stage` and `member`; `run` closes both."""
        self._stage = stage
        self._member = member
        self._metrics = metrics
        self._settings = settings or LoopSettings()
        self._clock = clock
        self._monotonic = monotonic
        self._watchdog = Watchdog(self._settings.watchdog_s, monotonic)
        s = self._settings
        self._breaker = Breaker(window=s.breaker_window, share=s.breaker_share, least=s.breaker_least)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix=f"{stage.name}-prepare")
        self._prepares = type(stage).prepare is not Stage.prepare
        self._owned: dict[int, int] = {}
        self._attempt = 1
        self._lag_at = -s.lag_every_s
        self._waiting = 0  # records behind, when last measured
        self._cpu = LogCpu(metrics)

    def health(self) -> Health:
        """For /healthz and /readyz; from any thread."""
        return self._watchdog.health()

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set, then drain: what is under way is committed if it ends within `drain_s`.

        Raises what is neither transient nor the fault of a single record.
        """
        try:
            while not stop.is_set():
                self.cycle(stop)
        finally:
            self._worker.shutdown(wait=False, cancel_futures=True)
            self._stage.close()
            self._close_member()

    def cycle(self, stop: threading.Event) -> bool:
        """One round; True if a batch was committed. Transient errors end in a rollback and a wait."""
        started = self._monotonic()
        try:
            committed = self._round(stop, started)
        except Exception as error:
            if not getattr(error, "retriable", False):
                raise
            self._roll_back(error)
            self._back_off(stop, error)
            return False
        self._attempt = 1
        return committed

    def _round(self, stop: threading.Event, started: float) -> bool:
        self._watchdog.ticked()
        messages, epochs = self._gather()
        self._follow_assignment()
        prepared = self._prepare(messages, stop)
        if prepared is None:  # told to stop, and the work outlasted the drain
            return False
        self._follow_assignment()
        batch = Batch(self._stage, self._state, self._clock(), self._attempt)
        batch.process(*self._still_owned(messages, epochs, prepared))
        self._breaker.check(batch.died)
        batch.tick(list(self._owned))
        commit = batch.commit()
        if commit is not None:
            with self._cpu.timed("commit"):
                self._member.commit(commit)
            self._after_commit(batch, messages, self._monotonic() - started)
        elif self._waiting == 0:
            self._watchdog.progressed(idle=True)
        self._measure_lag()
        return commit is not None

    def _gather(self) -> tuple[list[Message], list[int]]:
        """A batch, with the ownership epoch of each record: as much as is there, waiting a little for it to fill."""
        limit = min(self._settings.max_records, self._stage.max_records)
        room = self._settings.max_bytes
        messages: list[Message] = []
        epochs: list[int] = []
        until, wait_s = 0.0, self._stage.poll_s
        while len(messages) < limit and room > 0 and wait_s > 0:
            with self._cpu.timed("poll"):
                more = self._member.poll(wait_s, limit - len(messages), room)
            if not more:
                break
            if not messages:
                until = self._monotonic() + self._settings.linger_s
            owned = self._member.assignment()
            messages += more
            epochs += [owned.get(m.partition, -1) for m in more]
            room -= sum(len(m.value or b"") + len(m.key) for m in more)
            wait_s = until - self._monotonic()
        return messages, epochs

    def _prepare(self, messages: Sequence[Message], stop: threading.Event) -> dict[int, Any] | None:
        records = decoded(self._stage, messages)
        if not self._prepares or not records:
            return prepare(self._stage, records)
        work = self._worker.submit(prepare, self._stage, records)
        return self._await(work, stop)

    def _await(self, work: Future[dict[int, Any]], stop: threading.Event) -> dict[int, Any] | None:
        """Wait for slow work; meanwhile the member holds its partitions back and keeps its membership."""
        drain_until: float | None = None
        paused = False
        while not wait([work], timeout=1.0 if paused else 0.25).done:
            if not paused:
                self._member.pause()
                paused = True
            self._member.poll(0, 1, 1)
            self._watchdog.ticked()
            if stop.is_set():
                drain_until = drain_until or self._monotonic() + self._settings.drain_s
                if self._monotonic() > drain_until:
                    log.warning("drain_deadline_passed", stage=self._stage.name)
                    return None
        if paused:
            self._member.resume()
        return work.result()

    def _still_owned(
        self, messages: Sequence[Message], epochs: Sequence[int], prepared: Mapping[int, Any]
    ) -> tuple[list[Message], dict[int, Any]]:
        """Leave out what belongs to partitions that were lost since it was read: their new owner does it."""
        kept: list[Message] = []
        results: dict[int, Any] = {}
        for index, (message, epoch) in enumerate(zip(messages, epochs, strict=True)):
            if self._owned.get(message.partition) == epoch:
                if index in prepared:
                    results[len(kept)] = prepared[index]
                kept.append(message)
        return kept, results

    def _follow_assignment(self) -> None:
        owned = dict(self._member.assignment())
        if owned != self._owned:
            lost = [p for p, epoch in self._owned.items() if owned.get(p) != epoch]
            if lost:
                self._stage.lost(lost)
            self._owned = owned
            self._metrics.count("log_rebalances")
            log.info("assigned", stage=self._stage.name, partitions=len(owned), lost=len(lost))
        self._watchdog.set_ready(bool(owned) and self._stage.ready())

    def _after_commit(self, batch: Batch, messages: Sequence[Message], duration_s: float) -> None:
        self._stage.committed()
        self._breaker.committed(batch.died)
        self._watchdog.progressed()
        name = self._stage.name
        batch.meter.observe("stage_duration_seconds", duration_s, stage=name)
        batch.meter.apply(self._metrics)
        for topic, timestamp_ms in {m.topic: m.timestamp_ms for m in messages}.items():
            self._metrics.set("log_lag_seconds", max(0, self._clock() - timestamp_ms) / 1000, topic=topic)
        for started_ms in batch.heartbeats:
            self._metrics.set("heartbeat_timestamp_seconds", started_ms / 1000, stage=name)
            if self._stage.forward is None:
                self._metrics.observe("page_to_verdict_seconds", (self._clock() - started_ms) / 1000, run="live")
        if batch.last_error is not None:
            log.error("dead_letters", stage=name, count=sum(batch.died), last_error=_line(batch.last_error))

    def _roll_back(self, error: Exception) -> None:
        self._stage.lost(list(self._owned))
        self._watchdog.troubled(_line(error))
        self._watchdog.set_ready(False)
        self._attempt += 1
        write = log.info if isinstance(error, Fenced) else log.warning
        write("rolled_back", stage=self._stage.name, attempt=self._attempt, error=_line(error))
        try:
            self._member.resume()
            self._member.rewind()
        except StreamError as second:
            if not second.retriable:
                raise
            log.warning("rewind_failed", stage=self._stage.name, error=_line(second))

    def _back_off(self, stop: threading.Event, error: Exception) -> None:
        s = self._settings
        if isinstance(error, Fenced) and self._attempt == 2:
            return  # usually a rebalance, over at once; a second one may be a namesake that holds our place
        doubled = s.backoff_s * 2.0 ** min(self._attempt - 2, 16)
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
        self._member.resume()

    def _measure_lag(self) -> None:
        now = self._monotonic()
        if now - self._lag_at < self._settings.lag_every_s:
            return
        self._lag_at = now
        waiting: dict[str, int] = dict.fromkeys(self._stage.inputs, 0)
        for (topic, partition), records in self._member.lag().items():
            self._metrics.set("log_lag_records", records, topic=topic, partition=str(partition))
            waiting[topic] = waiting.get(topic, 0) + records
        for topic, records in waiting.items():
            if records == 0:
                self._metrics.set("log_lag_seconds", 0, topic=topic)
        self._waiting = sum(waiting.values())
        self._cpu.look_at_threads()

    def _state(self, partition: int) -> StateReader:
        return self._cpu.state(self._member.state(partition))

    def _close_member(self) -> None:
        try:
            self._member.close()
        except StreamError as error:
            log.warning("leaving_failed", stage=self._stage.name, error=_line(error))


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]
