"""A stage: an object that turns records into outputs and state changes, and knows nothing of the log.

The loop (stream.processing.loop) owns polling, decoding, transactions, retries and dead letters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from stream.log.contract import NO_HEADERS, Headers, Output, check_size
from stream.processing.metrics import Meter
from stream.processing.state import KeyedState
from stream.schema.records import Record, encode

BY_REPLAY = "replay"  # header of a verdict that a replay gave: it may have requested no score of the text
PASSED_ON = ("traceparent", "run", "feature_epoch", "ruleset")  # headers that an output takes over from its input


Series = tuple[str, Mapping[str, str]]  # metric, labels


@dataclass(eq=False, slots=True)
class Context:
    """State, outputs and counters of one partition for `process` and `tick`, staged until the commit."""

    partition: int
    state: KeyedState | Any  # None for a stage without a store
    meter: Meter
    now_ms: int
    headers: Headers = field(default_factory=lambda: NO_HEADERS)  # that the record at hand passes on; empty in a tick
    outputs: list[Output] = field(default_factory=list)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo the changes of the `with` block where an error leaves it."""
        state = self.state.mark() if self.state is not None else 0
        meter, outputs = self.meter.mark(), len(self.outputs)
        try:
            yield
        except BaseException:
            if self.state is not None:
                self.state.undo(state)
            self.meter.undo(meter)
            del self.outputs[outputs:]
            raise

    def emit(self, topic: str, record: Record, *, key: str | None = None, headers: Headers = NO_HEADERS) -> None:
        """Append a record in the partition at hand; `key` defaults to its site. Raises RecordTooLarge."""
        name = (record.site if key is None else key).encode()
        output = Output(topic, self.partition, name, encode(record), {**self.headers, **headers})
        check_size(output)
        self.outputs.append(output)

    def tombstone(self, topic: str, key: str) -> None:
        self.outputs.append(Output(topic, self.partition, key.encode(), None))


class Stage:
    """Base of the stages. Subclasses declare their inputs, and override `process` and other methods as needed.

    `process` and `tick` raise: an error whose class says `retriable = True` rolls the batch back and tries it again,
    one that says `fatal = True` ends the process; any other sends the record to the dead letters.
    """

    name: ClassVar[str]
    run: str = ""  # that it works for; "" = none: its records say of which they are
    inputs: Mapping[str, type[Record]]  # topic -> its records
    background: Collection[str] = ()  # of the inputs, those that are read only while no other one waits
    forward: str | None = None  # the topic on which heartbeats travel on
    heartbeat_input: str | None = None  # the one input whose heartbeats count; None = any, "" = none
    store: str | None = None  # name of the keyed state
    poll_s: float = 0.5  # longest wait for input before the next tick
    max_records: int = 1000  # of a batch; fewer for slow stages, since a crash repeats a batch
    ahead: int = 1  # batches whose slow work may run at once; `prepare` must stand calls from so many threads

    def prepare(self, records: Sequence[Record]) -> Sequence[Any]:
        """Slow work for a batch, in a thread, without state: a result a record, an exception for a failed one."""
        return records

    def process(self, record: Any, prepared: Any, ctx: Context) -> None:
        """Turn one record into outputs and state changes on `ctx`, in the order of the partition."""
        raise NotImplementedError

    def tick(self, contexts: Mapping[int, Context]) -> None:
        """Called once a cycle with a context per owned partition: timers, results of work that runs beside the loop."""

    def lost(self, partitions: Sequence[int]) -> None:
        """Drop the caches of these partitions: they went to another member, or their batch was rolled back."""

    def on_dead_letter(self, partition: int) -> None:
        """A record of this partition went to the dead letters: drop the caches that `process` changed."""
        self.lost([partition])

    def committed(self) -> None:
        """The batch is durable: caches that were updated with it are right."""

    def ready(self) -> bool:
        """True when the stage can work (model loaded, helpers started); part of /readyz."""
        return True

    def starting(self) -> bool:
        """True while models or helpers are still being loaded, so that no progress can be expected."""
        return False

    def advanced(self) -> int:
        """A number that grows during slow work: it distinguishes a long batch from one that hangs."""
        return 0

    def metric_series(self, run: str) -> Iterator[Series]:  # noqa: ARG002 - for those that override it
        """Series exported as 0 before anything happens: one that appears with its first event hides that from rates."""
        yield "stage_duration_seconds", {"stage": self.name}
        for topic in self.inputs:
            yield "log_records", {"topic": topic, "direction": "in"}
            yield "log_expired_unread_records", {"topic": topic}

    def close(self) -> None:
        """Stop helpers; the loop calls it once, after the last commit."""
