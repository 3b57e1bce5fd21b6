"""An OpenTelemetry collector on loopback that keeps the spans it receives."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Received(NamedTuple):
    """A span; ids in hex, as in `traceparent`. `parent` is empty for the root of a trace."""

    trace: str
    id: str
    parent: str
    name: str
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]

    @property
    def stage(self) -> str:
        stage: str = self.attributes["farmwatch.stage"]
        return stage


@dataclass
class Collector:
    """`endpoint` is for OTEL_EXPORTER_OTLP_ENDPOINT; a `silent` one accepts requests and answers none until it ends."""

    silent: bool = False
    spans: list[Received] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def __enter__(self) -> Self:
        collector, self._ended = self, threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if collector.silent:
                    collector._ended.wait()
                    self.send_error(400)
                    return
                collector.bodies.append(body)
                collector.spans += _read(body)
                self.send_response(200 if self.path == "/v1/traces" else 404)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()


def _read(body: bytes) -> list[Received]:
    request = ExportTraceServiceRequest.FromString(body)
    found = []
    for resource in request.resource_spans:
        of_process = _attributes(resource.resource.attributes)
        for span in (span for scope in resource.scope_spans for span in scope.spans):
            ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
            attributes = of_process | _attributes(span.attributes)
            found.append(Received(*ids, span.name, span.start_time_unix_nano, span.end_time_unix_nano, attributes))
    return found


def _attributes(given: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in given}
