"""/metrics, /healthz and /readyz over real HTTP."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
import structlog.testing

from farmwatch.endpoints import Endpoints
from farmwatch.errors import ConfigError
from stream.metrics import Metrics
from stream.watching import Health


class _Says:
    def __init__(self) -> None:
        self.health = Health(True, True, "ok")


@pytest.fixture
def says() -> _Says:
    """What the loop says of itself."""
    return _Says()


@pytest.fixture
def served(says: _Says) -> Iterator[Endpoints]:
    """Endpoints on a free port."""
    metrics = Metrics()
    metrics.count("dead_letters", 3, stage="judge", reason="BadRecord")
    endpoints = Endpoints(metrics.registry, lambda: says.health, "127.0.0.1", 0)
    endpoints.start()
    yield endpoints
    endpoints.close()


def _get(endpoints: Endpoints, path: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{endpoints.port}{path}", timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


def test_metrics_are_exposed(served: Endpoints) -> None:
    """/metrics shows the process's registry in the text format of Prometheus."""
    status, content_type, body = _get(served, "/metrics")
    assert status == 200
    assert content_type.startswith("text/plain; version=")
    assert 'farmwatch_dead_letters_total{reason="BadRecord",stage="judge"} 3.0' in body


def test_health_and_readiness_are_told_apart(served: Endpoints, says: _Says) -> None:
    """A loop that ticks but holds no partition is healthy and not ready; the page says why."""
    assert _get(served, "/readyz")[0] == 200
    says.health = Health(True, False, "no partitions")
    assert _get(served, "/healthz")[0] == 200
    assert _get(served, "/readyz")[::2] == (503, "not ok: no partitions\n")


def test_a_stalled_loop_is_unhealthy(served: Endpoints, says: _Says) -> None:
    """/healthz answers 503 with the loop's own words."""
    says.health = Health(False, True, "input waits")
    assert _get(served, "/healthz")[::2] == (503, "not ok: input waits\n")


def test_other_paths_are_not_found(served: Endpoints) -> None:
    """Anything else is 404 and names what there is."""
    status, _, body = _get(served, "/etc/passwd")
    assert status == 404
    assert "/metrics" in body


def test_a_taken_port_is_a_clear_error(served: Endpoints) -> None:
    """A second process on the same port learns which setting to change."""
    second = Endpoints(Metrics().registry, lambda: Health(True, True, ""), "127.0.0.1", served.port)
    with pytest.raises(ConfigError, match=r"metrics\.port"):
        second.start()


def test_a_port_that_becomes_free_is_taken() -> None:
    """A process that starts while the one before it drains waits for its port, and says so once, with the remedy."""
    first = Endpoints(Metrics().registry, lambda: Health(True, True, "ok"), "127.0.0.1", 0)
    first.start()
    second = Endpoints(Metrics().registry, lambda: Health(True, True, "ok"), "127.0.0.1", first.port)
    timer = threading.Timer(1.5, first.close)  # it tries once a second
    timer.start()
    try:
        with structlog.testing.capture_logs() as logs:
            second.start(patience_s=20)
        assert second.port == first.port
        taken = [entry for entry in logs if entry["event"] == "metrics_port_taken"]
        assert len(taken) == 1 and "metrics.port" in taken[0]["mend"]
    finally:
        timer.join()
        second.close()


def test_a_taken_port_and_a_strange_host_are_told_apart(served: Endpoints) -> None:
    """A taken port names who may have it; a host that is not this machine's names the setting of the host."""
    registry = Metrics().registry
    with pytest.raises(ConfigError, match=r"metrics\.port: .*another farmwatch"):
        Endpoints(registry, lambda: Health(True, True, ""), "127.0.0.1", served.port).start()
    with pytest.raises(ConfigError, match=r"metrics\.host: .*the host"):
        Endpoints(registry, lambda: Health(True, True, ""), "192.0.2.1", 0).start()


def test_waiting_for_a_port_ends_when_told_to_stop() -> None:
    """A process that is told to stop while it waits for its port ends at once, and serves nothing."""
    first = Endpoints(Metrics().registry, lambda: Health(True, True, "ok"), "127.0.0.1", 0)
    first.start()
    second = Endpoints(Metrics().registry, lambda: Health(True, True, "ok"), "127.0.0.1", first.port)
    stop = threading.Event()
    timer = threading.Timer(0.2, stop.set)
    timer.start()
    started = time.monotonic()
    try:
        second.start(patience_s=60, stop=stop)
        assert time.monotonic() - started < 30
    finally:
        timer.join()
        second.close()
        first.close()
