"""/metrics, /healthz and /readyz over real HTTP."""

from __future__ import annotations

import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
import structlog.testing

from farmwatch.daemon.endpoints import Endpoints, PortTaken
from stream.processing.health import Health
from stream.processing.metrics import DEAD_LETTERS, Metrics
from stream.text.user_errors import ConfigError, FarmwatchError
from tests.support.waiting import wait_until


@contextmanager
def _endpoints(
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    health: Callable[[], Health] = lambda: Health(True, True, "ok"),
    request_s: float = 10.0,
    patience_s: float = 0.0,
    stop: threading.Event | None = None,
) -> Iterator[Endpoints]:
    """Endpoints with a dead letter, started and closed."""
    metrics = Metrics()
    metrics.count(DEAD_LETTERS, 3, stage="judge", reason="BadRecord")
    endpoints = Endpoints(metrics.registry, health, host, port, request_s)
    endpoints.start(patience_s, stop)
    try:
        yield endpoints
    finally:
        endpoints.close()


@pytest.fixture
def served() -> Iterator[Endpoints]:
    """Endpoints on a free port."""
    with _endpoints() as endpoints:
        yield endpoints


def _get(endpoints: Endpoints, path: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{endpoints.port}{path}", timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


def test_metrics_are_exposed(served: Endpoints) -> None:
    """/metrics shows the registry of the process in the text format of Prometheus; any other path is 404."""
    status, content_type, body = _get(served, "/metrics")
    assert status == 200
    assert content_type.startswith("text/plain; version=")
    assert 'farmwatch_dead_letters_total{reason="BadRecord",stage="judge"} 3.0' in body
    assert _get(served, "/etc/passwd")[0] == 404


@pytest.mark.parametrize(
    ("health", "healthz", "readyz"),
    [
        (Health(True, True, "ok"), (200, "ok: ok\n"), (200, "ok: ok\n")),
        (Health(True, False, "no partitions"), (200, "ok: no partitions\n"), (503, "not ok: no partitions\n")),
        (Health(False, True, "input waits"), (503, "not ok: input waits\n"), (200, "ok: input waits\n")),
    ],
)
def test_health_and_readiness_are_told_apart(health: Health, healthz: tuple[int, str], readyz: tuple[int, str]) -> None:
    """A loop without a partition is healthy but not ready; a stuck loop is not healthy."""
    with _endpoints(health=lambda: health) as served:
        assert (_get(served, "/healthz")[::2], _get(served, "/readyz")[::2]) == (healthz, readyz)


def _connected(endpoints: Endpoints, sent: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", endpoints.port), timeout=10)
    connection.sendall(sent)
    return connection


def _serving() -> int:
    """Threads that serve a connection."""
    return sum("process_request_thread" in thread.name for thread in threading.enumerate())


def test_clients_that_disconnect_early_are_not_logged(served: Endpoints, capfd: pytest.CaptureFixture[str]) -> None:
    """A hundred clients reset their connection, before or after their request."""
    with structlog.testing.capture_logs() as logs:
        for number in range(100):
            with _connected(served, b"GET /metrics HTTP/1.0\r\n" + b"\r\n" * (number % 2)) as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert _get(served, "/healthz")[0] == 200
        wait_until(lambda: _serving() == 0, "the threads", 20.0)
    assert logs == [] and capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "request_",
    [
        b"\r\n",
        b"\xff\xfe\x00\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /metrics HTTP/x.y\r\n\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"BREW /metrics HTTP/1.0\r\n\r\n",
        b"GET " + b"/" * 70_000 + b" HTTP/1.0\r\n\r\n",
        b"GET /metrics HTTP/1.0\r\n" + b"A: b\r\n" * 500 + b"\r\n",
        b"GET /metrics HTTP/1.0\r\nAccept: \xff;q=;version=,,;\r\n\r\n",
        b"GET /metrics HTTP/1.0\r\nAccept: application/openmetrics-text;version=x;escaping=y;=\r\n\r\n",
    ],
)
def test_malformed_requests_are_no_error(served: Endpoints, capfd: pytest.CaptureFixture[str], request_: bytes) -> None:
    """There is no traceback, and the next client gets its response."""
    with structlog.testing.capture_logs() as logs, _connected(served, request_) as connection:
        with suppress(ConnectionError):
            while connection.recv(65536):
                pass
        wait_until(lambda: _serving() == 0, "the threads", 20.0)
    assert _get(served, "/healthz")[0] == 200
    assert logs == [] and capfd.readouterr().err == ""


def test_slow_clients_hold_few_threads_and_not_for_long() -> None:
    """At most 16 of 40 slow clients are served at once, and each only for a limited time."""
    ended, most = threading.Event(), 0

    def drip(connections: list[socket.socket]) -> None:
        while not ended.wait(0.05):
            for connection in connections:
                with suppress(OSError):
                    connection.send(b"x")

    with ExitStack() as held:
        endpoints = held.enter_context(_endpoints(request_s=0.5))
        slow = [held.enter_context(_connected(endpoints)) for _ in range(40)]
        dripping = threading.Thread(target=drip, args=(slow[:20],))
        dripping.start()
        held.callback(dripping.join)
        held.callback(ended.set)
        wait_until(lambda: _serving() > 0, "the threads", 20.0)
        most = _serving()
        assert _get(endpoints, "/healthz")[0] == 200
        most = max(most, _serving())
    assert most <= 16


@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTTP/1.0\r\nA: ", b"GET /metrics HTTP/1.0\r\n\r\n"])
def test_slow_clients_block_no_other(sent: bytes) -> None:
    """However long they may take: idle ones, those in the middle of a request, those that do not read the answer."""
    with ExitStack() as held:
        endpoints = held.enter_context(_endpoints(request_s=3600.0))
        for _ in range(100):
            held.enter_context(_connected(endpoints, sent))
        assert [_get(endpoints, "/healthz")[0] for _ in range(20)] == [200] * 20
        assert _serving() <= 16


def test_a_client_that_has_asked_keeps_its_place() -> None:
    """A slow answer is not ended by silent clients."""
    asked, may_answer = threading.Event(), threading.Event()

    def slow() -> Health:
        asked.set()
        assert may_answer.wait(60)
        return Health(True, True, "ok")

    with ExitStack() as held:
        endpoints = held.enter_context(_endpoints(health=slow, request_s=3600.0))
        first = held.enter_context(_connected(endpoints, b"GET /healthz HTTP/1.0\r\n\r\n"))
        assert asked.wait(20)
        for _ in range(100):
            held.enter_context(_connected(endpoints))
        assert _get(endpoints, "/metrics")[0] == 200
        may_answer.set()
        assert first.recv(15) == b"HTTP/1.0 200 OK"


def test_an_error_of_this_program_is_logged() -> None:
    """Errors that the client did not cause are logged."""

    def fails() -> Health:
        raise RuntimeError("broken")

    with _endpoints(health=fails) as endpoints, structlog.testing.capture_logs() as logs:
        with _connected(endpoints, b"GET /healthz HTTP/1.0\r\n\r\n") as asked:
            assert asked.recv(1) == b""
        wait_until(lambda: _serving() == 0, "the threads", 20.0)
    assert [entry["event"] for entry in logs] == ["endpoint_failed"]


def test_a_port_that_becomes_free_is_taken(served: Endpoints) -> None:
    """A process waits for the port of a draining process, and logs it once with the remedy."""
    timer = threading.Timer(1.5, served.close)  # it tries once a second
    timer.start()
    with structlog.testing.capture_logs() as logs, _endpoints(port=served.port, patience_s=20) as second:
        assert second.port == served.port
    timer.join()
    taken = [entry for entry in logs if entry["event"] == "metrics_port_taken"]
    assert len(taken) == 1 and "metrics.port" in taken[0]["mend"]


@pytest.mark.parametrize(
    ("host", "kind", "setting"),
    [("127.0.0.1", PortTaken, r"metrics\.port"), ("192.0.2.1", ConfigError, r"metrics\.host")],
)
def test_a_taken_port_and_a_strange_host_are_told_apart(
    served: Endpoints, host: str, kind: type[FarmwatchError], setting: str
) -> None:
    """A port in use names metrics.port and may be free later; a host of another machine names metrics.host."""
    with pytest.raises(kind, match=setting), _endpoints(host, served.port):
        pass


def test_stop_ends_the_wait_for_a_port(served: Endpoints) -> None:
    """After a stop, waiting for the port ends and nothing is served."""
    stop = threading.Event()
    timer = threading.Timer(0.2, stop.set)
    timer.start()
    started = time.monotonic()
    with _endpoints(port=served.port, patience_s=60, stop=stop):
        assert time.monotonic() - started < 30
    timer.join()
