"""/metrics, /healthz and /readyz of one process. The standard library's server is enough for three read-only pages."""

from __future__ import annotations

import errno
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, suppress
from copy import copy
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from typing import Self

import structlog
from prometheus_client import CollectorRegistry, GCCollector, Metric, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder

from farmwatch.config.config import Config
from stream.processing.health import Health
from stream.schema.roles import Role
from stream.text.user_errors import ConfigError, FarmwatchError

ROLE = "role"  # the label that every sample gets
_log = structlog.get_logger()
_TEXT = "text/plain; charset=utf-8"
_CONNECTIONS = 16  # at once, a thread each; a further one takes the place of the slowest
_REQUEST_S = 5.0  # for a request and its answer, including slow clients
_POLL_S = 0.1
_STRANGE = "the host is not an address of this machine; 127.0.0.1 and 0.0.0.0 always are"


class PortTaken(FarmwatchError):
    """Another process uses a port, perhaps only while it drains. The operator waits, stops it, or sets another port."""


_Page = Callable[[str, str], tuple[int, str, bytes]]  # path, accept -> status, content type, body


class Exposition(CollectorRegistry):
    """The metrics of another registry, with `process_*` and `python_*`; every sample has the label of the role.

    `_created`, the start of a series, is left out: it would be a sixth of all lines, and has no use.
    """

    def __init__(self, metrics: CollectorRegistry, role: str) -> None:
        """Collect from `metrics` at each request."""
        super().__init__()
        self._metrics = metrics
        self._role = {ROLE: role}
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self)

    def collect(self) -> Iterator[Metric]:
        """Every family with its exposed samples."""
        for family in chain(self._metrics.collect(), super().collect()):
            exposed = copy(family)
            exposed.samples = [
                sample._replace(labels={**sample.labels, **self._role})
                for sample in family.samples
                if not sample.name.endswith("_created")
            ]
            yield exposed


@dataclass(slots=True)
class Endpoints:
    """Serves the three pages from a thread. After `start`, `port` is the real port, also if it was 0."""

    registry: CollectorRegistry
    health: Callable[[], Health]
    host: str
    port: int
    request_s: float = _REQUEST_S  # after which a connection is closed
    _server: _Server | None = field(init=False, default=None)

    def start(self) -> None:
        """Bind and serve. Raises PortTaken for a port in use, ConfigError for an address of another machine."""
        try:
            server = _Server((self.host, self.port), self.page, self.request_s)
        except OSError as error:
            raise _refusal(self.host, self.port, error) from error
        self._server = server
        self.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, name="endpoints", daemon=True, args=(_POLL_S,)).start()
        _log.info("endpoints_served", url=f"http://{self.host}:{self.port}/metrics")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def page(self, path: str, accept: str) -> tuple[int, str, bytes]:
        """(status, content type, body) of a path."""
        if path == "/metrics":
            try:
                encoder, content_type = choose_encoder(accept)
            except (TypeError, ValueError):  # the version is not a number
                encoder, content_type = choose_encoder("")
            return 200, content_type, encoder(self.registry)
        if path in ("/healthz", "/readyz"):
            health = self.health()
            good = health.ok if path == "/healthz" else health.ready
            return (200 if good else 503), _TEXT, f"{'ok' if good else 'not ok'}: {health.detail}\n".encode()
        return 404, _TEXT, b"/metrics /healthz /readyz\n"


class _Handler(BaseHTTPRequestHandler):
    """GET and HEAD of the pages. Scrapes are not logged."""

    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: ARG002 - the signature is the library's
        return

    def do_GET(self) -> None:
        self.server.silent.pop(self.connection, None)
        status, content_type, body = self.server.page(self.path.partition("?")[0], self.headers.get("Accept", ""))
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET


def _shut_down(connection: socket.socket) -> None:
    with suppress(OSError):  # already closed
        connection.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingHTTPServer):
    """Limits the number of connections and the duration of each. A client that disconnects early is not logged.

    Where all places are taken, a new connection ends the oldest one that has not sent its request, or else the oldest.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], page: _Page, request_s: float) -> None:
        self.page = page
        self._request_s = request_s
        self._free = threading.Semaphore(_CONNECTIONS)
        self._until: dict[socket.socket, float] = {}  # the oldest first
        self.silent: dict[socket.socket, None] = {}  # those without a request so far
        super().__init__(address, _Handler)

    def get_request(self) -> tuple[socket.socket, object]:
        if not self._free.acquire(blocking=False):
            for slowest in list(self.silent or self._until)[:1]:
                _shut_down(slowest)
            if not self._free.acquire(timeout=_POLL_S):
                raise BlockingIOError  # the connection stays in the queue
        try:
            connection, client = super().get_request()
        except BaseException:
            self._free.release()
            raise
        self._until[connection] = time.monotonic() + self._request_s
        self.silent[connection] = None
        return connection, client

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]  # of TCP it is a socket
        try:
            super().shutdown_request(request)
        finally:
            self._until.pop(request, None)
            self.silent.pop(request, None)
            self._free.release()

    def service_actions(self) -> None:
        """Shut down connections whose time is over, which ends their threads."""
        now = time.monotonic()
        for connection in [one for one, until in self._until.copy().items() if until <= now]:
            _shut_down(connection)

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - the library's signature
        if not isinstance(sys.exception(), ConnectionError):
            _log.exception("endpoint_failed")


def listen(host: str, port: int, table: str) -> socket.socket:
    """A listening socket. Raises PortTaken or ConfigError with the setting of `table` to change."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise _refusal(host, port, error, table) from error


def addresses_of(config: Config, roles: Collection[Role]) -> Iterator[tuple[str, Role, str, str, int]]:
    """What each of these roles serves, the role, the table of its settings, host and port."""
    for role in roles:
        yield role.value, role, "metrics", config.metrics.host, config.metrics.port_of(role)
    if Role.CONSOLE in roles:
        yield "pages of the console", Role.CONSOLE, "console", config.console.host, config.console.port


def require_free_ports(config: Config, roles: Collection[Role]) -> None:
    """Check that these roles can serve, before one starts: with all ports at once, so that no two are the same.

    Raises PortTaken, or ConfigError where no later attempt can succeed.
    """
    ours = set[int]()
    with ExitStack() as held:
        for _, _, table, host, port in addresses_of(config, roles):
            try:
                listener = held.enter_context(listen(host, port, table))
            except PortTaken as error:
                if port in ours:
                    raise ConfigError(str(error)) from error
                raise
            ours.add(listener.getsockname()[1])


def _refusal(host: str, port: int, error: OSError, table: str = "metrics") -> FarmwatchError:
    if error.errno == errno.EADDRINUSE:
        return PortTaken(
            f"{host}:{port} is in use by another process: stop it, or set {table}.port to another port, or to 0 for any"
        )
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return ConfigError(f"{table}.host: cannot serve on {host}:{port}: {error.strerror}: {_STRANGE}")
    return ConfigError(
        f"{table}.port: cannot serve on {host}:{port}: {error.strerror}; choose another port, or 0 for any"
    )
