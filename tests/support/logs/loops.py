"""Loops under test: quick settings, members with replaced methods, and the outputs of a stage."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from crawler.metrics import SEARCH_RESULTS
from stream.log.contract import Commit, Log, Member, Output
from stream.processing import heartbeat
from stream.processing.dead_letters import DeadLetter
from stream.processing.loop import LoopSettings, StageLoop
from stream.processing.metrics import Metrics
from stream.processing.stage import Context, Stage
from stream.schema.records import Decision, Hit, Record, decode, encode
from stream.schema.topics import DEAD_LETTERS
from tests.support.limits import with_limits

FAST = with_limits(
    LoopSettings(), linger_s=0.0, backoff_s=0.001, backoff_cap_s=0.01, breaker_least=3, breaker_window=20
)


class Copying(Stage):
    """Emits a decision on `out` for each hit on `in`."""

    name = "copying"
    inputs: Mapping[str, type[Record]] = {"in": Hit}
    poll_s = 0.01

    def process(self, record: Hit, prepared: Any, ctx: Context) -> None:
        ctx.emit("out", Decision(id=record.id, site=record.site, stop=False, reason=""))


class Counting(Copying):
    """Counts the hits of a site in its state, and emits the count on `out`."""

    name = "counting"
    forward = "out"
    store = "counts"

    def process(self, record: Hit, prepared: Any, ctx: Context) -> None:
        count = int(ctx.state.get(record.site.encode()) or b"0") + 1
        ctx.state.put(record.site.encode(), str(count).encode())
        ctx.meter.count(SEARCH_RESULTS, source="test", outcome="read")
        ctx.emit("out", Decision(id=record.id, site=record.site, stop=False, reason=str(count)))


Gate = Callable[["Ahead", Sequence[str]], object]


class Ahead(Copying):
    """A stage with two records per batch, whose slow work calls `gate` with the ids, which may block or raise."""

    max_records = 2
    ahead = 2

    def __init__(self, gate: Gate = lambda *_: None) -> None:
        self.begun: list[list[str]] = []  # ids of each batch whose slow work began
        self.running = 0
        self.most = 0  # batches in slow work
        self.dropped: list[int] = []
        self.closed = False
        self._gate = gate
        self._lock = threading.Lock()

    def prepare(self, records: Sequence[Record]) -> Sequence[Any]:
        ids = [record.id for record in records]
        with self._lock:
            self.begun.append(ids)
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            self._gate(self, ids)
        finally:
            with self._lock:
                self.running -= 1
        return ids

    def process(self, record: Hit, prepared: Any, ctx: Context) -> None:
        assert prepared == record.id
        super().process(record, prepared, ctx)

    def lost(self, partitions: Sequence[int]) -> None:
        self.dropped += partitions

    def close(self) -> None:
        self.closed = True


class Transient(Exception):
    retriable = True


class Around:
    """A member with some methods replaced."""

    def __init__(self, member: Member, **replaced: Any) -> None:
        self._member = member
        vars(self).update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._member, name)


def refusing(member: Member, *faults: Exception) -> Around:
    """A member whose first commits raise these errors."""
    left = list(faults)

    def commit(commit: Commit) -> None:
        if left:
            raise left.pop(0)
        member.commit(commit)

    return Around(member, commit=commit)


def loop_on(
    log: Log,
    stage: Stage,
    metrics: Metrics | None = None,
    settings: LoopSettings = FAST,
    member: Any = None,
    **more: Any,
) -> StageLoop:
    """A loop of the stage, as the member "one" of its group."""
    joined = member or log.join("group", list(stage.inputs), member="one", store=stage.store)
    return StageLoop(stage, joined, metrics=metrics or Metrics(), settings=settings, **more)


def put_hits(log: Log, *ids: str, topic: str = "in", partition: int = 0) -> None:
    log.append([Output(topic, partition, b"a.example", encode(Hit(id=i, site="a.example", url="x"))) for i in ids])


def cycle(loop: StageLoop, times: int = 12) -> None:
    stop = threading.Event()
    for _ in range(times):
        loop.cycle(stop)


def decisions(log: Log, partitions: Iterable[int] = (0, 1), topic: str = "out") -> list[Decision]:
    """The records on the output, without heartbeats."""
    found = [m for p in partitions for m in log.read(topic, p) if m.value and not heartbeat.is_heartbeat(m)]
    return [decode(Decision, m.value or b"") for m in found]


def letters(log: Log, partitions: Iterable[int] = (0, 1)) -> list[DeadLetter]:
    return [DeadLetter.read(message) for p in partitions for message in log.read(DEAD_LETTERS, p)]


def count(metrics: Metrics, name: str, **labels: str) -> float:
    """The value of a metric; 0 if it was never counted."""
    return metrics.registry.get_sample_value(f"farmwatch_{name}", labels) or 0.0
