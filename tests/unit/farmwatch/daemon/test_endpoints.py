"""/metrics, /healthz and /readyz over real HTTP, and the series of the stages."""

from __future__ import annotations

import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
import structlog.testing
from prometheus_client import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text

from crawler.metrics import FETCH_REQUESTS
from crawler.settings import CrawlSettings
from crawler.stages.crawl import CrawlStage
from farmwatch.commands.runs.replay import _Process
from farmwatch.config.config import load
from farmwatch.daemon.endpoints import ROLE, Endpoints, Exposition, PortTaken
from farmwatch.metrics import ALL
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings
from filters.stages.judge import JudgeStage
from filters.stages.measure import MeasureStage
from filters.stages.metrics import RULE_DROPS
from scoring.stages.metrics import SITES_REOPENED
from scoring.stages.score import ScoreStage
from scoring.stages.tally import TallyStage
from stream.processing.health import Health
from stream.processing.metrics import DEAD_LETTERS, LOG_RECORDS, STAGE_DURATION_SECONDS, Metrics
from stream.processing.stage import Series, Stage
from stream.text.user_errors import ConfigError, FarmwatchError
from tests.support.fake_detector import FakeDetector
from tests.support.waiting import wait_until


@contextmanager
def _endpoints(
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    health: Callable[[], Health] = lambda: Health(True, True, "ok"),
    request_s: float = 10.0,
) -> Iterator[Endpoints]:
    """Endpoints with a dead letter, started and closed."""
    metrics = Metrics()
    metrics.count(DEAD_LETTERS, 3, stage="judge", reason="BadRecord")
    endpoints = Endpoints(metrics.registry, health, host, port, request_s)
    endpoints.start()
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


def _shown(metrics: Metrics, accept: str = "") -> dict[str, Metric]:
    """The families of a page, read back as a scraper reads them."""
    encoder, content_type = choose_encoder(accept)
    page = encoder(Exposition(metrics.registry, "crawl")).decode()
    read = openmetrics if "openmetrics" in content_type else text
    return {family.name: family for family in read(page)}


def _value(shown: dict[str, Metric], name: str) -> float:
    (sample,) = shown[name].samples
    return sample.value


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0"])
def test_every_series_has_the_role_and_none_is_created(accept: str) -> None:
    """In both formats, counters, gauges, histograms and process metrics have the label; `_created` is left out."""
    metrics = Metrics()
    metrics.count(DEAD_LETTERS, 3, stage="crawl", reason="BadRecord")
    metrics.observe(STAGE_DURATION_SECONDS, 1, stage="crawl")
    shown = _shown(metrics, accept)
    samples = [sample for family in shown.values() for sample in family.samples]
    assert {sample.labels[ROLE] for sample in samples} == {"crawl"}
    assert [sample.name for sample in samples if sample.name.endswith("_created")] == []
    (died,) = (sample for sample in samples if sample.name == "farmwatch_dead_letters_total")
    assert (died.labels, died.value) == ({"role": "crawl", "stage": "crawl", "reason": "BadRecord"}, 3)
    assert "farmwatch_stage_duration_seconds_bucket" in {sample.name for sample in samples}


def test_no_metric_has_a_role_of_its_own() -> None:
    """The label of the process would overwrite a label of that name."""
    assert [metric.name for metric in ALL if ROLE in metric.labels] == []


def test_the_process_and_its_python_are_shown() -> None:
    """Memory, CPU, open files, start time and garbage collection are those of this process."""
    shown = _shown(Metrics())
    assert _value(shown, "process_resident_memory_bytes") > 10 * 1024**2
    assert _value(shown, "process_cpu_seconds") > 0
    assert 0 < _value(shown, "process_open_fds") < _value(shown, "process_max_fds")
    assert 0 < _value(shown, "process_start_time_seconds") <= time.time() + 1
    assert len(shown["python_gc_collections"].samples) == 3
    assert shown["python_info"].samples[0].labels["implementation"]


def test_a_replay_is_a_role_of_its_own(tmp_path: Path) -> None:
    """The label of a replay's process differs from those of the live roles."""
    with ExitStack() as held:
        process = _Process(load(None, [f"log.url=sqlite:{tmp_path}"], {}).config, "r1", 0, held)
        page = held.enter_context(urllib.request.urlopen(process.url, timeout=10)).read().decode()
    assert 'farmwatch_log_rebalances_total{role="replay"} 0.0' in page


@pytest.fixture(scope="module")
def series() -> Iterator[dict[str, list[Series]]]:
    """The series of each stage while the run `mine` is live."""
    with ExitStack() as held:
        stages: list[Stage] = [
            CrawlStage(CrawlSettings(contact="https://operator.example/")),
            MeasureStage(MeasureSettings(), run="mine"),
            JudgeStage(load_ruleset("default"), run="mine"),
            ScoreStage(lambda: [FakeDetector()]),
            TallyStage(FakeDetector().identity, run="mine"),
        ]
        for stage in stages:
            held.callback(stage.close)
        yield {stage.name: list(stage.metric_series("mine")) for stage in stages}


def test_labels_are_those_of_the_metric(series: dict[str, list[Series]]) -> None:
    """Each series has exactly the documented labels of its metric, and the name of the run."""
    for metric, given in (each for of_stage in series.values() for each in of_stage):
        assert metric in ALL and set(given) == set(metric.labels), metric.name
        assert given.get("run", "mine") == "mine"


def test_possible_events_have_series_in_advance(series: dict[str, list[Series]]) -> None:
    """Rules of the ruleset and outcomes of a request are among the series that exist in advance."""
    assert (RULE_DROPS, {"run": "mine", "ruleset": "default", "rule": "min_tokens"}) in series["judge"]
    refused = {"kind": "robots", "outcome": "failed", "status": "429", "reason": "status"}
    assert (FETCH_REQUESTS, refused) in series["crawl"]
    assert (LOG_RECORDS, {"topic": "features", "direction": "in"}) in series["judge"]
    assert (SITES_REOPENED, {"run": "mine"}) in series["tally"]
    assert len(series["tally"]) == 2 + 2 * 3
