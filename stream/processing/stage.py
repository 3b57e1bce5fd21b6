"""The stage interface: turns records into outputs and state changes, independent of the log.

The loop (stream.processing.loop) owns polling, decoding, transactions, retries and dead letters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from stream.log.contract import NO_HEADERS, NONE_REFUSED, Headers, Output, check_size
from stream.log.errors import RecordTooLarge
from stream.processing.metrics import (
    LOG_EXPIRED_UNREAD_RECORDS,
    LOG_RECORDS,
    STAGE_DURATION_SECONDS,
    Meter,
    MeterMark,
    Metric,
)
from stream.processing.state import KeyedState
from stream.schema.records import Record, encode

BY_REPLAY = "replay"  # header of a replay's verdict: the text may have no score request
PASSED_ON = ("traceparent", "run", "feature_epoch", "ruleset")  # headers copied from input to output
Series = tuple[Metric, Mapping[str, str]]  # metric, labels
ContextMark = tuple[int, MeterMark, int]  # of state, meter and outputs


@dataclass(eq=False, slots=True)
class Context:
    """State, outputs and counters of one partition for `process` and `tick`, staged until the commit."""

    partition: int
    state: KeyedState | Any  # None for a stage without a store
    meter: Meter
    now_ms: int
    headers: Headers = field(default_factory=lambda: NO_HEADERS)  # that the current record passes on; none in a tick
    outputs: list[Output] = field(default_factory=list)
    refused: Mapping[str, RecordTooLarge] = field(default_factory=lambda: NONE_REFUSED)  # by topic, see `check_size`

    def mark(self) -> ContextMark:
        """The changes up to now, for `undo`."""
        return self.state.mark() if self.state is not None else 0, self.meter.mark(), len(self.outputs)

    def undo(self, mark: ContextMark) -> None:
        """Undo the changes since the mark."""
        state, meter, outputs = mark
        if self.state is not None:
            self.state.undo(state)
        self.meter.undo(meter)
        del self.outputs[outputs:]

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo the changes of the `with` block if it raises."""
        mark = self.mark()
        try:
            yield
        except BaseException:
            self.undo(mark)
            raise

    def emit(self, topic: str, record: Record, *, key: str | None = None, headers: Headers = NO_HEADERS) -> None:
        """Append a record in the current partition; `key` defaults to its site. Raises RecordTooLarge."""
        name = (record.site if key is None else key).encode()
        output = Output(topic, self.partition, name, encode(record), {**self.headers, **headers})
        check_size(output, type(record).__name__, self.refused)
        self.outputs.append(output)

    def tombstone(self, topic: str, key: str) -> None:
        self.outputs.append(Output(topic, self.partition, key.encode(), None))


class Stage:
    """Base of the stages. Subclasses declare their inputs, and override `process` and other methods as needed.

    Errors of `process` and `tick`: with `retriable = True` on the class, the batch is rolled back and retried; with
    `fatal = True` the process ends; any other error sends the record to the dead letters.
    """

    name: ClassVar[str]
    run: str = ""  # the stage's run; "" = none, the records name theirs
    inputs: Mapping[str, type[Record]]  # topic -> its records
    background: Collection[str] = ()  # inputs read only while no other input waits
    forward: str | None = None  # the topic to which heartbeats are passed
    heartbeat_input: str | None = None  # the one input whose heartbeats count; None = any, "" = none
    store: str | None = None  # name of the keyed state
    poll_s: float = 0.5  # longest wait for input before the next tick
    max_records: int = 1000  # of a batch; fewer for slow stages, because a crash repeats a batch
    ahead: int = 1  # batches with concurrent slow work: `prepare` is called from this many threads

    def prepare(self, records: Sequence[Record]) -> Sequence[Any]:
        """Do slow work for a batch, in a thread, without state. Returns one result or exception per record."""
        return records

    def process(self, record: Any, prepared: Any, ctx: Context) -> None:
        """Turn one record into outputs and state changes on `ctx`, in the order of the partition."""
        raise NotImplementedError

    def tick(self, contexts: Mapping[int, Context]) -> None:
        """Called once per cycle with a context per owned partition, for timers and results of background work."""

    def lost(self, partitions: Sequence[int]) -> None:
        """Drop the caches of these partitions: they were lost, or their batch was rolled back."""

    def on_dead_letter(self, partition: int) -> None:
        """Drop the caches that `process` changed: a record of this partition went to the dead letters."""
        self.lost([partition])

    def committed(self) -> None:
        """Called when the batch is durable."""

    def ready(self) -> bool:
        """Whether the stage can work (model loaded, helpers started); part of /readyz."""
        return True

    def starting(self) -> bool:
        """Whether models or helpers are still loading, so that no progress is expected."""
        return False

    def advanced(self) -> int:
        """A number that grows during slow work: it distinguishes a long batch from one that hangs."""
        return 0

    def metric_series(self, run: str) -> Iterator[Series]:  # noqa: ARG002 - for those that override it
        """Series exported as 0 from the start; otherwise Prometheus rates miss the first event."""
        yield STAGE_DURATION_SECONDS, {"stage": self.name}
        for topic in self.inputs:
            yield LOG_RECORDS, {"topic": topic, "direction": "in"}
            yield LOG_EXPIRED_UNREAD_RECORDS, {"topic": topic}

    def close(self) -> None:
        """Stop helpers; the loop calls it once, after the last commit."""
