"""/metrics, /healthz and /readyz of one process. The standard library's server is enough for three read-only pages."""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from farmwatch.errors import ConfigError

_log = structlog.get_logger()
_TEXT = "text/plain; charset=utf-8"


class HealthLike(Protocol):
    """What the stage loop says of itself: `ok` = it ticked lately, `ready` = it holds partitions and can work."""

    @property
    def ok(self) -> bool:
        """The loop ticked lately and makes progress."""

    @property
    def ready(self) -> bool:
        """Assignment held, state restored, model loaded."""

    @property
    def detail(self) -> str:
        """Why not, in words."""


class Endpoints:
    """Serves the three pages from a thread. `port` is the real one after `start`, also where 0 was asked for."""

    def __init__(self, registry: CollectorRegistry, health: Callable[[], HealthLike], host: str, port: int) -> None:
        """Take what to show and where."""
        self._registry = registry
        self._health = health
        self._address = (host, port)
        self._server: ThreadingHTTPServer | None = None
        self.port = port

    def start(self, patience_s: float = 0.0, stop: threading.Event | None = None) -> None:
        """Bind and serve; a port that is taken is waited for so long: a process before this one may be draining.

        Gives up, without serving, when `stop` is set meanwhile.
        Raises ConfigError when the address stays taken, or is not this machine's.
        """
        until = time.monotonic() + patience_s
        stop = stop or threading.Event()
        told = False
        while not stop.is_set():
            try:
                server = ThreadingHTTPServer(self._address, self._handler())
                break
            except OSError as error:
                host, port = self._address
                if error.errno == errno.EADDRINUSE and time.monotonic() < until:
                    if not told:
                        mend = "if no farmwatch ends there just now, set metrics.port to another one, or to 0 for any"
                        _log.warning(
                            "metrics_port_taken", address=f"{host}:{port}", waits_s=round(patience_s), mend=mend
                        )
                    told = True
                    stop.wait(min(1.0, patience_s))
                    continue
                raise ConfigError(_refused(host, port, error)) from error
        else:
            return
        server.daemon_threads = True
        self._server = server
        self.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, name="endpoints", daemon=True, args=(0.1,)).start()
        _log.info("endpoints_served", url=f"http://{self._address[0]}:{self.port}/metrics")

    def close(self) -> None:
        """Stop serving."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def page(self, path: str, accept: str) -> tuple[int, str, bytes]:
        """(status, content type, body) of a path."""
        if path == "/metrics":
            encoder, content_type = choose_encoder(accept)
            return 200, content_type, encoder(self._registry)
        if path in ("/healthz", "/readyz"):
            health = self._health()
            good = health.ok if path == "/healthz" else health.ready
            return (200 if good else 503), _TEXT, f"{'ok' if good else 'not ok'}: {health.detail}\n".encode()
        return 404, _TEXT, b"/metrics /healthz /readyz\n"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoints = self

        class Handler(BaseHTTPRequestHandler):
            """GET and HEAD of the pages; quiet, because scrapes are no events."""

            timeout = 10  # seconds; a scraper that sends nothing must not hold a thread

            def do_GET(self) -> None:
                self._answer(with_body=True)

            def do_HEAD(self) -> None:
                self._answer(with_body=False)

            def log_message(self, format: str, *args: object) -> None:  # noqa: ARG002 - the signature is the library's
                return

            def _answer(self, with_body: bool) -> None:
                status, content_type, body = endpoints.page(self.path.partition("?")[0], self.headers.get("Accept", ""))
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if with_body:
                    self.wfile.write(body)

        return Handler


def _refused(host: str, port: int, error: OSError) -> str:
    said = f"cannot serve on {host}:{port}: {error.strerror}"
    if error.errno == errno.EADDRINUSE:
        return (
            f"metrics.port: {said}: another farmwatch, or another process, has the port; stop it, choose another port,"
            " or 0 for any"
        )
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"metrics.host: {said}: the host is no address of this machine; 127.0.0.1 and 0.0.0.0 always are"
    return f"metrics.port: {said}; choose another port, or 0 for any"
