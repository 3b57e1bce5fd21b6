"""OpenTelemetry traces, if the standard variables name a collector; otherwise nothing is imported."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from farmwatch.terminal.messages import program_version
from stream.log.contract import Member
from stream.processing.stage import Stage

Trace = Callable[[Stage, Member, str], Member]  # a stage, its member and its group -> the member, traced

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_END_S = 3.0  # the last spans may delay the end of a role this long
_log = structlog.get_logger()


@contextmanager
def tracing(log_url: str) -> Iterator[Trace]:
    """Trace the members of a role until the end of the block."""
    is_disabled = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if is_disabled or not any(os.environ.get(name) for name in _ENDPOINTS):
        yield _untraced
        return
    try:
        from farmwatch.daemon.spans import Spans
    except ImportError as error:
        _log.warning("no_traces", error=str(error), mend="pip install 'farmwatch[otel]'")
        yield _untraced
        return
    spans = Spans(log_url.partition(":")[0], program_version())
    try:
        yield spans.traced
    finally:
        ending = threading.Thread(target=spans.close, name="traces-end", daemon=True)
        ending.start()
        ending.join(_END_S)


def _untraced(_stage: Stage, member: Member, _group: str) -> Member:
    return member
