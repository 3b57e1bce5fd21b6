"""All metrics of farmwatch in one table; the meter that delays a batch's counts until its commit; the log's CPU.

Labels are bounded: topics, stages, rules, outcomes; never a URL or a site. `run` is bounded by the number of runs; the
series of a run stay until the process ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

from stream.schema.runs import shown_run


class Spec(NamedTuple):
    """A metric as documented in docs/reference/metrics.md. `name` is without the prefix and without `_total`."""

    kind: str  # counter | gauge | histogram
    name: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_SHARE = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
# Probabilities, the scale of Binoculars (.5 to 1.5, with its two published thresholds), that of Fast-DetectGPT.
_SCORES = (
    *(-5.0, -2.0, -1.0, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8),
    *(0.8536432310785527, 0.875, 0.9, 0.9015310749276843, 0.925, 0.95, 0.975, 1.0),
    *(1.05, 1.1, 1.2, 1.3, 1.5, 2.0, 3.0, 4.0, 5.0, 7.5, 10.0, 15.0, 20.0),
)

SPECS: tuple[Spec, ...] = (
    Spec("gauge", "build_info", "Version of this process; always 1.", ("version",)),
    Spec("gauge", "ruleset_info", "Ruleset in use; always 1.", ("ruleset", "digest")),
    Spec("gauge", "live_run_info", "The run that this process carries on; always 1.", ("run", "epoch")),
    Spec("counter", "role_restarts", "Times that `farmwatch up` has started this role again, since it began itself."),
    Spec("counter", "cutovers", "Times that this process has gone over to another run."),
    Spec("counter", "search_results", "Search results that CRAWL read, by outcome.", ("source", "outcome")),
    Spec("counter", "search_queries", "Queries of `farmwatch search` dealt with, by outcome.", ("source", "outcome")),
    Spec("counter", "search_hits", "Results that `farmwatch search` got: appended or skipped.", ("source", "outcome")),
    Spec("gauge", "search_quota_left", "Requests left of a source's quotas; absent without one.", ("source",)),
    Spec("gauge", "search_parked_timestamp_seconds", "Until when a source is left alone; 0: it is not.", ("source",)),
    Spec("gauge", "search_unresponsive_engines", "Engines that did not answer the last query.", ("source",)),
    Spec("gauge", "search_round_timestamp_seconds", "When a source's last whole round ended.", ("source",)),
    Spec(
        "counter",
        "fetch_requests",
        "HTTP requests ended; absent: the site has no such file. Status: 403, 404, 429, 503, else its class; none: no"
        " answer came. Reason: a word of docs/reference/reasons.md; status: the status says it.",
        ("kind", "outcome", "status", "reason"),
    ),
    Spec("histogram", "fetch_duration_seconds", "Time of one HTTP request.", ("kind",), _SECONDS),
    Spec("counter", "fetch_response_bytes", "Decoded bytes received.", ("kind",)),
    Spec("gauge", "fetch_inflight", "HTTP requests under way."),
    Spec("gauge", "crawl_paused", "1 while CRAWL makes no requests, by reason: operator or disk.", ("reason",)),
    Spec("counter", "fetch_deferred", "Requests put off because their domain or address had its turn.", ("kind",)),
    Spec("gauge", "frontier_urls", "URLs in the frontier of this process by status, and those queued.", ("state",)),
    Spec("gauge", "frontier_sites", "Sites in the frontier: active, parked, resting or stopped.", ("state",)),
    Spec("histogram", "frontier_wait_seconds", "Time a site waited after it was due.", (), _SECONDS),
    Spec("counter", "robots_lookups", "Decisions by robots.txt.", ("result",)),
    Spec("counter", "warc_records", "Records written to WARC files.", ("type",)),
    Spec("counter", "warc_bytes", "Compressed bytes written to WARC files."),
    Spec("counter", "log_records", "Records committed by this process.", ("topic", "direction")),
    Spec("counter", "log_cpu_seconds", "CPU time of the log: poll, commit, state, threads of its own.", ("operation",)),
    Spec("gauge", "log_lag_records", "Records behind the end of an input topic.", ("topic", "partition")),
    Spec("gauge", "log_lag_seconds", "Age of the newest record that was read.", ("topic",)),
    Spec("counter", "log_expired_unread_records", "Offsets that retention removed before they were read.", ("topic",)),
    Spec(
        "gauge",
        "log_bytes",
        "Bytes of the log by the first word of topic names: `verdicts` has those of all runs, `state` all stores.",
        ("topic",),
    ),
    Spec("gauge", "disk_free_bytes", "Free bytes of the disk of this process's log, or of its archive.", ("folder",)),
    Spec("counter", "log_rebalances", "Changes of this process's assignment."),
    Spec(
        "counter",
        "clock_steps",
        "Steps of the wall clock against the monotonic clock, by direction: forward or back.",
        ("direction",),
    ),
    Spec("counter", "dead_letters", "Records given up, by stage and error class.", ("stage", "reason")),
    Spec("counter", "stage_records", "Records a stage has dealt with.", ("run", "ruleset", "stage", "result")),
    Spec("histogram", "stage_duration_seconds", "Time of one committed batch.", ("stage",), _SECONDS),
    Spec("counter", "rule_drops", "Pages on which a rule failed.", ("run", "ruleset", "rule")),
    Spec("counter", "extract_attempts", "Extractions of a main text.", ("mode", "outcome")),
    Spec("histogram", "page_duplicate_ratio", "Share of a page's bytes that repeat earlier pages.", (), _SHARE),
    Spec("histogram", "page_template_ratio", "Share of a page's five-word runs that earlier pages have.", (), _SHARE),
    Spec("histogram", "page_template_block_ratio", "Share of a page's characters in template lines.", (), _SHARE),
    Spec(
        "gauge",
        "template_sites",
        "Sites with the template of this rank, 1 = most sites; all: with any. Of at most 50,000 templates.",
        ("rank",),
    ),
    Spec("gauge", "site_memory_sites", "Sites whose earlier pages this process has in memory."),
    Spec("gauge", "site_memory_bytes", "Bytes of what is remembered of them."),
    Spec("histogram", "score_batch_duration_seconds", "Time that a batch kept the detectors busy.", (), _SECONDS),
    Spec("counter", "score_tokens", "Tokens that the detectors read, of texts and of padding.", ("kind",)),
    Spec("gauge", "score_batch_tokens", "Tokens of a device's batch at most: halved when its memory is too small."),
    Spec("counter", "score_device_errors", "Memory too small, devices lost, texts that no device takes.", ("kind",)),
    Spec("gauge", "score_device_memory_bytes", "Memory of the scoring device: used, peak, total.", ("kind",)),
    Spec("counter", "score_cache_lookups", "Requests whose text was known already (hit), or read (miss).", ("result",)),
    Spec("histogram", "page_score", "Scores of articles, canaries left out.", ("run", "detector"), _SCORES),
    Spec("counter", "page_verdicts", "Page verdicts.", ("run", "ruleset", "verdict")),
    Spec(
        "gauge",
        "sites",
        "Sites by verdict: those last judged by ruleset, detector and site method in force, and those not judged yet.",
        ("run", "ruleset", "verdict"),
    ),
    Spec("counter", "sites_reopened", "Sites whose term has ended, so that CRAWL measures them again.", ("run",)),
    Spec("gauge", "sites_expired", "Sites whose newest verdict is too old to count.", ("run", "ruleset")),
    Spec(
        "gauge",
        "share",
        "Share of LLM sites among these sites with scored articles; by the method direct or ppi it has a point.",
        ("run", "ruleset", "detector", "source", "definition", "method", "bound"),
    ),
    Spec(
        "gauge",
        "share_sites",
        "Sites with a scored article, on which `share` rests.",
        ("run", "ruleset", "detector", "source", "definition", "method"),
    ),
    Spec(
        "gauge",
        "share_changed",
        "1 where new sites have another share since a day of the last year: an alarm, false in at most 5% of years.",
        ("run", "ruleset", "detector"),
    ),
    Spec(
        "gauge",
        "farm_rate",
        "Share of llm verdicts among these sites that are classifiable; `share` will take its place.",
        ("run", "ruleset", "source", "bound"),
    ),
    Spec("counter", "canary_pages_sent", "Pages of canary sites put on the way."),
    Spec("gauge", "canary_sites", "Canary sites, one round of each label and content.", ("truth", "verdict")),
    Spec(
        "gauge", "canary_share", "Of canaries: site_fpr, site_tpr, page_fpr, page_tpr, kept_human, kept_llm.", ("kind",)
    ),
    Spec("gauge", "canary_timestamp_seconds", "When the newest canary page that came through was sent; 0 = none has."),
    Spec("counter", "replay_records", "Records that a replay has dealt with, by phase.", ("run", "phase")),
    Spec("gauge", "replay_records_expected", "Records that a phase of a replay has in all.", ("run", "phase")),
    Spec("gauge", "replay_eta_seconds", "Time that a replay still takes at its present pace.", ("run",)),
    Spec("counter", "replay_yield_seconds", "Time that a replay waited because live was behind.", ("run",)),
    Spec("gauge", "console_behind_records", "Offsets that the console has not read, so that its pages lack them."),
    Spec("histogram", "console_request_duration_seconds", "Time of an answer.", ("page", "status"), _SECONDS),
    Spec("histogram", "heartbeat_duration_seconds", "Time of a heartbeat through all stages to TALLY.", (), _SECONDS),
    Spec("gauge", "heartbeat_timestamp_seconds", "Start of the last heartbeat that passed a stage.", ("stage",)),
)

P = ParamSpec("P")
T = TypeVar("T")
_LOG_THREADS = ("kafka-io", "network-thread", "log-lease")  # in the names of kafka-python's threads and ours
_TIMED = 17  # reads of state; a prime, for stages that read in turns of two, four and more
_TICK_S = 0.01  # USER_HZ is 100 on every Linux that Python runs on
_Labelled = tuple[str, tuple[tuple[str, str], ...]]  # a metric's name, and one set of its labels
_KINDS: dict[str, Callable[..., MetricWrapperBase]] = {"counter": Counter, "gauge": Gauge, "histogram": Histogram}


class Metrics:
    """The metrics of one process, on its own registry; no globals."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._metrics: dict[str, MetricWrapperBase] = {}
        self._children: dict[_Labelled, MetricWrapperBase] = {}
        for spec in SPECS:
            extra = {"buckets": spec.buckets} if spec.buckets else {}
            self._metrics[spec.name] = _KINDS[spec.kind](
                f"farmwatch_{spec.name}", spec.help, spec.labels, registry=self.registry, **extra
            )

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter at once. For counts of a batch, use a Meter."""
        self._child(name, labels).inc(amount)

    def set(self, name: str, value: float, **labels: str) -> None:
        self._child(name, labels).set(value)

    def observe(self, name: str, value: float, **labels: str) -> None:
        self._child(name, labels).observe(value)

    def clear(self, name: str) -> None:
        """Remove all label sets of a gauge before it is set again; other threads may add label sets meanwhile."""
        self._metrics[name].clear()
        for key in list(self._children):
            if key[0] == name:
                self._children.pop(key, None)

    def touch(self, name: str, **labels: str) -> None:
        """Export a known label set as zero before its first event."""
        self._child(name, labels)

    def watch(self, name: str, value: Callable[[], float], **labels: str) -> None:
        """Read a gauge's value whenever it is exposed; `value` must not raise."""
        self._child(name, labels).set_function(value)

    def _child(self, name: str, labels: dict[str, str]) -> Any:
        key = (name, tuple(labels.items()))
        child = self._children.get(key)
        if child is None:  # the library looks it up too, at several times the cost
            metric = self._metrics[name]
            if "run" in labels:
                labels["run"] = shown_run(labels["run"])
            child = self._children[key] = metric.labels(**labels) if labels else metric
        return child


_Counts = dict[_Labelled, float]
MeterMark = tuple[_Counts, int]


class Meter:
    """Counts and observations of one batch; `apply` after its commit, or drop it with a rollback."""

    def __init__(self) -> None:
        self._counts: _Counts = {}
        self._observed: list[tuple[str, float, dict[str, str]]] = []

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        key = (name, tuple(labels.items()))
        self._counts[key] = self._counts.get(key, 0) + amount

    def observe(self, name: str, value: float, **labels: str) -> None:
        self._observed.append((name, value, labels))

    def mark(self) -> MeterMark:
        return self._counts.copy(), len(self._observed)

    def undo(self, mark: MeterMark) -> None:
        self._counts, observed = mark
        del self._observed[observed:]

    def apply(self, metrics: Metrics) -> None:
        for (name, labels), amount in self._counts.items():
            metrics.count(name, amount, **dict(labels))
        for name, value, labels_ in self._observed:
            metrics.observe(name, value, **labels_)


class LogCpu:
    """Counts the log's CPU time in a process; used from the loop's thread only.

    In that thread it is measured by operation, and reads of state by a sample; the log's own threads are added. The
    share of `process_cpu_seconds_total` is the cost of exactly-once.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._threads: dict[int, float] = {}
        self._state_s = 0.0  # time of reads of state that is not counted yet: a count costs as much as a read
        self._reads = 0

    @contextmanager
    def timed(self, operation: str) -> Iterator[None]:
        started = time.thread_time()
        try:
            yield
        finally:
            self._metrics.count("log_cpu_seconds", time.thread_time() - started, operation=operation)
            if self._state_s:
                self._metrics.count("log_cpu_seconds", self._state_s, operation="state")
                self._state_s = 0.0

    def sampled(self, read: Callable[P, T]) -> Callable[P, T]:
        """`read`, timed in one of _TIMED calls, which counts for all, because the clock can cost as much as a read."""

        def call(*args: P.args, **options: P.kwargs) -> T:
            self._reads += 1
            if self._reads % _TIMED:
                return read(*args, **options)
            started = time.thread_time()
            try:
                return read(*args, **options)
            finally:
                self._state_s += _TIMED * (time.thread_time() - started)

        return call

    def look_at_threads(self) -> None:
        """Count the time of the log's own threads since the last call (on Linux; elsewhere nothing)."""
        for thread in threading.enumerate():
            number = thread.native_id
            if number is None or not any(part in thread.name for part in _LOG_THREADS):
                continue
            spent = _thread_cpu_s(number)
            more = max(0.0, spent - self._threads.get(number, 0.0))
            self._metrics.count("log_cpu_seconds", more, operation="threads")
            self._threads[number] = spent


def _thread_cpu_s(number: int) -> float:
    try:
        fields = Path(f"/proc/self/task/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) * _TICK_S
