"""Metrics of a process; the meter that delays a batch's counts until its commit; the loop's metrics.

Labels are bounded: topics, stages, rules, outcomes; never a URL or a site. `run` is bounded by the number of runs; the
series of a run stay until the process ends.
"""

from __future__ import annotations

import threading
from collections import Counter as Counts
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

from stream.schema.runs import shown_run


@dataclass(frozen=True, eq=False, slots=True)
class Metric:
    """A metric as documented in docs/reference/metrics.md. `name` is without the prefix and without `_total`."""

    kind: str  # counter | gauge | histogram
    name: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


counter, gauge, histogram = (partial(Metric, kind) for kind in ("counter", "gauge", "histogram"))
SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

LOG_RECORDS = counter("log_records", "Records committed by this process.", ("topic", "direction"))
LOG_LAG_RECORDS = gauge("log_lag_records", "Records behind the end of an input topic.", ("topic", "partition"))
LOG_LAG_SECONDS = gauge("log_lag_seconds", "Age of the newest record that was read.", ("topic",))
LOG_EXPIRED_UNREAD_RECORDS = counter(
    "log_expired_unread_records", "Offsets that retention removed before they were read.", ("topic",)
)
LOG_REBALANCES = counter("log_rebalances", "Changes of this process's assignment.")
CLOCK_STEPS = counter(
    "clock_steps", "Steps of the wall clock against the monotonic clock, by direction: forward or back.", ("direction",)
)
DEAD_LETTERS = counter("dead_letters", "Records given up, by stage and error class.", ("stage", "reason"))
STAGE_RECORDS = counter("stage_records", "Records a stage has dealt with.", ("run", "ruleset", "stage", "result"))
STAGE_DURATION_SECONDS = histogram("stage_duration_seconds", "Time of one committed batch.", ("stage",), SECONDS)
HEARTBEAT_DURATION_SECONDS = histogram(
    "heartbeat_duration_seconds", "Time of a heartbeat through all stages to TALLY.", (), SECONDS
)
HEARTBEAT_TIMESTAMP_SECONDS = gauge(
    "heartbeat_timestamp_seconds", "Start of the last heartbeat that passed a stage.", ("stage",)
)

_KINDS: dict[str, Callable[..., MetricWrapperBase]] = {"counter": Counter, "gauge": Gauge, "histogram": Histogram}
_Labelled = tuple[Metric, tuple[tuple[str, str], ...]]  # a metric, and one set of its labels


class Metrics:
    """The metrics of one process, on its own registry; no globals. `shown`: exposed before their first use."""

    def __init__(self, shown: Iterable[Metric] = ()) -> None:
        self.registry = CollectorRegistry()
        self._lock = threading.Lock()
        self._metrics: dict[Metric, MetricWrapperBase] = {}
        self._children: dict[_Labelled, MetricWrapperBase] = {}
        for metric in shown:
            self._exposed(metric)

    def count(self, metric: Metric, amount: float = 1, **labels: str) -> None:
        """Add to a counter at once. For counts of a batch, use a Meter."""
        self._child(metric, labels).inc(amount)

    def set(self, metric: Metric, value: float, **labels: str) -> None:
        self._child(metric, labels).set(value)

    def observe(self, metric: Metric, value: float, **labels: str) -> None:
        self._child(metric, labels).observe(value)

    def clear(self, metric: Metric) -> None:
        """Remove all label sets of a gauge before it is set again; other threads may add label sets meanwhile."""
        self._exposed(metric).clear()
        for key in list(self._children):
            if key[0] is metric:
                self._children.pop(key, None)

    def touch(self, metric: Metric, **labels: str) -> None:
        """Export a known label set as zero before its first event."""
        self._child(metric, labels)

    def watch(self, metric: Metric, value: Callable[[], float], **labels: str) -> None:
        """Read a gauge's value whenever it is exposed; `value` must not raise."""
        self._child(metric, labels).set_function(value)

    def _child(self, metric: Metric, labels: dict[str, str]) -> Any:
        key = (metric, tuple(labels.items()))
        child = self._children.get(key)
        if child is None:  # the library looks it up too, at several times the cost
            exposed = self._exposed(metric)
            if "run" in labels:
                labels["run"] = shown_run(labels["run"])
            child = self._children[key] = exposed.labels(**labels) if labels else exposed
        return child

    def _exposed(self, metric: Metric) -> MetricWrapperBase:
        with self._lock:
            if metric not in self._metrics:
                buckets = {"buckets": metric.buckets} if metric.buckets else {}
                self._metrics[metric] = _KINDS[metric.kind](
                    f"farmwatch_{metric.name}", metric.help, metric.labels, registry=self.registry, **buckets
                )
            return self._metrics[metric]


Count = tuple[Metric, float, dict[str, str]]  # a metric, a number and labels
MeterMark = tuple[int, int]


class Meter:
    """Counts and observations of one batch; `apply` after its commit, or drop it with a rollback."""

    def __init__(self) -> None:
        self._counted: list[Count] = []  # not added up, so that a mark costs nothing
        self._observed: list[Count] = []

    def count(self, metric: Metric, amount: float = 1, **labels: str) -> None:
        self._counted.append((metric, amount, labels))

    def extend(self, counts: Iterable[Count]) -> None:
        """Count what was made before: the same counts for many records cost little."""
        self._counted.extend(counts)

    def observe(self, metric: Metric, value: float, **labels: str) -> None:
        self._observed.append((metric, value, labels))

    def mark(self) -> MeterMark:
        return len(self._counted), len(self._observed)

    def undo(self, mark: MeterMark) -> None:
        counted, observed = mark
        del self._counted[counted:]
        del self._observed[observed:]

    def apply(self, metrics: Metrics) -> None:
        sums: dict[_Labelled, float] = {}
        times = Counts(map(id, self._counted))
        for count in {id(count): count for count in self._counted}.values():
            metric, amount, labels = count
            key = (metric, tuple(labels.items()))
            sums[key] = sums.get(key, 0) + amount * times[id(count)]
        for (metric, of), amount in sums.items():
            metrics.count(metric, amount, **dict(of))
        for metric, value, labels in self._observed:
            metrics.observe(metric, value, **labels)
