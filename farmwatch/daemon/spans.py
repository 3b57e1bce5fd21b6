"""The spans of a role: one for each record with a committed offset, in the trace of its page.

The trace is that of the record's header `traceparent`: the id of the fetch. Its root span is the fetch itself, exported
by the stage that commits a page. Spans wait in a queue of the SDK, which drops them while it is full, so that a slow
collector delays no stage.
"""

from __future__ import annotations

import logging
import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags, set_span_in_context

from stream.log.contract import At, Commit, Headers, Member, Message, Output
from stream.log.forwarding import ForwardingMember
from stream.processing.stage import Stage
from stream.schema.projection import projection_of
from stream.schema.records import Page, Record, decode
from stream.schema.topics import PAGES

Labels = Mapping[str, str | int]

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_MS = 1_000_000  # ns
_log = structlog.get_logger()


@projection_of(Page)
class _Fetch(Record, frozen=True, kw_only=True):
    """When a page was fetched. The body is not decoded."""

    outcome: str
    fetched_at: int
    duration_ms: int


class Spans:
    """Exports spans by the standard variables (OTEL_*); closed once."""

    def __init__(self, system: str, version: str) -> None:
        """`system`: the kind of log, as an attribute of each span."""
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # `_Exporter` reports the same once
        own = Resource({"service.name": "farmwatch", "service.version": version})
        self._ids = _PageIds()
        self._provider = TracerProvider(
            resource=own.merge(OTELResourceDetector().detect()), id_generator=self._ids, shutdown_on_exit=False
        )
        self._exporter = _Exporter()
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("farmwatch", version)
        self._system = system

    def traced(self, stage: Stage, member: Member, group: str) -> Member:
        """The member, whose commits are exported."""
        labels = {
            "farmwatch.stage": stage.name,
            "messaging.system": self._system,
            "messaging.consumer.group.name": group,
            **({"farmwatch.run": stage.run} if stage.run else {}),
        }
        return _TracedMember(member, self, labels)

    def processed(self, at: At, record: _Delivered, labels: Labels) -> None:
        """Export the span of a record that is processed and committed."""
        trace, parent = _ids_of(record.headers)
        if not self._is_sampled(trace):
            return
        self._ids.span = 0
        known = NonRecordingSpan(SpanContext(trace, parent, is_remote=True, trace_flags=_SAMPLED))
        attributes = {
            **({"farmwatch.run": record.headers["run"]} if "run" in record.headers else {}),
            **labels,
            **_messaging("process", at),
            "messaging.kafka.offset": record.offset,
        }
        context = set_span_in_context(known)
        name = f"process {at.topic}"
        self._tracer.start_span(name, context, SpanKind.CONSUMER, attributes, start_time=record.began_ns).end()

    def fetched(self, output: Output, labels: Labels) -> None:
        """Export the root span of a page, which is its fetch."""
        trace, root = _ids_of(output.headers)
        if output.value is None or not self._is_sampled(trace):
            return
        fetch = decode(_Fetch, output.value)
        self._ids.trace, self._ids.span = trace, root
        attributes = {
            **labels,
            **_messaging("send", At(output.topic, output.partition)),
            "farmwatch.outcome": fetch.outcome,
        }
        span = self._tracer.start_span("fetch", None, SpanKind.PRODUCER, attributes, start_time=fetch.fetched_at * _MS)
        span.end((fetch.fetched_at + fetch.duration_ms) * _MS)

    def close(self) -> None:
        """Send the remaining spans."""
        self._provider.shutdown()

    def _is_sampled(self, trace: int) -> bool:
        """Decide by the trace alone, so that all stages decide alike with any sampler."""
        decision = self._provider.sampler.should_sample(None, trace, "").decision
        return bool(trace) and decision is Decision.RECORD_AND_SAMPLE


class _Delivered(NamedTuple):
    offset: int
    headers: Headers
    began_ns: int
    epoch: int  # epoch of its partition's ownership


class _TracedMember(ForwardingMember):
    """A member that remembers delivered records until they are committed."""

    def __init__(self, member: Member, spans: Spans, labels: Labels) -> None:
        super().__init__(member)
        self._spans, self._labels = spans, labels
        self._delivered: dict[At, deque[_Delivered]] = {}

    def poll(self, timeout_s: float, max_records: int, max_bytes: int) -> list[Message]:
        messages = self._member.poll(timeout_s, max_records, max_bytes)
        now_ns, epochs = time.time_ns(), self._member.assignment()
        for message in messages:
            if "traceparent" in message.headers:
                record = _Delivered(message.offset, message.headers, now_ns, epochs.get(message.partition, -1))
                self._delivered.setdefault(At(message.topic, message.partition), deque()).append(record)
        return messages

    def commit(self, commit: Commit) -> None:
        self._member.commit(commit)
        epochs = self._member.assignment()
        for at, stop in commit.offsets.items():
            records = self._delivered.get(at, deque())
            while records and records[0].offset < stop:
                record = records.popleft()
                if record.epoch == epochs.get(at.partition):  # otherwise another member has processed it
                    self._spans.processed(at, record, self._labels)
        for output in commit.outputs:
            if output.topic == PAGES:
                self._spans.fetched(output, self._labels)

    def rewind(self) -> None:
        self._delivered.clear()
        self._member.rewind()


class _PageIds(RandomIdGenerator):
    """A root span has the ids of its page, other spans random ones."""

    trace = span = 0

    def generate_trace_id(self) -> int:
        return self.trace

    def generate_span_id(self) -> int:
        return self.span or super().generate_span_id()


class _Exporter(OTLPSpanExporter):
    """Logs once when spans cannot be sent, and when they can be again."""

    _last = SpanExportResult.SUCCESS

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        if result is not self._last:
            self._last = result
            if result is SpanExportResult.SUCCESS:
                _log.info("traces_sent_again")
            else:
                _log.warning("traces_lost", mend="check the collector and the variables OTEL_EXPORTER_OTLP_*")
        return result


def _messaging(operation: str, at: At) -> dict[str, str | int]:
    return {
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": at.topic,
        "messaging.destination.partition.id": str(at.partition),
    }


def _ids_of(headers: Headers) -> tuple[int, int]:
    """Trace and span of the header; 0, 0 without a valid one."""
    match = _TRACEPARENT.fullmatch(headers.get("traceparent", ""))
    return (int(match[1], 16), int(match[2], 16)) if match else (0, 0)
